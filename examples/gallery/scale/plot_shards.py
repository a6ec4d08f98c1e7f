"""
Shards: more data than memory
=============================

A folder of shards is one matrix in many files. Every estimator takes it in place of an array
and reads a block at a time (:doc:`/shards`). The model is the one that the array gives.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import evergrow
from evergrow import NCMForestClassifier, RLSClassifier
from evergrow.estimators import Storage

rng = np.random.default_rng(0)
centres = 0.25 * rng.standard_normal((10, 96))
y, y_test = np.repeat(np.arange(10), 160), np.repeat(np.arange(10), 100)
X, X_test = (rng.standard_normal((len(each), 96)) + centres[each] for each in (y, y_test))
rows = rng.permutation(len(y))
X, y = X[rows].astype(np.float32), y[rows]

# %%
# :func:`~evergrow.write_shards` takes batches, so that the whole matrix never has to be in
# memory. Here it is, to compare.

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name) / "features"
batches = ((X[start : start + 100], y[start : start + 100]) for start in range(0, len(X), 100))
shards = evergrow.write_shards(folder, batches, rows_per_shard=200)
print(f"{shards.shape[0]} rows in {len(shards.parts)} files")

# %%
# Forests
# -------
#
# Beyond the limit of its ``storage``, a forest keeps its samples in a file. Inside
# :func:`evergrow.cluster`, the workers of a Ray cluster grow the trees; without an address this
# process does. The forest is the one that the array gives.

ADDRESS = None  # or "auto", "host:port", "ray://host:10001"
forest = NCMForestClassifier(10, random_state=0).fit(X, y)
other = NCMForestClassifier(10, storage=Storage("64MiB"), random_state=0)
with evergrow.cluster(ADDRESS):
    other.fit(shards, shards.labels)
print("Same leaves:", np.array_equal(forest.apply(X_test), other.apply(X_test)))

# %%
# Least squares
# -------------
#
# :class:`~evergrow.RLSClassifier` keeps sums over the examples (Eqs. 18 and 19 of Camoriano et
# al., 2017; see :doc:`/papers`), and sums over parts of the data add up. So every part can be
# learnt on its own, on its own machine, and ``merge`` gives the model of all parts.

settings = {"regularization": 1.0, "recoding": 0.5}
at_once = RLSClassifier(**settings).fit(X, y)
merged, accuracy = None, []
for part in np.array_split(np.arange(len(shards)), len(shards.parts)):
    learnt = RLSClassifier(**settings).fit(shards[part], shards.labels[part])
    merged = learnt if merged is None else merged.merge(learnt)
    accuracy.append([model.score(X_test, y_test) for model in (learnt, merged)])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
alone, together = 100 * np.array(accuracy).T
n_parts = np.arange(1, len(accuracy) + 1)
left.plot(n_parts, together, "o-", label="merged so far")
left.plot(n_parts, alone, "o", label="this part alone")
level = 100 * at_once.score(X_test, y_test)
left.axhline(level, color="black", linestyle=":", label="all at once")
left.set(xlabel="part", xticks=n_parts, ylim=(0, 100), title="Accuracy on test samples, %")
left.grid()
left.legend()
right.plot(at_once.coef_.ravel(), merged.coef_.ravel(), ".")
right.set(xlabel="all at once", ylabel="merged", title="Weights")
apart = np.abs(at_once.coef_ - merged.coef_).max()
right.annotate(f"largest difference {apart:.0e}", (0.05, 0.9), xycoords="axes fraction")
plt.show()
temporary.cleanup()

# %%
# The merged model has the weights of the model that saw everything, up to rounding.
# :doc:`/cluster` is the guide from a laptop to many machines.
