"""What a forest of coarse and fine classes has learnt, as one immutable value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.methods import METHODS, PROPOSER, Stacked
from evergrow.estimators.subcategory.samples import StoredSamples, UnconfirmedSamples
from evergrow.foundation.device import Device, to_host
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Choice, Flag, Integer, Number
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.codec import MOST_COUNTED, Fields, Nested

Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=16)
def _leaf_reading(parents: tuple[int, ...], name: str, smoothing: float) -> _core.LeafReading:
    """How leaves are read: always the same object, so that a device reads them once."""
    return _core.LeafReading(list(parents), name, smoothing)


@dataclass(frozen=True, eq=False)
class Stack:
    """The first of two stacked forests, which predicts coarse classes [Ristin2015 Sec. 4.1].

    Its probabilities, times ``scale``, are appended to the features of the second forest. The
    features are standardised here and not in the second forest, which would also divide the
    probabilities by their standard deviation and so undo ``scale``.

    ``learns_all`` says that all samples so far had a fine label, so that the first forest learnt
    from them: it has no others. ``n_learnt`` is the number of samples that the first forest has
    learnt from so far, and ``n_grown`` what it was when the second was last grown.
    """

    first: FittedForest
    features: Standardization
    scale: float
    learns_all: bool = False
    n_learnt: int = 0
    n_grown: int = 0

    _stored: ClassVar[Fields] = {
        "first": Nested(FittedForest, apart=True),
        "features": Nested(Standardization, apart=True),
        "scale": [Number(0.0)],
        "learns_all": [Flag()],
        "n_learnt": [Integer(0, MOST_COUNTED)],
        "n_grown": [Integer(0, MOST_COUNTED)],
    }

    @property
    def n_features(self) -> int:
        """Number of features of the input."""
        return self.first.n_features

    def rows(self, X: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.float64]:
        """Features for the second forest."""
        n_features, n_classes = self.n_features, len(self.first.labels)
        out = np.zeros((X.shape[0], n_features + n_classes))
        for rows, block in self.first.probability_blocks(X, n_threads):
            # Classes that came without samples for the first forest have a probability of zero.
            out[rows, n_features : n_features + block.shape[1]] = self.scale * to_host(block)
            plain = np.asarray(X[rows], dtype=np.float64)
            out[rows, :n_features] = (plain - self.features.mean) * self.features.scale
        return out

    def plain_features(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The features of the input, from rows of the second forest."""
        own = np.asarray(rows[:, : self.n_features], dtype=np.float64)
        return own / self.features.scale + self.features.mean


def _check_forest(forest: FittedForest, tree: LabelTree) -> None:
    if forest.proposer != PROPOSER:
        raise InvalidInputError(f"its trees are those of another kind, {forest.proposer!r}")
    if forest.labels.classes.tolist() != tree.core_labels.classes.tolist():
        raise InvalidInputError("the classes of its forest are not those of its hierarchy")


@dataclass(frozen=True, eq=False)
class FittedSubcategories:
    """The tree of classes, a forest over their numbers, and the samples with unconfirmed labels."""

    tree: LabelTree
    forest: FittedForest
    method: str
    unconfirmed: UnconfirmedSamples
    stack: Stack | None = None

    _stored: ClassVar[Fields] = {
        "tree": Nested(LabelTree),
        "forest": Nested(FittedForest, apart=True),
        "method": [Choice(tuple(METHODS))],
        "unconfirmed": Nested(UnconfirmedSamples),
        "stack": Nested(Stack, optional=True, apart=True),
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the parts do not suit each other."""
        tree, stack, samples = self.tree, self.stack, self.unconfirmed
        _check_forest(self.forest, tree)
        bare = np.flatnonzero(tree.is_bare)
        known = np.isin(samples.coarse, bare) & np.isin(samples.ids, self.forest.stored_ids)
        if not known.all() or not StoredSamples.of(self.forest, samples, tree).guesses_fit:
            raise InvalidInputError("its unconfirmed samples are not those of the forest")
        if (stack is not None) != isinstance(METHODS[self.method], Stacked):
            raise InvalidInputError(f"it has the wrong number of forests for {self.method!r}")
        if stack is None:
            return
        _check_forest(stack.first, tree.coarse_level())
        widths = len(stack.features.mean), self.forest.n_features - len(tree.coarse_ids)
        if {*widths} != {stack.n_features}:
            raise InvalidInputError("the features of its two forests do not match")
        if self.forest.has_training_rows and not stack.first.has_training_rows:
            raise InvalidInputError("it lacks the samples of the first of its two forests")

    def predicting(self) -> FittedSubcategories:
        """What a model file for predictions holds."""
        stack: Any = self.stack
        return FittedSubcategories(
            self.tree,
            cast(Any, self.forest.predicting()),
            self.method,
            UnconfirmedSamples.none(),
            None if stack is None else replace(stack, first=stack.first.predicting()),
        )

    @property
    def labels(self) -> ClassList:
        """The classes that can be predicted, in column order."""
        return self.tree.labels

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.forest.n_features if self.stack is None else self.stack.n_features

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.forest.n_trees

    @property
    def standardization(self) -> Standardization:
        """The transform of the features."""
        return self.forest.standardization

    @property
    def samples(self) -> _core.Samples:
        """The training samples."""
        return self.forest.samples

    @property
    def stored_ids(self) -> npt.NDArray[np.int64]:
        """Ids of the samples that are stored."""
        if self.stack is None:
            return self.forest.stored_ids
        return np.union1d(self.forest.stored_ids, self.stack.first.stored_ids)

    @property
    def nbytes(self) -> int:
        """Bytes of all trees."""
        first = 0 if self.stack is None else self.stack.first.nbytes
        return first + self.forest.nbytes

    def place_of_column(self, level: int) -> npt.NDArray[np.intp]:
        """For each column, the place of its class among those of a level."""
        tree = self.tree
        # A column above the level stands for itself.
        depths = np.minimum(tree.depths[tree.columns], level)
        owners = tree.paths[tree.columns, depths]
        ids = tree.level_ids(level)
        order = np.argsort(ids)
        return order[np.searchsorted(ids[order], owners)]

    def on(self, device: Device) -> FittedSubcategories:
        """The same forests on a device."""
        stack = self.stack
        placed = None if stack is None else replace(stack, first=stack.first.on(device))
        return replace(self, forest=self.forest.on(device), stack=placed)

    def blocks(
        self, X: npt.NDArray[Any], n_threads: int
    ) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Rows as the forest takes them, a block at a time: (rows, block)."""
        if self.stack is None:
            yield slice(0, X.shape[0]), X
            return
        for rows, block in float_blocks(X):
            yield rows, self.stack.rows(block, n_threads)

    def probability_blocks(
        self, X: npt.NDArray[Any], n_threads: int, smoothing: float
    ) -> Iterator[tuple[slice, Floats]]:
        """Probabilities of the columns, a block of rows at a time: (rows, block)."""
        parents = tuple(self.tree.parents.tolist())
        reading = _leaf_reading(parents, METHODS[self.method]._reading, smoothing)
        for place, rows in self.blocks(X, n_threads):
            for part, block in self.forest.probability_blocks(rows, n_threads, reading):
                here = slice(place.start + part.start, place.start + part.stop)
                yield here, to_host(block)[:, self.tree.columns]

    def level_sums(self, fine: Floats, level: int) -> Floats:
        """Probabilities of the classes of a level: the sums over their columns."""
        if level == self.tree.n_levels - 1:
            return fine
        sums = np.zeros((len(fine), len(self.tree.level_ids(level))))
        for column, place in enumerate(self.place_of_column(level).tolist()):
            sums[:, place] += fine[:, column]
        return sums

    def leaf_blocks(
        self, X: npt.NDArray[Any], n_threads: int
    ) -> Iterator[tuple[slice, npt.NDArray[np.int32]]]:
        """Leaf of every row in every tree, a block of rows at a time: (rows, block)."""
        for place, rows in self.blocks(X, n_threads):
            for part, block in self.forest.leaf_blocks(rows, n_threads):
                yield slice(place.start + part.start, place.start + part.stop), to_host(block)

    def comparisons(self, X: npt.NDArray[Any], n_threads: int) -> int:
        """Distances computed to classify the rows, over all trees."""
        first = 0 if self.stack is None else self.stack.first.comparisons(X, n_threads)
        blocks = self.blocks(X, n_threads)
        return first + sum(self.forest.comparisons(rows, n_threads) for _, rows in blocks)

    def guesses(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Ids and fine classes of stored samples whose fine class is a guess."""
        stored = StoredSamples.of(self.forest, self.unconfirmed, self.tree)
        guessed = ~stored.is_confirmed & (stored.classes != stored.known)
        return stored.ids[guessed], self.tree.named(stored.classes[guessed])

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedSubcategories:
        """Return the same value: it is immutable."""
        return self
