"""Guess the missing fine labels of stored and new samples together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import ForestBatch
from evergrow.estimators.subcategory.guess import CoarseGuesses, GuessReport, guess_fine
from evergrow.estimators.subcategory.label_tree import UNKNOWN, LabelTree
from evergrow.estimators.subcategory.request import GuessRequest
from evergrow.storage.shards import choose_rows

Classes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Samples(Protocol):
    """Samples with their given classes, on any level."""

    @property
    def known(self) -> Classes:
        """The finest class that was given of each."""

    def take(self, chosen: Mask) -> npt.NDArray[Any]:
        """Features of the chosen samples."""


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
    groups: Sequence[Samples],
    wanted: Sequence[Mask],
    tree: LabelTree,
    request: GuessRequest,
    scale: npt.NDArray[np.float64],
) -> tuple[list[Classes], GuessReport | None]:
    """Classes of all samples: the given ones, and finer ones that are guessed where wanted.

    ``groups`` are stored and new samples, for instance, and ``wanted`` are masks of the samples to
    guess. Guesses go level by level from the given class down, each among the classes below the
    class so far; a class without finer ones ends them. ``tree`` has the classes of all samples;
    ``scale`` is one divided by the standard deviation of each feature.
    """
    classes = [group.known.copy() for group in groups]
    parts: list[CoarseGuesses] = []
    used = [np.zeros(len(own), dtype=bool) for own in classes]
    for depth in range(tree.n_levels - 1):
        found = _fill_level(groups, wanted, classes, used, depth, tree, request, scale)
        # With the names of classes instead of their numbers.
        parts += [replace(part, coarse=tree.names[part.coarse], level=depth) for part in found]
    once = _count_once(groups, wanted, classes, used, tree) if tree.n_levels > 2 else None
    return classes, GuessReport(tuple(parts), once) if parts else None


def _count_once(
    groups: Sequence[Samples],
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
    groups: Sequence[Samples],
    wanted: Sequence[Mask],
    classes: list[Classes],
    used: list[Mask],
    depth: int,
    tree: LabelTree,
    request: GuessRequest,
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
        mask | _labelled(group, above, depth, tree)
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
        guesser=request.guesser,
        scale=scale,
        n_jobs=request.n_jobs,
        random_state=request.seed % 2**32,
        verbose=request.verbose,
    )
    ends = np.cumsum([mask.sum() for mask in masks])[:-1]
    guesses = np.split(np.where(is_asked, found.fine, UNKNOWN), ends)
    for codes, mask, part in zip(classes, masks, guesses, strict=True):
        codes[mask] = np.where(part == UNKNOWN, codes[mask], part)
    return found.report.coarse


def _labelled(group: Samples, above: Classes, depth: int, tree: LabelTree) -> Mask:
    """Samples with a given class below this depth that help to guess below these classes."""
    is_below = np.isin(tree.paths[group.known, depth], above)
    return np.asarray(is_below & (tree.depths[group.known] > depth))
