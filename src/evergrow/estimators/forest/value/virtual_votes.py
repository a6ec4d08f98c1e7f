"""Votes that are fair to small classes.

In a leaf, ten samples of a new class are outvoted by hundreds of others wherever classes overlap,
and most leaves that its samples should reach have none of the ten. So a small class, of fewer than
half as many samples as the median class, is helped in two ways. Its votes are multiplied by a
weight that grows with the ratio of the two sizes. And it gets a few virtual samples: the mean of
the class plus the difference of two samples of a large class, divided by the square root of two,
which has the spread of samples around their mean. They pass the trees like new samples and are
counted in the leaves that they reach, in a copy of the trees that only votes.

Neither weights nor counts are stored in the trees that grow. They are a function of the trees, the
stored samples and ``balance``, found when the forest is first asked. Whatever is forgotten leaves
nothing behind in them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.sample_matrix import as_floats
from evergrow.estimators.forest.value.standardization import Standardization

if TYPE_CHECKING:
    from evergrow.estimators.forest.value.fitted import FittedForest

Balance: TypeAlias = Literal["auto"] | float
Rows: TypeAlias = npt.NDArray[np.int32]
Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float32]
Floats64: TypeAlias = npt.NDArray[np.float64]
Keys: TypeAlias = npt.NDArray[np.uint64]

# balance="auto": the accuracy over all classes is highest at 0.5 to 1, depending on the data set,
# if one class is cut; it loses nothing anywhere (docs/benchmarks.md).
_AUTO = 0.5
# A class is small if the median class has more than twice as many samples.
_SMALL = 2.0
# The weight of a class of 1 / (2 r) of the median, with balance=1, is min(r, 5)^(7/3). More than
# the ratio itself, because trees were not grown to separate so small a class and its votes are
# spread over many leaves; and no more from a tenth of the median on, where votes are mostly noise.
_MOST_RATIO, _POWER = 5.0, 7 / 3
# Most virtual samples of a class. They only have to make sure that the class is in the leaves that
# its samples reach: with more, others lose more than the class gains.
_MOST_VIRTUAL = 20
# Bytes of rows that are read, or made, at once.
_BLOCK_BYTES = 16 << 20

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Ballot:
    """How a forest votes: trees that may count virtual samples, and a weight for each class."""

    trees: _core.Forest
    weights: Floats64 | None = None

    def weighted(self, probabilities: Floats64) -> Floats64:
        """Probabilities with the votes of small classes multiplied, of the same sum."""
        if self.weights is None:
            return probabilities
        # Classes that were added to a forest without samples have no weight.
        probabilities[:, : len(self.weights)] *= self.weights
        total = probabilities.sum(axis=1, keepdims=True)
        np.divide(probabilities, total, out=probabilities, where=total > 0)
        return probabilities


class LazyBallot:
    """The ballot of one fitted forest, found when it is first asked for and then kept.

    Threads that ask at the same time wait for the one that counts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The last ballot with its balance, replaced as a whole: readers need no lock.
        self._found: tuple[float, Ballot] | None = None

    def of(self, fitted: FittedForest, balance: Balance, n_threads: int) -> Ballot:
        """Return the ballot of a forest, always the same one, with this balance."""
        if not fitted.has_training_rows:
            return Ballot(fitted.forest, fitted.balance_weights)
        amount = _AUTO if isinstance(balance, str) else float(balance)
        if amount == 0:
            return Ballot(fitted.forest)
        found = self._found
        if found is None or found[0] != amount:
            with self._lock:
                found = self._found
                if found is None or found[0] != amount:
                    found = self._found = (amount, fair_ballot(fitted, amount, n_threads))
        return found[1]


def fair_ballot(fitted: FittedForest, balance: float, n_threads: int) -> Ballot:
    """Weights and virtual votes for the small classes of a forest, if it has any."""
    samples = fitted.forest.samples
    sizes = samples.class_sizes(len(fitted.labels))
    weights = balance_weights(sizes, balance)
    if not (weights > 1).any():
        return Ballot(fitted.forest)
    trees = fitted.forest
    for part, (X, codes) in enumerate(_virtual_samples(samples, sizes, fitted.history.seed)):
        trees = _count(fitted, trees, X, codes, part, n_threads)
    return Ballot(trees, weights)


def balance_weights(sizes: Integers, balance: float) -> Floats64:
    """Weight of the votes of each class: 1 unless it is small.

    >>> balance_weights(np.array([400, 400, 300, 200, 50, 4, 0]), 1.0).round(1)
    array([ 1. ,  1. ,  1. ,  1. ,  8.5, 42.7,  1. ])
    >>> balance_weights(np.array([400, 400, 300, 200, 50, 4, 0]), 0.5).round(1)
    array([1. , 1. , 1. , 1. , 2.9, 6.5, 1. ])
    """
    ratio = np.clip(_ratios(sizes) / _SMALL, 1.0, _MOST_RATIO)
    return np.asarray(ratio ** (_POWER * balance))


def n_virtual(sizes: Integers) -> Integers:
    """Virtual samples of each small class: as many as the median is times its size, at most 20.

    Together they are never more than the samples: less than half of the classes are small, and
    each gets at most as many as the median class has.

    >>> n_virtual(np.array([400, 400, 300, 200, 40, 4, 0]))
    array([ 0,  0,  0,  0,  6, 20,  0])
    """
    ratio = _ratios(sizes)
    found = np.minimum(np.floor(ratio), _MOST_VIRTUAL).astype(np.int64)
    return np.where(ratio > _SMALL, found, 0)


def _ratios(sizes: Integers) -> Floats64:
    """How many times larger the median class is than each; 0 for a class without samples."""
    ratios = np.zeros(len(sizes))
    present = sizes > 0
    ratios[present] = np.median(sizes[present]) / sizes[present]
    return ratios


def draw_below(keys: Keys, counters: Keys, bounds: Integers | int) -> Integers:
    """Numbers below a bound: of the ``Stream`` of the core with each key, that of the counter."""
    high = _mix(keys + _GOLDEN * counters) >> np.uint64(32)
    bound = np.asarray(bounds).astype(np.uint64)
    return ((high * bound) >> np.uint64(32)).astype(np.int64)


def _mix(x: Keys) -> Keys:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def keys_of_classes(seed: int, codes: Integers) -> Keys:
    """Keys of the random numbers of classes."""
    # Arrays, not numbers: their products wrap around without a warning.
    return _mix(np.array([seed], dtype=np.uint64) + _GOLDEN * (codes + 1).astype(np.uint64))


def _virtual_samples(
    samples: _core.Samples, sizes: Integers, seed: int
) -> Iterator[tuple[Floats, Rows]]:
    """Virtual samples and their classes, some at a time, in time linear in their number."""
    wanted = n_virtual(sizes)
    small = np.flatnonzero(wanted)
    means = samples.class_sums(small.astype(np.int32)) / sizes[small][:, None]
    lenders = np.flatnonzero(sizes >= np.median(sizes[sizes > 0]))
    ends = np.cumsum(sizes[lenders])
    codes = np.repeat(small, wanted[small])
    keys = keys_of_classes(seed, codes)
    counters = (2 * _counted_up(wanted[small])).astype(np.uint64)
    drawn = draw_below(keys, counters + np.uint64(1), ends[-1])
    lender = np.searchsorted(ends, drawn, side="right")
    own = lenders[lender]
    firsts = drawn - ends[lender] + sizes[own]
    # Another sample of the same class; a class that lends has at least two.
    steps = 1 + draw_below(keys, counters + np.uint64(2), sizes[own] - 1)
    # By place among the ids, because the numbers of rows change when a model is loaded.
    pairs = [
        samples.rows_at(own.astype(np.int32), places)
        for places in (firsts, (firsts + steps) % sizes[own])
    ]
    places = np.repeat(np.arange(len(small)), wanted[small])
    for part in _blocks(len(codes), samples.n_features):
        apart = np.subtract(*(_read(samples, rows[part]) for rows in pairs))
        X = means[places[part]] + apart * np.sqrt(0.5)
        yield X.astype(np.float32), codes[part].astype(np.int32)


def _counted_up(sizes: Integers) -> Integers:
    """0, 1, ... for each size, one after the other.

    >>> _counted_up(np.array([2, 3]))
    array([0, 1, 0, 1, 2])
    """
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _blocks(n: int, n_features: int) -> Iterator[slice]:
    step = max(256, _BLOCK_BYTES // (8 * n_features))
    for first in range(0, n, step):
        yield slice(first, first + step)


def _read(samples: _core.Samples, rows: Rows) -> Floats64:
    return as_floats(samples.take(rows)).astype(np.float64)


def _count(
    fitted: FittedForest,
    trees: _core.Forest,
    X: Floats,
    codes: Rows,
    part: int,
    n_threads: int,
) -> _core.Forest:
    """Count samples in the leaves that they reach, and store none of them."""
    stored, history = fitted.forest.samples, fitted.history
    samples = stored.copy()
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
        rules=_core.SplitRules(
            proposer=fitted.proposer,
            n_centroids=2,
            n_candidates=1,
            min_samples_leaf=1,
            min_gain=0.0,
        ),
        keep_rows=False,
        leaves_only=True,
    )
    nothing = np.zeros(0, dtype=np.int32)
    counted, _ = trees.update(
        samples=samples,
        rows=numbers,
        evicted=nothing,
        plan=plan,
        n_threads=n_threads,
        progress=None,
    )
    return counted.with_samples(stored)
