"""Guess the missing fine labels of stored and new samples together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.value.fitted import ForestBatch
from evergrow.estimators.subcategory.guess.fine_classes import guess_fine
from evergrow.estimators.subcategory.guess.guesser import Guesser
from evergrow.estimators.subcategory.guess.report import GuessReport
from evergrow.estimators.subcategory.labels.hierarchy import UNKNOWN, LabelTree
from evergrow.estimators.subcategory.request import GuessRequest
from evergrow.storage.shards import choose_rows

Classes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Samples(Protocol):
    """Samples with their coarse classes and their given fine classes, -1 where none was given."""

    @property
    def coarse(self) -> Classes:
        """Coarse classes."""

    @property
    def fine(self) -> Classes:
        """Fine classes, -1 where none was given."""

    def take(self, chosen: Mask) -> npt.NDArray[Any]:
        """Features of the chosen samples."""


@dataclass(frozen=True, eq=False)
class NewSamples:
    """The samples of one call; weights are None if all are 1."""

    X: npt.NDArray[Any]
    coarse: Classes
    fine: Classes
    weights: npt.NDArray[np.float64] | None

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.coarse)

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
    """Fine classes of all samples, guessed where wanted; -1 where none is known.

    ``groups`` are stored and new samples, for instance, and ``wanted`` are masks of the samples to
    guess; those of a coarse class without fine classes get no guess. ``tree`` has the classes of
    all samples; ``scale`` is one divided by the standard deviation of each feature.
    """
    fine = [group.fine.copy() for group in groups]
    pairs = [(g, mask & tree.is_divided[g.coarse]) for g, mask in zip(groups, wanted, strict=True)]
    classes = np.unique(np.concatenate([group.coarse[mask] for group, mask in pairs]))
    if not len(classes):
        return fine, None
    # With the labelled samples to guess from.
    pairs = [(g, mask | _labelled(g, classes, request.guesser)) for g, mask in pairs]
    found = guess_fine(
        np.concatenate([group.take(mask) for group, mask in pairs]),
        np.concatenate([group.coarse[mask] for group, mask in pairs]),
        np.concatenate([group.fine[mask] for group, mask in pairs]),
        # A coarse class has a number among the fine classes, but is not one of its own.
        np.where(tree.is_coarse, len(tree), tree.parents),
        guesser=request.guesser,
        scale=scale,
        n_jobs=request.n_jobs,
        random_state=request.seed % 2**32,
        verbose=request.verbose,
    )
    ends = np.cumsum([mask.sum() for _, mask in pairs])[:-1]
    for codes, (_, mask), part in zip(fine, pairs, np.split(found.fine, ends), strict=True):
        codes[mask] = part
    # With the names of coarse classes instead of their numbers.
    parts = (replace(part, coarse=tree.names[part.coarse]) for part in found.report.coarse)
    return fine, GuessReport(tuple(parts))


def _labelled(group: Samples, classes: Classes, guesser: Guesser) -> Mask:
    """Samples with a fine label that help to guess within these coarse classes."""
    labelled = np.asarray(group.fine != UNKNOWN)
    return labelled & np.isin(group.coarse, classes) if guesser.within else labelled
