"""What a forest of coarse and fine classes has learnt, as one value that never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.subcategory.hierarchy import LabelTree
from evergrow.estimators.subcategory.label_columns import listed
from evergrow.estimators.subcategory.methods import METHODS
from evergrow.estimators.subcategory.stacking import Stack
from evergrow.estimators.subcategory.unconfirmed import StoredSamples, Unconfirmed
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.labels import ClassList

__all__ = ["FittedSubcategories"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedSubcategories:
    """The tree of classes, a forest over their numbers, and what nobody has confirmed."""

    tree: LabelTree
    forest: FittedForest
    method: str
    unconfirmed: Unconfirmed
    stack: Stack | None = None

    @property
    def labels(self) -> ClassList:
        """The classes that can be predicted, in the order of their columns."""
        return self.tree.labels

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.forest.n_features if self.stack is None else self.stack.n_features

    @property
    def nbytes(self) -> int:
        """Bytes of all trees."""
        first = 0 if self.stack is None else int(self.stack.first.forest.nbytes)
        return first + int(self.forest.forest.nbytes)

    @cached_property
    def coarse_of_column(self) -> npt.NDArray[np.intp]:
        """By column the place of its coarse class among the coarse classes."""
        owners = self.tree.parents[self.tree.columns]
        return np.searchsorted(self.tree.coarse_ids, owners)

    def blocks(
        self, X: npt.NDArray[Any], n_threads: int
    ) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """Rows as the forest takes them."""
        if self.stack is None:
            yield slice(0, X.shape[0]), X
            return
        for rows, block in float_blocks(X):
            yield rows, self.stack.rows(block, n_threads)

    def probability_blocks(
        self, X: npt.NDArray[Any], n_threads: int, smoothing: float
    ) -> Iterator[tuple[slice, Floats]]:
        """Probabilities of the columns, a block of rows at a time: (rows, block)."""
        parents = self.tree.parents.tolist()
        reading = _core.LeafReading(parents, METHODS[self.method].reading, smoothing)
        for place, rows in self.blocks(X, n_threads):
            for part, block in self.forest.probability_blocks(rows, n_threads, reading):
                here = slice(place.start + part.start, place.start + part.stop)
                yield here, block[:, self.tree.columns]

    def coarse_sums(self, fine: Floats) -> Floats:
        """Probabilities of the coarse classes: the sums over their columns."""
        sums = np.zeros((len(fine), len(self.tree.coarse_ids)))
        for column, place in enumerate(self.coarse_of_column.tolist()):
            sums[:, place] += fine[:, column]
        return sums

    def comparisons(self, X: npt.NDArray[Any], n_threads: int) -> int:
        """Distances computed to classify the rows, over all trees."""
        first = 0 if self.stack is None else self.stack.first.comparisons(X, n_threads)
        blocks = self.blocks(X, n_threads)
        return first + sum(self.forest.comparisons(rows, n_threads) for _, rows in blocks)

    def guesses(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Ids of stored samples whose fine class nobody has confirmed, and that class."""
        stored = StoredSamples.of(self.forest, self.unconfirmed, self.tree)
        guessed = ~stored.is_confirmed & ~self.tree.is_coarse[stored.classes]
        if self.tree.fine is None:
            return stored.ids[guessed], np.zeros(0)
        places = np.searchsorted(self.tree.fine_ids, stored.classes[guessed])
        return stored.ids[guessed], self.tree.fine.classes[places]

    def check_names_are_clear(self) -> None:
        """Raise a ``ValueError`` if a name means one thing as a coarse and another as a fine class.

        A class that is its own only subcategory means the same at both levels.
        """
        tree = self.tree
        coarse = {tree.names[c]: c for c in np.flatnonzero(tree.is_divided).tolist()}
        n_fine = np.bincount(tree.parents[tree.fine_ids], minlength=len(tree))
        unclear = [
            tree.names[f]
            for f in tree.fine_ids.tolist()
            if (c := coarse.get(tree.names[f])) is not None
            and (tree.parents[f] != c or n_fine[c] > 1)
        ]
        if unclear:
            raise ValueError(
                f"{listed(unclear)} are names of fine and of coarse classes, so that an answer "
                "would not say which is meant: use predict_levels"
            )

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedSubcategories:
        """Share: nothing in here ever changes."""
        return self
