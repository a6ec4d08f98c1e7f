"""
What to label next
==================

:func:`~evergrow.next_to_label` chooses the examples to label next. It covers the examples
without labels, and prefers those of which a classifier is unsure that knows the labels so far
(:doc:`/clean_data`). We begin with 1078 digits without labels and ask for ten labels at a time.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import RLSClassifier, next_to_label

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
counts = np.arange(10, 101, 10)


def accuracy_of(order):
    """Accuracy on test digits after the first 10, 20, ... labels of an order."""
    models = (RLSClassifier(random_state=0).fit(X[order[:n]], y[order[:n]]) for n in counts)
    return [100 * model.score(X_test, y_test) for model in models]


chosen = next_to_label(X, n=10)
while len(chosen) < counts[-1]:
    rest = np.setdiff1d(np.arange(len(X)), chosen)
    more = next_to_label(X[rest], X[chosen], y[chosen], n=10)
    chosen = np.concatenate([chosen, rest[more]])
at_random = [accuracy_of(np.random.default_rng(seed).permutation(len(X))) for seed in range(3)]

figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axes.plot(counts, accuracy_of(chosen), "o-", label="chosen by next_to_label")
axes.plot(counts, np.mean(at_random, axis=0), "o-", label="at random: mean and range of three")
lowest, highest = np.min(at_random, axis=0), np.max(at_random, axis=0)
axes.fill_between(counts, lowest, highest, color="C1", alpha=0.2)
axes.set(xlabel="labels", ylim=(0, 100), title="Accuracy on test digits, %")
axes.grid()
axes.legend(loc="lower right")
plt.show()

# %%
# The first ten choices know nothing of classes, and yet nearly all digits are among them: each
# choice should cover examples that the others do not. Ten digits at random repeat some and miss
# others.

figure, axes = plt.subplots(2, 10, figsize=(9, 2.2), layout="constrained")
some = np.random.default_rng(0).permutation(len(X))[:10]
for panels, rows, name in zip(axes, (chosen[:10], some), ("chosen", "random"), strict=True):
    for panel, one in zip(panels, rows, strict=True):
        panel.imshow(X[one].reshape(8, 8), cmap="gray_r")
        panel.set(xticks=[], yticks=[])
        panel.spines[:].set_visible(False)
    panels[0].set_ylabel(name)
plt.show()
print("Digits chosen:   ", sorted(y[chosen[:10]].tolist()))
print("Digits at random:", sorted(y[some].tolist()))
