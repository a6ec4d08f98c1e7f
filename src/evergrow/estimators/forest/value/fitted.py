"""A fitted forest as one immutable value, with the samples and the scale it was grown from.

An estimator holds exactly one :class:`FittedForest` and replaces it as a whole. A thread that
predicts while another one trains sees the forest before or after the change, never in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.classifier.predictor import fill_rows
from evergrow.estimators.forest.device.device_forest import DeviceCache, DeviceForest
from evergrow.estimators.forest.device.votes import weighted
from evergrow.estimators.forest.value.ages import Ages
from evergrow.estimators.forest.value.serialization import (
    LARGEST_WEIGHT,
    SampleArrays,
    Trees,
    core_from_fields,
    core_to_fields,
)
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.forest.value.virtual_votes import Balance, Ballot, LazyBallot
from evergrow.foundation.device import Device
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Choice, Integer, Number
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.codec import (
    MOST_COUNTED,
    Array,
    ClassNames,
    Fields,
    Nested,
    decode,
    encode,
)
from evergrow.storage.shards import join_rows

Codes: TypeAlias = npt.NDArray[np.int32]
Ids: TypeAlias = npt.NDArray[np.int64]

# The scale of the features is measured again until there are this many samples.
_SETTLED = 50
# Bytes of probabilities held at once when only the best classes are wanted.
_PREDICT_BYTES = 16 << 20


@dataclass(frozen=True, eq=False)
class ForestBatch:
    """Samples of one call: features, class columns, ids, and weights or None if all are 1."""

    X: npt.NDArray[Any]
    codes: Codes
    ids: Ids
    weights: npt.NDArray[Any] | None = None

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.ids)

    def with_batch(self, batch: ForestBatch) -> ForestBatch:
        """These samples and those of a batch."""
        return ForestBatch(
            join_rows(self.X, batch.X),
            np.concatenate([self.codes, batch.codes]),
            np.concatenate([self.ids, batch.ids]),
            _join_weights(self, batch),
        )


def _join_weights(first: ForestBatch, rest: ForestBatch) -> npt.NDArray[Any] | None:
    if first.weights is None and rest.weights is None:
        return None
    both = (
        np.ones(len(batch), dtype=np.float32) if batch.weights is None else batch.weights
        for batch in (first, rest)
    )
    return np.concatenate(list(both))


@dataclass(frozen=True, eq=False)
class EarlySamples(ForestBatch):
    """The first samples as they came, until there are enough to fix the feature scale.

    While a forest has early samples, each change of them grows it again from all of them. Once
    there are 50 samples the scale is fixed, and the early samples are empty from then on: all
    methods then return an empty value.
    """

    _stored: ClassVar[Fields] = {
        "X": Array(np.float64, ("samples", "features")),
        "codes": Array(np.int32, ("samples",), 0, "classes"),
        "ids": Array(np.int64, ("samples",), 0, MOST_COUNTED),
        "weights": Array(np.float32, ("samples",), 0.0, LARGEST_WEIGHT, optional=True),
    }

    @classmethod
    def of(cls, batch: ForestBatch) -> EarlySamples:
        """Copy of a batch, or empty if the batch is large enough to fix the scale."""
        if len(batch) >= _SETTLED:
            return NO_EARLY_SAMPLES
        # The caller gets the ids as sample_ids_ and may change them, so they are copied too.
        X = np.array(batch.X[:], dtype=np.float64)
        return cls(X, batch.codes, batch.ids.copy(), batch.weights)

    def without(self, ids: Ids) -> EarlySamples:
        """All but the samples with these ids."""
        left = ~np.isin(self.ids, ids)
        weights = None if self.weights is None else self.weights[left]
        return EarlySamples(self.X[left], self.codes[left], self.ids[left], weights)

    def with_classes(self, ids: Ids, codes: Codes) -> EarlySamples:
        """The same samples, those with these ids in other classes."""
        if not len(self):
            return self
        order = np.argsort(self.ids)
        changed = self.codes.copy()
        changed[order[np.searchsorted(self.ids[order], ids)]] = codes
        return replace(self, codes=changed)

    def with_columns(self, columns: list[int]) -> EarlySamples:
        """The same samples with classes renumbered: class ``c`` becomes ``columns[c]``."""
        return replace(self, codes=np.array(columns, dtype=np.int32)[self.codes])


NO_EARLY_SAMPLES = EarlySamples(
    np.zeros((0, 0)), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
)


@dataclass(frozen=True, eq=False)
class History:
    """Seed and counters of a forest.

    Attributes
    ----------
    seed : int
        All random numbers of the model derive from it.
    n_updates : int
        Updates so far; each draws its own random numbers.
    n_seen : int
        Samples seen so far, evicted ones included; the id of the next sample.
    row_rate : float
        Rows that a tree draws per sample seen.
    n_measured, n_measured_classes : int
        Samples that the transform of the features was measured on, and their classes.
    refresh_due : float
        Number of trees that were due to be grown again so far; modulo the number of trees, it is
        the next one.
    ages : Ages
        When each tree was last taught all classes, and when each class came.
    weight_unit : float
        Mean weight of the first samples; weights are stored in this unit.
    early : EarlySamples
        Empty once the feature scale is fixed.
    """

    seed: int
    n_updates: int
    n_seen: int
    row_rate: float
    ages: Ages
    refresh_due: float = 0.0
    n_measured: int = 0
    n_measured_classes: int = 0
    weight_unit: float = 1.0
    early: EarlySamples = NO_EARLY_SAMPLES

    _stored: ClassVar[Fields] = {
        "seed": [Integer(0, 2**63 - 1)],
        "n_updates": [Integer(0, MOST_COUNTED)],
        "n_seen": [Integer(0, MOST_COUNTED)],
        "row_rate": [Number(0.0, 2.0**32 - 1, open_low=True)],
        "ages": Nested(Ages),
        "refresh_due": [Number(0.0, MOST_COUNTED - 1)],
        "n_measured": [Integer(0, MOST_COUNTED)],
        "n_measured_classes": [Integer(0, MOST_COUNTED)],
        "weight_unit": [Number(0.0, open_low=True)],
        "early": Nested(EarlySamples, optional=True),
    }

    def stored_fields(self) -> dict[str, Any]:
        """Return no early samples where there are none."""
        return {"early": self.early if len(self.early) else None}

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> History:
        """Rebuild from a model file."""
        return cls(**{**fields, "early": fields["early"] or NO_EARLY_SAMPLES})

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for what is to come only."""
        if max(self.ages.taught.max(), self.ages.came.max()) > self.n_updates:
            raise InvalidInputError("its ages are those of later updates")


@dataclass(frozen=True, eq=False)
class FittedForest:
    """Classes, feature scale, trees with their training samples, and history of a forest."""

    labels: ClassList
    standardization: Standardization
    forest: _core.Forest
    history: History
    proposer: str
    # Of a forest that was saved without its samples, from which these could be found again.
    balance_weights: npt.NDArray[np.float64] | None = None
    # A cache. `replace` makes an empty one, so that a changed forest computes its votes again.
    _ballot: LazyBallot = field(default_factory=LazyBallot, init=False, repr=False)
    _on_devices: DeviceCache = field(default_factory=DeviceCache, init=False, repr=False)

    _stored: ClassVar[Fields] = {
        "labels": ClassNames(),
        "standardization": Nested(Standardization),
        "proposer": [Choice(("axis", "linear", "ncm", "svm"))],
        "n_comparisons": Array(np.int64, ("trees",), 0, MOST_COUNTED - 1, filled=True),
        "samples": Nested(SampleArrays),
        "tree": Trees(),
        "history": Nested(History),
        "balance_weights": Array(np.float64, (None,), 0.0, open_low=True, optional=True),
    }

    def stored_fields(self) -> dict[str, Any]:
        """Return what a model file holds; removed samples are left out."""
        return core_to_fields(self.forest, inference_only=False)

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> FittedForest:
        """Rebuild from a model file."""
        return cls(forest=core_from_fields(fields), **fields)

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the parts do not suit each other."""
        ids, early, weights = self.samples.ids, self.history.early, self.balance_weights
        # The id of the next sample must be a new one.
        if self.has_training_rows and (ids >= self.history.n_seen).any():
            raise InvalidInputError("samples.ids has the id of the next sample")
        if len(early):
            own, stored = np.argsort(early.ids), np.argsort(ids)
            same = np.array_equal(early.ids[own], ids[stored])
            if not same or not np.array_equal(early.codes[own], self.samples.classes[stored]):
                raise InvalidInputError("history.early has other samples than the forest")
        # Of a forest without samples: classes may have come later.
        if weights is not None and len(weights) > len(self.labels):
            raise InvalidInputError("balance_weights has more classes than there are")

    def predicting(self, ballot: Ballot | None = None) -> PredictingForest:
        """What a model file for predictions holds; ``ballot`` says how the forest votes."""
        return PredictingForest(self, ballot or Ballot(self.forest, self.balance_weights))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.standardization.mean)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.forest)

    @property
    def nbytes(self) -> int:
        """Bytes of all trees."""
        return self.forest.nbytes

    @property
    def samples(self) -> _core.Samples:
        """The training samples."""
        return self.forest.samples

    @property
    def has_training_rows(self) -> bool:
        """Whether the training samples are stored; False after loading an inference-only file."""
        return self.forest.keeps_rows

    @property
    def n_stored(self) -> int:
        """Number of samples that are stored."""
        return len(self.samples) - self.samples.n_removed

    @property
    def stored_ids(self) -> npt.NDArray[np.int64]:
        """Ids of the samples that are stored."""
        samples = self.forest.samples
        return np.asarray(samples.ids[samples.classes >= 0])

    def centroid(self, tree: int, node: int, index: int) -> npt.NDArray[np.float64]:
        """One class mean of a node, in the units of the input."""
        return self.standardization.undo_mean(self.forest.centroid(tree, node, index))

    def _blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        max_rows = max(64, min(16384, _PREDICT_BYTES // (8 * len(self.labels))))
        return float_blocks(X, max_rows)

    def ballot(self, balance: Balance, n_threads: int) -> Ballot:
        """How the forest votes with this balance; found when it is first asked for."""
        return self._ballot.of(self, balance, n_threads)

    def on(self, device: Device) -> PlacedForest:
        """The same forest on a device."""
        placed = object.__new__(PlacedForest)
        copy = self._on_devices.of(device, self.forest, self.standardization)
        vars(placed).update(vars(self), copy=copy)
        return placed

    def probabilities(
        self, X: npt.NDArray[Any], n_threads: int, balance: Balance = 0.0
    ) -> npt.NDArray[np.float64]:
        """Class probabilities of all rows."""
        blocks = self.probability_blocks(X, n_threads, balance=balance)
        return cast("npt.NDArray[np.float64]", fill_rows(X, blocks))

    def probability_blocks(
        self,
        X: npt.NDArray[Any],
        n_threads: int,
        reading: _core.LeafReading | None = None,
        balance: Balance = 0.0,
    ) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
        """Probabilities of one block of rows at a time: (rows, block).

        Mean class frequencies of the leaves [Ristin2014 Eq. 4], weighted by age of the trees.
        ``reading`` says how leaves are read whose samples have coarse or fine classes; then the
        votes of all trees count alike. ``balance`` says how much small classes are helped.
        """
        scale, ballot = self.standardization.core, self.ballot(balance, n_threads)
        votes = self._votes(reading)
        for rows, block in self._blocks(X):
            found = ballot.trees.predict_proba(block, scale, n_threads, reading, votes)
            yield rows, ballot.weighted(found)

    def _votes(self, reading: _core.LeafReading | None) -> _core.VoteWeights | None:
        """Weights of the votes by the age of the trees."""
        return self.history.ages.votes if reading is None else None

    def leaf_blocks(
        self, X: npt.NDArray[Any], n_threads: int
    ) -> Iterator[tuple[slice, npt.NDArray[np.int32]]]:
        """Leaf of every row in every tree, a block of rows at a time: (rows, block)."""
        for rows, block in self._blocks(X):
            yield rows, self.forest.apply(block, self.standardization.core, n_threads)

    def comparisons(self, X: npt.NDArray[Any], n_threads: int) -> int:
        """Number of distances computed to classify the rows, over all trees."""
        return sum(
            int(self.forest.comparisons(block, self.standardization.core, n_threads).sum())
            for _, block in self._blocks(X)
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedForest:
        """Share the value: it is immutable."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain arrays."""
        header, arrays = encode(self)
        return decode, (FittedForest, header, {k: np.asarray(a) for k, a in arrays.items()})


@dataclass(frozen=True, eq=False)
class PredictingForest:
    """A forest for a model file that only predicts: of the samples those that nodes compare with.

    Leaves count the virtual samples of the ballot as if they were real.
    """

    forest: FittedForest
    ballot: Ballot

    _stored: ClassVar[Fields] = FittedForest._stored

    def stored_fields(self) -> dict[str, Any]:
        """Return what a model file holds."""
        return {
            **vars(self.forest),
            **core_to_fields(self.ballot.trees, inference_only=True),
            "history": replace(self.forest.history, early=NO_EARLY_SAMPLES),
            "balance_weights": self.ballot.weights,
        }


class PlacedForest(FittedForest):
    """A forest that predicts on a device; its blocks are tensors there."""

    copy: DeviceForest

    def probability_blocks(
        self,
        X: npt.NDArray[Any],
        n_threads: int,
        reading: _core.LeafReading | None = None,
        balance: Balance = 0.0,
    ) -> Iterator[tuple[slice, Any]]:
        """Probabilities of one block of rows at a time: (rows, tensor)."""
        ballot = self.ballot(balance, n_threads)
        weights = None if ballot.weights is None else self.copy.device.tensor(ballot.weights)
        blocks = self.copy.probabilities(X, ballot.trees, reading, self._votes(reading))
        for rows, found in blocks:
            yield rows, weighted(found, weights)

    def leaf_blocks(self, X: npt.NDArray[Any], n_threads: int) -> Iterator[tuple[slice, Any]]:  # noqa: ARG002
        """Leaf of every row in every tree, a block of rows at a time: (rows, tensor)."""
        return self.copy.nodes(X)
