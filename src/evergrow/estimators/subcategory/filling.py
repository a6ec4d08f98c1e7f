"""Fine labels for samples that have none, of samples that have one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.estimators.subcategory.guess_report import GuessReport
from evergrow.estimators.subcategory.guesser import Guesser
from evergrow.estimators.subcategory.guessing import guess_fine
from evergrow.estimators.subcategory.hierarchy import UNKNOWN, CodedLabels, LabelTree

__all__ = ["Guess", "NewSamples", "Samples", "fill_missing"]

Classes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Samples(Protocol):
    """Samples with the coarse class of each and the fine one where it was given, else -1."""

    @property
    def coarse(self) -> Classes:
        """Coarse classes."""

    @property
    def fine(self) -> Classes:
        """Fine classes, -1 where none was given."""

    def take(self, chosen: Mask) -> npt.NDArray[Any]:
        """Features of some."""


@dataclass(frozen=True, eq=False)
class NewSamples:
    """Samples of a call."""

    X: npt.NDArray[Any]
    labels: CodedLabels

    @property
    def coarse(self) -> Classes:
        """Coarse classes."""
        return self.labels.coarse

    @property
    def fine(self) -> Classes:
        """Fine classes, -1 where none was given."""
        return self.labels.fine

    def take(self, chosen: Mask) -> npt.NDArray[Any]:
        """Features of some."""
        # In memory: whoever guesses compares all with all.
        return self.X[:] if chosen.all() else self.X[chosen]


@dataclass(frozen=True)
class Guess:
    """A way of guessing with all that it needs besides samples."""

    guesser: Guesser
    seed: int
    n_jobs: int | None
    verbose: int


def fill_missing(
    groups: Sequence[Samples],
    asked: Sequence[Mask],
    tree: LabelTree,
    guess: Guess,
    scale: npt.NDArray[np.float64],
) -> tuple[list[Classes], GuessReport | None]:
    """The fine class of all samples, guessed for those asked for; -1 where none is known.

    Parameters
    ----------
    groups : sequence of Samples
        Stored and new ones, for instance.
    asked : sequence of masks
        By group the samples whose fine class is to be guessed. Those of a coarse class without
        fine ones stay without.
    tree : LabelTree
        The classes of all of them.
    guess : Guess
        How to guess.
    scale : ndarray of shape (n_features,)
        One divided by the spread of each feature.
    """
    fine = [group.fine.copy() for group in groups]
    wanted = [
        mask & tree.is_divided[group.coarse] for group, mask in zip(groups, asked, strict=True)
    ]
    classes = np.unique(np.concatenate([g.coarse[m] for g, m in zip(groups, wanted, strict=True)]))
    chosen = [
        mask | _teachers(group, classes, guess.guesser)
        for group, mask in zip(groups, wanted, strict=True)
    ]
    if not len(classes):
        return fine, None
    found = guess_fine(
        np.concatenate([g.take(m) for g, m in zip(groups, chosen, strict=True)]),
        np.concatenate([g.coarse[m] for g, m in zip(groups, chosen, strict=True)]),
        np.concatenate([g.fine[m] for g, m in zip(groups, chosen, strict=True)]),
        # A coarse class is no fine class of its own, though it has a number among them.
        np.where(tree.is_coarse, len(tree), tree.parents),
        guesser=guess.guesser,
        scale=scale,
        n_jobs=guess.n_jobs,
        random_state=guess.seed % 2**32,
        verbose=guess.verbose,
    )
    ends = np.cumsum([mask.sum() for mask in chosen])[:-1]
    for classes_, mask, part in zip(fine, chosen, np.split(found.fine, ends), strict=True):
        classes_[mask] = part
    return fine, _named(found.report, tree)


def _teachers(group: Samples, classes: Classes, guesser: Guesser) -> Mask:
    """Samples with a fine label that tell something of the classes asked for."""
    labelled: Mask = group.fine != UNKNOWN
    return labelled & np.isin(group.coarse, classes) if guesser.within else labelled


def _named(report: GuessReport, tree: LabelTree) -> GuessReport:
    """The report with names of coarse classes instead of their numbers."""
    return GuessReport(
        tuple(replace(part, coarse=tree.names[part.coarse]) for part in report.coarse)
    )
