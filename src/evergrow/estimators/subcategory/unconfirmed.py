"""Which stored samples nobody has given a fine label, and all stored samples with that in mind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.subcategory.hierarchy import UNKNOWN, LabelTree

__all__ = ["StoredSamples", "Unconfirmed"]

Ids = npt.NDArray[np.int64]
Classes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Unconfirmed:
    """Ids, sorted, of samples without a given fine label, and the coarse class of each.

    The coarse class is kept beside the sample's own: a fine class that was guessed regardless of
    the coarse one may be of another.
    """

    ids: Ids
    coarse: Classes

    @classmethod
    def of(cls, ids: Ids, coarse: Classes) -> Unconfirmed:
        """Any ids, each once."""
        order = np.argsort(ids)
        return cls(ids[order], coarse[order].astype(np.int32))

    @classmethod
    def none(cls) -> Unconfirmed:
        """Every sample has a fine label."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))

    def places(self, ids: Ids) -> tuple[Mask, npt.NDArray[np.intp]]:
        """Which of these ids are unconfirmed, and where those are."""
        if not len(self.ids):
            return np.zeros(len(ids), dtype=bool), np.zeros(0, dtype=np.intp)
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        found: Mask = self.ids[place] == ids
        return found, place[found]

    def also(self, ids: Ids, coarse: Classes) -> Unconfirmed:
        """These and more."""
        return Unconfirmed.of(
            np.concatenate([self.ids, ids]), np.concatenate([self.coarse, coarse])
        )

    def kept(self, ids: Ids) -> Unconfirmed:
        """Only those among some ids."""
        left = np.isin(self.ids, ids)
        return Unconfirmed(self.ids[left], self.coarse[left])

    def without(self, ids: Ids) -> Unconfirmed:
        """Those that are not among some ids."""
        left = ~np.isin(self.ids, ids)
        return Unconfirmed(self.ids[left], self.coarse[left])


@dataclass(frozen=True, eq=False)
class StoredSamples:
    """The samples a forest keeps: row number, id, class, coarse class, and whether it is sure.

    ``classes`` are the finest classes, given or guessed.
    """

    forest: FittedForest
    rows: Classes
    ids: Ids
    classes: Classes
    coarse: Classes
    is_confirmed: Mask
    tree: LabelTree

    @classmethod
    def of(cls, forest: FittedForest, unconfirmed: Unconfirmed, tree: LabelTree) -> StoredSamples:
        """All samples that are left, in the order of their ids."""
        samples = forest.forest.samples
        classes, ids = samples.classes, samples.ids
        # By id: a row's number may be another one after saving and loading.
        places = np.flatnonzero((classes >= 0) & forest.has_training_rows)
        rows = places[np.argsort(ids[places])].astype(np.int32)
        classes, ids = classes[rows], ids[rows]
        is_open, place = unconfirmed.places(ids)
        coarse = tree.parents[classes]
        coarse[is_open] = unconfirmed.coarse[place]
        return cls(forest, rows, ids, classes, coarse, ~is_open, tree)

    def relabelled(self, ids: Ids, classes: Classes) -> StoredSamples:
        """The same where some, which are stored, have other classes."""
        places = np.searchsorted(self.ids, ids)
        changed, coarse = self.classes.copy(), self.coarse.copy()
        changed[places] = classes
        # What was guessed before may have been of another coarse class.
        coarse[places] = self.tree.parents[classes]
        return replace(self, classes=changed, coarse=coarse)

    def without_fine(self, gone: list[int]) -> StoredSamples:
        """The same where samples of some fine classes have only their coarse one."""
        return replace(
            self, classes=np.where(np.isin(self.classes, gone), self.coarse, self.classes)
        )

    @cached_property
    def fine(self) -> Classes:
        """The fine class that was given, or -1."""
        given = self.is_confirmed & ~self.tree.is_coarse[self.classes]
        return np.where(given, self.classes, UNKNOWN).astype(np.int32)

    def take(self, chosen: Mask) -> npt.NDArray[Any]:
        """Features of some samples, in the units of the input."""
        early = self.forest.history.early
        if len(early):
            order = np.argsort(early.ids)
            found: npt.NDArray[Any] = early.X[order[np.searchsorted(early.ids[order], self.ids)]]
            return found[chosen]
        taken = self.forest.forest.samples.take(self.rows[chosen])
        stored = taken.view(np.float16) if taken.dtype == np.uint16 else taken
        return self.forest.standardization.undo(stored)
