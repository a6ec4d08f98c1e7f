"""
Forget a class, exactly
=======================

What :class:`~evergrow.RLSClassifier` keeps of its examples are sums over them (Eqs. 18 and 19
of Camoriano et al., 2017; see :doc:`/method_least_squares`). A sum can be subtracted again. So
examples, or a whole class, can be forgotten without training again, and the model is the one
that never saw them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import RLSClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)


def shares(model):
    """Return the share of each answer among the test examples of each digit."""
    counts = np.zeros((10, 10))
    np.add.at(counts, (y_test, model.predict(X_test)), 1)
    return counts / counts.sum(axis=1, keepdims=True)


# %%
# To forget a class by its name, a model must keep sums per class. Penalty and recoding are
# numbers here; with ``"auto"`` they would be chosen from the examples.

model = RLSClassifier(regularization=1.0, recoding=0.5, keep_class_statistics=True).fit(X, y)
before = shares(model)
model.forget(classes=[3])
after = shares(model)
print("Classes left:", model.classes_)

# %%
# A model that never saw a three has the same weights, up to rounding.

never = RLSClassifier(regularization=1.0, recoding=0.5).fit(X[y != 3], y[y != 3])
print(f"Largest difference of a weight: {np.abs(model.coef_ - never.coef_).max():.0e}")

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for panel, values, title in zip(axes, (before, after), ("Before", "After"), strict=True):
    shown = panel.imshow(values, cmap="Blues", vmin=0, vmax=1)
    panel.set(xlabel="answer", xticks=range(10), yticks=range(10), title=title)
    panel.spines[:].set_visible(False)
axes[0].set_ylabel("digit")
figure.colorbar(shown, ax=axes, label="share of the digit's test examples")
plt.show()

# %%
# After forgetting, no answer is a three, and threes are taken for other digits, mostly nines
# and twos. ``forget(X, y)`` forgets single examples, and needs no sums per class. Forests
# forget as well, by taking the examples out of their trees: see :doc:`/teaching` and
# :doc:`/growing`.
