"""
Wrong labels
============

:func:`~evergrow.label_issues` finds labels that are probably wrong. We change 60 of 1797 labels
of handwritten digits at random and look for them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from evergrow import label_issues

X, truth = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
changed = rng.choice(len(truth), 60, replace=False)
given = truth.copy()
given[changed] = (truth[changed] + rng.integers(1, 10, len(changed))) % 10

found = label_issues(X, given)
listed = np.array([one.index for one in found.wrong])
n_found = np.isin(listed, changed).sum()
print(f"{len(listed)} labels are listed, {n_found} of them are among the 60")
print(f"Estimated share of wrong labels: {found.share_wrong:.1%}; we changed {60 / len(truth):.1%}")

# %%
# The most suspicious label comes first. The upper row shows the first seven, the lower row
# listed labels that we did *not* change: some of these digits are hard to read.

figure, axes = plt.subplots(2, 7, figsize=(9, 3.4), layout="constrained")
for panel in axes.flat:
    panel.set_axis_off()
unchanged = [one for one in found.wrong if one.index not in changed]
for panels, issues in zip(axes, (found.wrong, unchanged), strict=True):
    for panel, one in zip(panels, issues, strict=False):
        panel.imshow(X[one.index].reshape(8, 8), cmap="gray_r")
        panel.set_title(f"given {one.label}\nsuggested {one.suggestion}", fontsize=9)
plt.show()

# %%
# Each label is judged by a model that never saw it. So a label that is wrong by chance scores
# like one drawn at random, and comparing labels with random ones gives the ``certainty`` that
# each is wrong (:doc:`/clean_data`). A lower ``certainty`` lists more labels. This is how many
# changed labels are among them:

longer = label_issues(X, given, certainty=0.02).wrong
hits = np.cumsum([one.index in changed for one in longer])
figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axes.plot(np.arange(len(hits)) + 1, hits, label="changed labels among them")
axes.axhline(len(changed), color="black", linestyle=":", label="all changed labels")
axes.axvline(len(listed), color="0.5", linestyle="--", label="certainty of 0.5, the default")
axes.set(xlabel="labels listed", ylim=(0, 65), title="Changed labels found")
axes.grid()
axes.legend(loc="lower right")
plt.show()
