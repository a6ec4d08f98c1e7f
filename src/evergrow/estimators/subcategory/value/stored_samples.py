"""The stored samples, and which of them were not given a fine label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.storage.models.codec import Array, Fields

Ids = npt.NDArray[np.int64]
Classes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class UnconfirmedSamples:
    """Sorted ids of samples without a given fine label, and their given, coarser classes.

    The given class is stored because a guess may be on any level below it.
    """

    ids: Ids
    coarse: Classes

    _stored: ClassVar[Fields] = {
        "ids": Array(np.int64, ("unconfirmed",), order="distinct"),
        "coarse": Array(np.int32, ("unconfirmed",)),
    }

    @classmethod
    def of(cls, ids: Ids, coarse: Classes) -> UnconfirmedSamples:
        """Sort the samples by their ids, which must be distinct."""
        order = np.argsort(ids)
        return cls(ids[order], coarse[order].astype(np.int32))

    @classmethod
    def none(cls) -> UnconfirmedSamples:
        """No samples: all have a fine label."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))

    def places(self, ids: Ids) -> tuple[Mask, npt.NDArray[np.intp]]:
        """Which of these ids are unconfirmed, and the positions of those."""
        if not len(self.ids):
            return np.zeros(len(ids), dtype=bool), np.zeros(0, dtype=np.intp)
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        found = np.equal(self.ids[place], ids)
        return found, place[found]

    def with_samples(self, ids: Ids, coarse: Classes) -> UnconfirmedSamples:
        """These samples and more."""
        return UnconfirmedSamples.of(
            np.concatenate([self.ids, ids]), np.concatenate([self.coarse, coarse])
        )

    def among(self, ids: Ids) -> UnconfirmedSamples:
        """Only the samples with these ids."""
        left = np.isin(self.ids, ids)
        return UnconfirmedSamples(self.ids[left], self.coarse[left])

    def without(self, ids: Ids) -> UnconfirmedSamples:
        """The samples without those with these ids."""
        left = ~np.isin(self.ids, ids)
        return UnconfirmedSamples(self.ids[left], self.coarse[left])


@dataclass(frozen=True, eq=False)
class StoredSamples:
    """Stored samples: row number, id, class that trees have, and class that was given of each.

    A sample is confirmed if its given class needs no finer one; otherwise the class that trees have
    may be a guess.
    """

    forest: FittedForest
    rows: Classes
    ids: Ids
    classes: Classes
    known: Classes
    is_confirmed: Mask
    tree: LabelTree

    @classmethod
    def of(
        cls, forest: FittedForest, unconfirmed: UnconfirmedSamples, tree: LabelTree
    ) -> StoredSamples:
        """All stored samples, in the order of their ids."""
        samples = forest.forest.samples
        classes, ids = samples.classes, samples.ids
        # By id: row numbers may change when a model is saved and loaded.
        places = np.flatnonzero((classes >= 0) & forest.has_training_rows)
        rows = places[np.argsort(ids[places])].astype(np.int32)
        classes, ids = classes[rows], ids[rows]
        is_bare, place = unconfirmed.places(ids)
        known = classes.copy()
        known[is_bare] = unconfirmed.coarse[place]
        # A class may have been divided since its samples came.
        return cls(forest, rows, ids, classes, known, ~(is_bare | tree.is_divided[known]), tree)

    @property
    def unconfirmed(self) -> UnconfirmedSamples:
        """The samples that are not confirmed."""
        return UnconfirmedSamples(self.ids[~self.is_confirmed], self.known[~self.is_confirmed])

    @property
    def guesses_fit(self) -> bool:
        """Whether the class of each sample is the given one or below it."""
        above = self.tree.paths[self.classes, self.tree.depths[self.known]]
        return np.array_equal(above, self.known)

    def given_classes(self, ids: Ids) -> Classes:
        """The given classes of stored samples."""
        return self.known[np.searchsorted(self.ids, ids)]

    def relabelled(self, ids: Ids, classes: Classes) -> StoredSamples:
        """The same, with other given classes for some stored samples."""
        places = np.searchsorted(self.ids, ids)
        changed, known, confirmed = self.classes.copy(), self.known.copy(), self.is_confirmed.copy()
        changed[places] = classes
        known[places] = classes
        confirmed[places] = ~self.tree.is_bare[classes]
        return replace(self, classes=changed, known=known, is_confirmed=confirmed)

    def without_classes(self, gone: list[int]) -> StoredSamples:
        """The same, with the class above as the given one for samples of some classes."""
        known = self.known
        for _ in range(self.tree.n_levels - 1):
            known = np.where(np.isin(known, gone), self.tree.parents[known], known)
        return replace(self, known=known)

    def take(self, chosen: Mask) -> npt.NDArray[Any]:
        """Features of the chosen samples, in the units of the input."""
        early = self.forest.history.early
        if len(early):
            order = np.argsort(early.ids)
            places = order[np.searchsorted(early.ids[order], self.ids)]
            return np.asarray(early.X[places][chosen])
        taken = self.forest.forest.samples.take(self.rows[chosen])
        stored = taken.view(np.float16) if taken.dtype == np.uint16 else taken
        return self.forest.standardization.undo(stored)
