"""The measures by name, and the data sets that each is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.subcategory import (
    backing_off,
    coarse_term,
    guesses,
    refining,
    regularised,
    tables,
)
from benchmarks.subcategory.data import DATA_SETS, TwoLevels
from benchmarks.subcategory.runs import Bench

__all__ = ["MEASURES", "Measure"]


@dataclass(frozen=True)
class Measure:
    """Something that is measured on one data set at a time."""

    run: Callable[[Bench, TwoLevels], None]
    data: tuple[str, ...] = tuple(DATA_SETS)


# What is most wanted comes first.
MEASURES: dict[str, Measure] = {
    "regularised": Measure(regularised.against_plain),
    "fine-share": Measure(tables.by_fine_share),
    "guesses": Measure(guesses.how_often_right),
    "refine": Measure(refining.refine, ("cifar",)),
    "metric": Measure(tables.by_metric),
    "coarse-classes": Measure(tables.on_coarse_classes),
    "leaves": Measure(tables.by_leaf_size),
    "scoring-samples": Measure(regularised.scoring_samples, ("cifar",)),
    "back-off": Measure(backing_off.back_off),
    "class-means": Measure(coarse_term.class_means),
    "coarse-weight": Measure(coarse_term.coarse_weight, ("cifar", "words")),
    "parameters": Measure(regularised.parameters, ("cifar", "cub")),
    "guess-forests": Measure(guesses.forests_after_guessing),
    "coarse-share": Measure(tables.by_coarse_share),
}
