"""Thousands of classes: what one more costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from evergrow.research.datasets import Dataset, mixture
from evergrow.research.experiments.contrasts import contrast
from evergrow.research.experiments.contrasts import shown as shown_of
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Table
from evergrow.research.papers.guide.learners import (
    FIXED_SQUARES,
    RECOMMENDED_FOREST,
    draw_curves,
    learner_of,
)
from evergrow.research.streams import ClassStream, follow, model_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

# Retraining and re-training subtrees of thousands of classes once per class would take hours.
NAMES = (
    "least squares",
    FIXED_SQUARES,
    "class means",
    "streaming LDA",
    "forest, IGT",
    RECOMMENDED_FOREST,
)

SIMPLE = (FIXED_SQUARES, "class means", "streaming LDA")

# New classes, one at a time, after all others are known.
N_NEW = 5


def _runs(lab: Lab) -> list[Run]:
    return [
        {"seed": seed, "classes": classes, "learner": name}
        for classes in lab.scaled((100, 300, 1000, 3000), (50, 200))
        for name in NAMES
        for seed in lab.seeds()
    ]


@cache
def _generated(n_classes: int, seed: int) -> Dataset:
    return mixture(n_classes, 128, 20, 4, distance=0.6, random_state=seed)


def _measure(lab: Lab, run: Run) -> list[dict[str, Any]]:
    n, seed = run["classes"], run["seed"]
    data = _generated(n, seed)
    stream = ClassStream(n - N_NEW, random_state=seed, measure_at=[n - N_NEW, n])
    learner = learner_of(lab, run["learner"], seed)
    before, after = follow(learner, data, stream)
    start = time.perf_counter()
    learner.predict(data.X_test[:1000])
    answer = (time.perf_counter() - start) / min(1000, len(data.X_test))
    return [
        {
            **run,
            "accuracy": after.accuracy,
            "newest": after.newest,
            "megabytes": model_bytes(learner) / 1e6,
            "seconds": (after.seconds - before.seconds) / N_NEW,
            "milliseconds_per_answer": 1000 * answer,
        }
    ]


PANELS = (
    ("accuracy", "accuracy, %", 100, "linear"),
    ("seconds", "one more class, s", 1, "log"),
    ("milliseconds_per_answer", "one answer, ms", 1, "log"),
)


def _draw(figure: Figure, table: Table) -> None:
    for axes, (column, label, factor, kind) in zip(figure.subplots(1, 3), PANELS, strict=True):
        draw_curves(axes, table, "classes", column, scale=factor)
        axes.set_xscale("log")
        axes.set_yscale(kind)
        axes.set_xlabel("classes known")
        axes.set_ylabel(label)
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center")


def _judge(table: Table) -> Sequence[Finding]:
    points = table.values("classes")
    few, many = (table.where(classes=n) for n in (points[0], points[-1]))
    seconds = {name: [part.mean("seconds", learner=name) for part in (few, many)] for name in NAMES}
    forest = seconds[RECOMMENDED_FOREST]
    shown = ", ".join(
        f"{name} {after:.3f} s ({after / before:.1f} times as long as with {points[0]})"
        for name, (before, after) in seconds.items()
    )
    sides = ({"learner": name} for name in ("least squares", RECOMMENDED_FOREST))
    lead = contrast(many, "accuracy", *sides)
    return [
        Finding(
            "With thousands of classes take class means, streaming LDA, or least squares whose "
            "penalty and recoding are given: each learns one more class faster than the forest.",
            f"At {points[-1]} classes one more takes {shown}.",
            all(seconds[name][1] < forest[1] for name in SIMPLE),
        ),
        Finding(
            "Least squares are no less accurate than the forest with many classes.",
            f"At {points[-1]} classes they have {shown_of(many, 'accuracy', learner=NAMES[0])}, "
            f"the forest {shown_of(many, 'accuracy', learner=RECOMMENDED_FOREST)}.",
            lead.above(-0.01),
        ),
    ]


EXPERIMENT = Experiment(
    name="guide-many-classes",
    title="You have thousands of classes",
    shows="accuracy, time of one more class and of one answer, with up to 3000 classes known",
    sources={},
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("learner", "classes", "seed"),
    exact=("accuracy", "newest", "megabytes"),
    timed=("seconds", "milliseconds_per_answer"),
    size=(11, 3.0),
    notes=(
        "Not of any paper. Generated Gaussian classes of 128 features, 20 samples each: real data "
        "with thousands of classes are not at hand, and Gaussian classes suit class means.",
    ),
)
