"""
A new class in an old forest
============================

When ``partial_fit`` brings a new class, the parameter ``update`` of
:class:`~evergrow.NCMForestClassifier` says what happens to the trees. The four strategies are
those of Ristin et al. (2014, sec. 4; :doc:`/method_growing` explains them):

- :class:`~evergrow.ULS` counts the new samples in the leaves that they reach.
- :class:`~evergrow.IGT` also splits these leaves again.
- :class:`~evergrow.RUST` also adds the means of new classes to nodes.
- :class:`~evergrow.RTST` grows parts of the trees again.

A forest that knows 8 classes learns 16 more, one at a time. Next to the strategies we train a
forest from scratch each time, on all samples so far.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from evergrow import IGT, RTST, RUST, ULS, NCMForestClassifier

# Overlapping classes, each with 150 samples to learn and 40 to test.
rng = np.random.default_rng(0)
centres = 0.5 * rng.standard_normal((24, 32))
y = np.repeat(np.arange(24), 190)
X = (rng.standard_normal((len(y), 32)) + centres[y]).astype(np.float32)
train = np.arange(len(y)) % 190 < 150
X_train, y_train, X_test, y_test = X[train], y[train], X[~train], y[~train]
n_classes = np.arange(8, 25)


def follow(update):
    """Return the accuracy after each class, and processor time and distances of all updates."""
    strategy = {} if update == "retrained" else {"update": strategies[update](refresh=0.0)}
    forest = NCMForestClassifier(
        20, standardize="none", min_samples_leaf=10, random_state=0, **strategy
    )
    accuracy, seconds, distances = [], 0.0, 0
    for n in n_classes:
        grows = update != "retrained" and n > n_classes[0]
        rows = y_train == n - 1 if grows else y_train < n
        start = time.process_time()
        learn = forest.partial_fit if grows else forest.fit
        learn(X_train[rows], y_train[rows])
        if n > n_classes[0]:
            seconds += time.process_time() - start
            distances += forest.update_report_.n_comparisons
        asked = y_test < n
        accuracy.append(100 * forest.score(X_test[asked], y_test[asked]))
    return accuracy, seconds, distances


strategies = {"uls": ULS, "igt": IGT, "rust": RUST, "rtst": RTST}
updates = (*strategies, "retrained")
found = {update: follow(update) for update in updates}
for update, (accuracy, *_) in found.items():
    print(f"{update:<10} {accuracy[-1]:.0f} % of 24 classes")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for place, (update, (accuracy, *costs)) in enumerate(found.items()):
    style = {"color": "black", "ls": ":"} if update == "retrained" else {"color": f"C{place}"}
    left.plot(n_classes, accuracy, label=update, **style)
    for cost, full, mark in zip(costs, found["retrained"][1:], "so", strict=True):
        right.plot(cost / full, place, mark, color=style["color"])
left.set(xlabel="classes", ylim=(0, None), title="Accuracy on classes so far, %")
left.grid()
left.legend()
right.plot([], [], "s", color="0.5", label="processor time")
right.plot([], [], "o", color="0.5", label="distances computed")
right.set(xlim=(0, 1.1), xlabel="relative to training from scratch", title="Cost of all updates")
right.set_yticks(range(len(updates)), updates)
right.invert_yaxis()
right.grid(axis="x")
right.legend()
plt.show()

# %%
# Counting in old leaves (ULS) is not a way to learn classes: most leaves were grown without
# them. Splitting leaves again (IGT) is cheap and better. RUST and RTST come near to training
# from scratch, because nodes far from the leaves learn of new classes too. The number of
# distances is the same in every run; time is not.
#
# The trees here are updated by the strategy alone. By default, ``refresh="auto"`` also grows
# some of the trees again when the number of classes has grown, which is cheaper for many
# classes: :doc:`/growing_tradeoffs` measures it on image features.
