"""New and stored samples, the classes given to them, and guesses of missing fine labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import FittedForest, ForestBatch
from evergrow.estimators.subcategory.guess import CoarseGuesses, GuessReport, guess_fine
from evergrow.estimators.subcategory.label_tree import UNKNOWN, Classes, LabelTree, Mask
from evergrow.storage.models.codec import Array, Fields
from evergrow.storage.shards import choose_rows

Ids = npt.NDArray[np.int64]


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

    def with_samples(self, ids: Ids, coarse: Classes) -> UnconfirmedSamples:
        """These samples and more."""
        return UnconfirmedSamples.of(
            np.concatenate([self.ids, ids]), np.concatenate([self.coarse, coarse])
        )

    def among(self, ids: Ids) -> UnconfirmedSamples:
        """Only the samples with these ids."""
        left = np.isin(self.ids, ids)
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
        is_bare, known = np.isin(ids, unconfirmed.ids), classes.copy()
        # Both are in the order of their ids.
        known[is_bare] = unconfirmed.among(ids).coarse
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


@dataclass(frozen=True, eq=False)
class NewSamples:
    """The samples of one call and their given classes; weights are None if all are 1."""

    X: npt.NDArray[Any]
    known: Classes
    weights: npt.NDArray[np.float64] | None

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.known)

    def batch(self, chosen: Mask, codes: Classes, ids: npt.NDArray[np.int64]) -> ForestBatch:
        """The chosen samples, with the classes and ids of all samples."""
        X = self.X if chosen.all() else choose_rows(self.X, chosen)
        weights = None if self.weights is None else self.weights[chosen]
        return ForestBatch(X, codes[chosen], ids[chosen], weights)

    def take(self, chosen: Mask) -> npt.NDArray[Any]:
        """Features of the chosen samples."""
        # Read into memory: guessers compare all samples with each other.
        return self.X[:] if chosen.all() else self.X[chosen]


def fill_missing(
    groups: Sequence[StoredSamples | NewSamples],
    wanted: Sequence[Mask],
    tree: LabelTree,
    options: Mapping[str, Any],
    scale: npt.NDArray[np.float64],
) -> tuple[list[Classes], GuessReport | None]:
    """Classes of all samples: the given ones, and finer ones that are guessed where wanted.

    ``groups`` are stored and new samples, for instance, and ``wanted`` are masks of the samples to
    guess. Guesses go level by level from the given class down, each among the classes below the
    class so far; a class without finer ones ends them. ``tree`` has the classes of all samples,
    ``options`` are those of :func:`guess_fine`, and ``scale`` is one divided by the standard
    deviation of each feature.
    """
    classes = [group.known.copy() for group in groups]
    parts: list[CoarseGuesses] = []
    used = [np.zeros(len(own), dtype=bool) for own in classes]
    for depth in range(tree.n_levels - 1):
        found = _fill_level(groups, wanted, classes, used, depth, tree, options, scale)
        # With the names of classes instead of their numbers.
        parts += [replace(part, coarse=tree.names[part.coarse], level=depth) for part in found]
    once = _count_once(groups, wanted, classes, used, tree) if tree.n_levels > 2 else None
    return classes, GuessReport(tuple(parts), once) if parts else None


def _count_once(
    groups: Sequence[StoredSamples | NewSamples],
    wanted: Sequence[Mask],
    classes: Sequence[Classes],
    used: Sequence[Mask],
    tree: LabelTree,
) -> tuple[int, int, int]:
    """Numbers of samples that are known, that miss a class and that got a guess."""
    n_known = n_missing = n_guessed = 0
    for group, mask, own, part in zip(groups, wanted, classes, used, strict=True):
        missing = mask & tree.is_divided[group.known]
        n_known += int((part & ~missing).sum())
        n_missing += int(missing.sum())
        n_guessed += int((own != group.known).sum())
    return n_known, n_missing, n_guessed


def _fill_level(
    groups: Sequence[StoredSamples | NewSamples],
    wanted: Sequence[Mask],
    classes: list[Classes],
    used: list[Mask],
    depth: int,
    tree: LabelTree,
    options: Mapping[str, Any],
    scale: npt.NDArray[np.float64],
) -> Sequence[CoarseGuesses]:
    """Replace classes at this depth, where wanted, by guesses of a class below.

    ``used`` gets the samples that were guessed or helped to guess.
    """
    asked = [
        mask & (tree.depths[own] == depth) & tree.is_divided[own]
        for own, mask in zip(classes, wanted, strict=True)
    ]
    above = np.unique(np.concatenate([own[m] for own, m in zip(classes, asked, strict=True)]))
    if not len(above):
        return ()
    # With the labelled samples to guess from.
    masks = [
        mask | np.isin(tree.paths[group.known, depth], above) & (tree.depths[group.known] > depth)
        for group, mask in zip(groups, asked, strict=True)
    ]
    for seen, mask in zip(used, masks, strict=True):
        np.logical_or(seen, mask, out=seen)
    own, given = (
        np.concatenate([part[mask] for part, mask in zip(parts, masks, strict=True)])
        for parts in (classes, [group.known for group in groups])
    )
    is_asked = np.concatenate([a[mask] for a, mask in zip(asked, masks, strict=True)])
    found = guess_fine(
        np.concatenate([group.take(mask) for group, mask in zip(groups, masks, strict=True)]),
        np.where(is_asked, own, tree.paths[given, depth]),
        np.where(is_asked, UNKNOWN, tree.paths[given, depth + 1]),
        # A class of another level has a number too, but is not below any of these.
        np.where(tree.depths == depth + 1, tree.parents, len(tree)),
        scale=scale,
        **options,
    )
    ends = np.cumsum([mask.sum() for mask in masks])[:-1]
    guesses = np.split(np.where(is_asked, found.fine, UNKNOWN), ends)
    for codes, mask, part in zip(classes, masks, guesses, strict=True):
        codes[mask] = np.where(part == UNKNOWN, codes[mask], part)
    return found.report.coarse
