"""
A rare class next to common ones
================================

:class:`~evergrow.RLSClassifier` is regularised least squares that learns one example at a time.
A new class is a new column of weights (Eq. 20 of Camoriano et al., 2017). Next to classes with
a hundred examples, a class with five hardly counts. *Recoding* (Eq. 21) gives more weight to
the targets of rare classes. :doc:`/papers` says where these equations are in the code.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from evergrow import RLSClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
known = y != 9
nines = np.flatnonzero(y == 9)[:30]
print(f"Nine digits with about {known.sum() / 9:.0f} examples each, and up to {len(nines)} nines")

# %%
# Every model learns the other digits first, then nines, a few at a time.

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
# common classes allows. :doc:`/teaching` describes the rule.
#
# An update takes the same time however many examples came before: the model keeps sums over the
# examples, not the examples (Eqs. 18 and 19).
