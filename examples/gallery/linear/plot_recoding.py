"""
A rare class next to common ones
================================

:class:`~evergrow.RLSClassifier` is regularised least squares that learns one example at a time.
A new class is a new column of weights (Eq. 20 of Camoriano et al., 2017). Next to classes with
a hundred examples, a class with five hardly counts. *Recoding* (Eq. 21) multiplies its scores
by a power of how rare it is. :doc:`/method_least_squares` explains the equations.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import RLSClassifier

# %%
# Where the borders lie
# ---------------------
#
# Two classes have 100 examples each, the third has five. ``scoring="regression"`` compares the
# scores as the paper does.

rng = np.random.default_rng(1)
y = np.repeat([0, 1, 2], [100, 100, 5])
X = np.array([[-1.5, 0], [1.5, 0], [0, 2.4]])[y] + 0.7 * rng.standard_normal((205, 2))
colours = ListedColormap(["C0", "C2", "C1"])
extent = (-4, 4, -2.5, 4.5)
x, height = np.meshgrid(np.linspace(*extent[:2], 300), np.linspace(*extent[2:], 300))
grid = np.column_stack([x.ravel(), height.ravel()])

figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for panel, recoding in zip(axes, (0.0, 0.5, 1.0), strict=True):
    model = RLSClassifier(regularization=1.0, recoding=recoding, scoring="regression").fit(X, y)
    answers = model.predict(grid).reshape(x.shape)
    panel.imshow(answers, colours, extent=extent, origin="lower", alpha=0.35, vmin=0, vmax=2)
    panel.scatter(*X.T, c=y, cmap=colours, s=np.where(y == 2, 40, 6), edgecolors="white", lw=0.3)
    panel.set(title=f"recoding={recoding:g}", xticks=[], yticks=[])
plt.show()

# %%
# Without recoding, four of the five rare examples are on the wrong side. Full recoding gives
# the rare class so much space that common examples are on its side. One half lies in between.
#
# Nines among digits
# ------------------
#
# Now the rare class is the digit nine. Every model learns the other digits first, then nines, a
# few at a time.

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
known = y != 9
nines = np.flatnonzero(y == 9)[:30]
print(f"Nine digits with about {known.sum() / 9:.0f} examples each, and up to {len(nines)} nines")

counts = np.array([1, 2, 3, 5, 8, 12, 16, 20, 25, 30])
settings = {0.0: "0, plain least squares", 0.5: "0.5", 1.0: "1, in full proportion", "auto": "auto"}
rare, common = {}, {}
for recoding in settings:
    model = RLSClassifier(recoding=recoding, random_state=0).fit(X[known], y[known])
    rare[recoding], common[recoding] = [], []
    for start, stop in zip([0, *counts], counts, strict=False):
        model.partial_fit(X[nines[start:stop]], y[nines[start:stop]])
        right = model.predict(X_test) == y_test
        rare[recoding].append(100 * right[y_test == 9].mean())
        common[recoding].append(100 * right[y_test != 9].mean())

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for panel, curves, name in zip(axes, (rare, common), ("nines", "other digits"), strict=True):
    for recoding, label in settings.items():
        line = "--" if recoding == "auto" else "-"
        panel.plot(counts, curves[recoding], f"o{line}", markersize=4, label=label)
    panel.set(xlabel="nines learnt", ylim=(-3, 103), title=f"Accuracy on {name}, %")
    panel.grid()
axes[1].legend(title="recoding", loc="lower right", alignment="left")
plt.show()

# %%
# Plain least squares recognises hardly any nine while there are few. Full recoding recognises
# most at once, at the expense of the other digits. In between there is a trade-off, and
# ``recoding="auto"``, the default, chooses it by leave-one-out: as much as the accuracy on
# common classes allows. :doc:`/method_least_squares` describes the rule, and :doc:`/teaching`
# shows how to set it.
#
# An update takes the same time however many examples came before: the model keeps sums over the
# examples, not the examples (Eqs. 18 and 19).
