"""Updates at night: many classes at once, and time enough."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evergrow.research.datasets import mixture
from evergrow.research.experiments.contrasts import contrast
from evergrow.research.experiments.experiment import Experiment, Finding, Run, Source
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Table
from evergrow.research.papers.guide.learners import (
    LEARNERS,
    RECOMMENDED_FOREST,
    best,
    draw_curves,
    learner_of,
)
from evergrow.research.streams import ClassStream, follow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]


# Points of accuracy that are not worth a night.
LITTLE = 0.02
RETRAINED = "forest, retrained"


def _runs(lab: Lab) -> list[Run]:
    return [
        {"data": lab.names[0], "seed": seed, "learner": name}
        for name in LEARNERS
        for seed in lab.seeds()
    ]


def _measure(lab: Lab, run: Run) -> list[dict[str, Any]]:
    data = lab.dataset(run["data"])
    n_classes = len(data.classes)
    stream = ClassStream(max(1, n_classes // 2), max(1, n_classes // 10), random_state=run["seed"])
    learner = learner_of(lab, run["learner"], run["seed"])
    return [
        {
            **run,
            "classes": measured.n_classes,
            "accuracy": measured.accuracy,
            "newest": measured.newest,
            "seconds": measured.last_seconds,
        }
        for measured in follow(learner, data, stream)
    ]


PANELS = (
    ("accuracy", "accuracy, %", 100, "linear"),
    ("newest", "newest five classes, %", 100, "linear"),
    ("seconds", "one night, s", 1, "log"),
)


def _draw(figure: Figure, table: Table) -> None:
    for axes, (column, label, factor, kind) in zip(figure.subplots(1, 3), PANELS, strict=True):
        draw_curves(axes, table, "classes", column, scale=factor)
        axes.set_yscale(kind)
        axes.set_xlabel("classes known")
        axes.set_ylabel(label)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center")


def _judge(table: Table) -> Sequence[Finding]:
    end = table.where(classes=table.values("classes")[-1])
    name, accuracy = best(end, tuple(n for n in LEARNERS if n != RETRAINED))
    lead = contrast(end, "accuracy", {"learner": name}, {"learner": RETRAINED})
    baseline = end.mean("accuracy", learner=RETRAINED)
    rust, rtst = (end.mean("accuracy", learner=n) for n in (RECOMMENDED_FOREST, "forest, RTST"))
    closest = RECOMMENDED_FOREST if rust > rtst else "forest, RTST"
    seconds = {n: end.mean("seconds", learner=n) for n in LEARNERS}
    return [
        Finding(
            "With a night for every update, retraining the forest gains little over updating it, "
            f"less than {100 * LITTLE:.0f} points.",
            f"Retrained {baseline:.1%} in {seconds[RETRAINED]:.1f} s, RTST {rtst:.1%} in "
            f"{seconds['forest, RTST']:.1f} s, {RECOMMENDED_FOREST} {rust:.1%} in "
            f"{seconds[RECOMMENDED_FOREST]:.1f} s.",
            contrast(end, "accuracy", {"learner": closest}, {"learner": RETRAINED}).above(-LITTLE),
        ),
        Finding(
            "A learner that is never retrained is more accurate than the retrained forest.",
            f"{name} has {accuracy:.1%} in {seconds[name]:.1f} s, the retrained forest "
            f"{baseline:.1%}.",
            lead.verdict,
        ),
    ]


EXPERIMENT = Experiment(
    name="guide-nightly",
    title="You update at night",
    shows="accuracy and time of every learner when a tenth of the classes comes at a time",
    sources={
        "features": Source("cifar100_efflite0_pca256.npz", partial(mixture, 20, 64, 100, 20)),
    },
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "learner", "classes", "seed"),
    exact=("accuracy", "newest"),
    timed=("seconds",),
    size=(11, 3.0),
    notes=("Not of any paper. Half of the classes are known at first.",),
)
