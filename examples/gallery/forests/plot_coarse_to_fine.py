"""
From coarse to fine classes
===========================

Every sample has a coarse label, and few have a fine one.
:class:`~evergrow.SubcategoryForestClassifier` learns fine classes from both. The data are three
groups of four classes each; the coarse label of a sample is its group.
"""

import matplotlib.pyplot as plt
import numpy as np

from evergrow import NCMForestClassifier, SubcategoryForestClassifier
from evergrow.estimators import Regularised

# Half of the distance between classes is that between their groups. Each class has 60 samples to
# learn and 40 to test.
rng = np.random.default_rng(0)
group = np.arange(12) // 4
centres = rng.standard_normal((12, 24)) + rng.standard_normal((3, 24))[group]
y = np.repeat(np.arange(12), 100)
X = rng.standard_normal((len(y), 24)) + 0.9 / np.sqrt(2) * centres[y]
train = np.arange(len(y)) % 100 < 60
X_train, X_test = X[train], X[~train]
coarse = np.array([f"group {group[label]}" for label in y[train]])
fine, fine_test = (np.array([f"class {label}" for label in y[rows]]) for rows in (train, ~train))

methods = {
    "fine-only": "only samples with a fine label",
    "hierarchical": "also the coarse labels of the others",
    "ridge-h": "also guesses of their fine labels",
}
n_told = (1, 2, 5, 10, 30)
splits = Regularised(n_subsets=10)
accuracy = {method: np.zeros((3, len(n_told))) for method in methods}
for seed in range(3):
    rng = np.random.default_rng(seed)
    # Samples of one class lie together, so this numbers the samples of each class at random.
    number = np.concatenate([rng.permutation(60) for _ in range(12)])
    for column, n in enumerate(n_told):
        labels = np.column_stack([coarse, np.where(number < n, fine, None)])
        for method in methods:
            forest = SubcategoryForestClassifier(
                15, method=method, min_samples_leaf=3, splits=splits, random_state=seed
            )
            answers = forest.fit(X_train, labels).predict(X_test)
            accuracy[method][seed, column] = 100 * np.mean(answers == fine_test)
full = NCMForestClassifier(15, min_samples_leaf=3, random_state=0).fit(X_train, fine)

# %%
# Lines are means over three choices of the samples with fine labels, bands their range.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for method, what in methods.items():
    runs = accuracy[method]
    axes.plot(n_told, runs.mean(axis=0), "o-", label=f"{method}: {what}")
    axes.fill_between(n_told, runs.min(axis=0), runs.max(axis=0), alpha=0.2)
level = 100 * full.score(X_test, fine_test)
axes.axhline(level, color="black", linestyle="--", label="all 60 of each class have a fine label")
axes.set_xscale("log")
axes.set_xticks(n_told, n_told)
axes.minorticks_off()
axes.set(xlabel="samples per class with a fine label", title="Accuracy on 12 fine classes, %")
axes.grid()
axes.legend(loc="lower right")
plt.show()

# %%
# With few fine labels, ``"ridge-h"``, the default method, is far ahead of the others. It
# guesses the missing fine labels by ridge regression within each coarse class, and learns from
# the guesses as well. Coarse labels without guesses help little on these data.
#
# All but ``"ridge-h"`` are methods of Ristin et al. (2015). :doc:`/method_subcategories` explains
# them, and :doc:`/subcategories` shows how to use them.
