"""Fine labels for samples that have none, of samples that have one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.subcategory.hierarchy import UNKNOWN, CodedLabels, LabelTree

__all__ = ["NewSamples", "Samples", "fill_missing"]

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
        return self.X if chosen.all() else self.X[chosen]


def fill_missing(
    groups: Sequence[Samples], asked: Sequence[Mask], tree: LabelTree, guess: Guess
) -> tuple[list[Classes], GuessReport | None]:
    """The fine class of all samples, guessed for those asked for; -1 where none is known.

    Parameters
    ----------
    groups : sequence of Samples
        Stored and new ones, for instance.
    asked : sequence of masks
        By group the samples whose fine class is to be guessed. Those of a coarse class without
        fine ones stay without.
    """
    wanted = [
        mask & tree.is_divided[group.coarse] for group, mask in zip(groups, asked, strict=True)
    ]
    fine = [group.fine.copy() for group in groups]
    classes = np.unique(np.concatenate([g.coarse[m] for g, m in zip(groups, wanted, strict=True)]))
    if not len(classes):
        return fine, None
    # Samples that nobody asks about would only cost.
    chosen = [
        mask | ((group.fine != UNKNOWN) & guess.learns_from(group.coarse, classes))
        for group, mask in zip(groups, wanted, strict=True)
    ]
    guessed, report = guess(
        np.concatenate([g.take(m) for g, m in zip(groups, chosen, strict=True)]),
        np.concatenate([g.coarse[m] for g, m in zip(groups, chosen, strict=True)]),
        np.concatenate([g.fine[m] for g, m in zip(groups, chosen, strict=True)]),
        tree.parents,
    )
    ends = np.cumsum([mask.sum() for mask in chosen])[:-1]
    for found, mask, part in zip(fine, chosen, np.split(guessed, ends), strict=True):
        found[mask] = part
    return fine, report
