"""The measures by name, and the data sets that each is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.subcategory import (
    backing_off,
    fine_labels,
    guesses,
    refining,
    regularised,
)
from benchmarks.subcategory.bench import Bench
from benchmarks.subcategory.data import DATA_SETS, TwoLevels

__all__ = ["MEASURES", "Measure"]


@dataclass(frozen=True)
class Measure:
    """Something that is measured on one data set at a time."""

    run: Callable[[Bench, TwoLevels], None]
    data: tuple[str, ...] = tuple(DATA_SETS)


# What is most wanted comes first.
MEASURES: dict[str, Measure] = {
    "regularised": Measure(regularised.against_plain),
    "fine-share": Measure(fine_labels.by_fine_share),
    "guesses": Measure(guesses.how_often_right),
    "refine": Measure(refining.refine, ("cifar",)),
    "coarse-classes": Measure(fine_labels.on_coarse_classes),
    "leaves": Measure(fine_labels.by_leaf_size),
    "scoring-samples": Measure(regularised.scoring_samples, ("cifar",)),
    "back-off": Measure(backing_off.back_off),
    "guess-forests": Measure(guesses.forests_after_guessing),
}
