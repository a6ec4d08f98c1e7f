"""Votes of virtual samples, which make a forest fair to its small classes.

In a leaf, ten samples of a new class are outvoted by hundreds of others wherever classes overlap.
So small classes get virtual samples: the mean of the class plus the deviation of a stored sample
of another class from its own mean. They pass the trees like new samples and are counted in the
leaves that they reach, in a copy of the trees that only votes. Neither they nor their counts are
stored in the trees that grow: the votes are a function of the trees and the stored samples, and are
counted again after every change. Whatever is forgotten leaves nothing behind in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.sample_matrix import as_floats
from evergrow.estimators.forest.value.standardization import Standardization

Rows = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Keys = npt.NDArray[np.uint64]

# Virtual samples for each that a class lacks. Nodes were not chosen to separate them, so that most
# fall into leaves of other classes: with one for each, a class of ten among classes of hundreds has
# a third of the answers that it has with four, and others lose nothing (docs/benchmarks.md).
_VIRTUAL_PER_MISSING = 4
# Bytes of rows that are read, or made, at once.
_BLOCK_BYTES = 16 << 20

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def with_virtual_votes(fitted: FittedForest, balance: float, n_threads: int) -> FittedForest:
    """The same forest, with virtual votes for its small classes if ``balance`` is not 0."""
    # The same value if nothing changes: workers of a cluster know the forest by it.
    if fitted.balance != balance or fitted.voters is not None:
        fitted = replace(fitted, balance=float(balance), voters=None)
    if balance == 0 or not fitted.has_training_rows:
        return fitted
    samples = fitted.forest.samples
    classes = samples.classes
    rows = np.flatnonzero(classes >= 0).astype(np.int32)
    # By id: the numbers of rows change when a model is saved and loaded.
    rows = rows[np.argsort(samples.ids[rows])]
    wanted = n_virtual(np.bincount(classes[rows], minlength=len(fitted.labels)), balance)
    if not wanted.any():
        return fitted
    voters = fitted.forest
    for part, (X, codes) in enumerate(_virtual_samples(samples, rows, wanted, fitted.history.seed)):
        voters = _count(fitted, voters, X, codes, part, n_threads)
    return replace(fitted, voters=voters)


def n_virtual(sizes: npt.NDArray[np.int64], balance: float) -> npt.NDArray[np.int64]:
    """Virtual samples of each class: four for each that it lacks to the median, times the knob.

    >>> n_virtual(np.array([100, 10, 0, 90, 300]), 1.0)
    array([  0, 340,   0,  20,   0])
    """
    missing = np.maximum(0.0, np.median(sizes[sizes > 0]) - sizes)
    missing[sizes == 0] = 0
    return np.rint(_VIRTUAL_PER_MISSING * balance * missing).astype(np.int64)


def draw_below(key: int, n: int, bound: int) -> npt.NDArray[np.int64]:
    """Draw ``n`` numbers below a bound, as ``Stream`` of the core does with this key."""
    # Arrays, not numbers: their products wrap around without a warning.
    state = np.array([key], dtype=np.uint64) + _GOLDEN * np.arange(1, n + 1, dtype=np.uint64)
    high = _mix(state) >> np.uint64(32)
    return ((high * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)


def _mix(x: Keys) -> Keys:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def key_of_class(seed: int, code: int) -> int:
    """Key of the random numbers of a class."""
    state = np.array([seed], dtype=np.uint64) + _GOLDEN * np.array([code + 1], dtype=np.uint64)
    return int(_mix(state)[0])


def _virtual_samples(
    samples: _core.Samples, rows: Rows, wanted: npt.NDArray[np.int64], seed: int
) -> Iterator[tuple[Floats, Rows]]:
    """Virtual samples and their classes, some at a time."""
    classes = samples.classes
    means = _class_means(samples, rows, len(wanted))
    for code in np.flatnonzero(wanted).tolist():
        others = rows[classes[rows] != code]
        drawn = others[draw_below(key_of_class(seed, code), int(wanted[code]), len(others))]
        for lenders in _blocks(drawn, samples):
            X = means[code] + (_read(samples, lenders) - means[classes[lenders]])
            yield X.astype(np.float32), np.full(len(lenders), code, dtype=np.int32)


def _class_means(samples: _core.Samples, rows: Rows, n_classes: int) -> npt.NDArray[np.float64]:
    sums = np.zeros((n_classes, samples.n_features))
    classes = samples.classes
    for block in _blocks(rows, samples):
        order = block[np.argsort(classes[block], kind="stable")]
        present, firsts = np.unique(classes[order], return_index=True)
        sums[present] += np.add.reduceat(_read(samples, order), firsts, axis=0, dtype=np.float64)
    sizes = np.bincount(classes[rows], minlength=n_classes)
    return sums / np.maximum(1, sizes)[:, None]


def _blocks(rows: Rows, samples: _core.Samples) -> Iterator[Rows]:
    n = max(256, _BLOCK_BYTES // (8 * samples.n_features))
    for first in range(0, len(rows), n):
        yield rows[first : first + n]


def _read(samples: _core.Samples, rows: Rows) -> npt.NDArray[np.float64]:
    return as_floats(samples.take(rows)).astype(np.float64)


def _count(
    fitted: FittedForest,
    voters: _core.Forest,
    X: Floats,
    codes: Rows,
    part: int,
    n_threads: int,
) -> _core.Forest:
    """Count samples in the leaves that they reach, and store none of them."""
    stored, history = fitted.forest.samples, fitted.history
    # Nodes refer to stored samples only if these are in memory; a file must not grow.
    in_memory = stored.path is None
    samples = stored.copy() if in_memory else _core.Samples(stored.n_features, half=stored.half)
    numbers = samples.add(len(codes))
    ids = np.full(len(codes), history.n_seen, dtype=np.int64)
    samples.write(numbers, X, codes, ids, Standardization.identity(stored.n_features).core)
    plan = _core.UpdatePlan(
        n_classes=len(fitted.labels),
        seed=history.seed,
        update=part,
        strategy="uls",
        share=0.0,
        node_sampling="size",
        row_rate=history.row_rate,
        bootstrap=False,
        first_refreshed=0,
        n_refreshed=0,
        n_trees=len(voters),
        row_budget=0,
        rules=_core.SplitRules(
            proposer=fitted.proposer,
            n_centroids=2,
            n_candidates=1,
            min_samples_leaf=1,
            min_gain=0.0,
        ),
        keep_rows=False,
    )
    nothing = np.zeros(0, dtype=np.int32)
    counted, _ = voters.update(
        samples=samples,
        rows=numbers,
        evicted=nothing,
        plan=plan,
        n_threads=n_threads,
        progress=None,
    )
    return counted.with_samples(stored)
