"""A few images per class: which learner needs the fewest."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, digits, mixture
from evergrow.research.papers.guide import learners
from evergrow.research.streams import ClassStream, follow

INCREMENTAL = tuple(name for name in learners.LEARNERS if "retrained" not in name)


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    images = context.scaled((1, 3, 10), (1, 10))
    return context.grid(
        data=context.names, images=images, learner=learners.LEARNERS, seed=context.seeds()
    )


def few_of_each(data: Dataset, n_images: int, seed: int) -> Dataset:
    """Draw ``n_images`` training samples of every class at random."""
    order = np.random.default_rng(seed).permutation(len(data.y_train))
    mixed = replace(data, X_train=data.X_train[order], y_train=data.y_train[order])
    return mixed.per_class(n_images)


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data = few_of_each(context.dataset(run["data"]), run["images"], run["seed"])
    chunk = max(1, len(data.classes) // 10)
    end = [len(data.classes)]
    stream = ClassStream(max(2, chunk), chunk, random_state=run["seed"], measure_at=end)
    learner = learners.learner_of(context, run["learner"], run["seed"])
    (last,) = follow(learner, data, stream)
    accuracy = float(np.nanmean(last.class_accuracies))
    return [{**run, "accuracy": accuracy, "seconds": last.last_seconds}]


def draw(figure: ex.Figure, table: ex.Table) -> None:
    names = table.values("data")
    *panels, right = figure.subplots(1, len(names) + 1)
    for axes, name in zip(panels, names, strict=True):
        learners.draw_curves(axes, table.where(data=name), "images", "accuracy", scale=100)
        axes.set_title(name)
        axes.set_ylabel("mean accuracy of a class, %")
    learners.draw_curves(right, table.where(data=names[0]), "images", "seconds")
    right.set_title(names[0])
    right.set_ylabel("last update, s")
    right.set_yscale("log")
    for axes in (*panels, right):
        axes.set_xlabel("images per class")
        ex.set_log_ticks(axes, table.values("images"))
    ex.add_legend(figure, right, place="right center")


def judge(table: ex.Table) -> list[ex.Finding]:
    findings = []
    for data in table.values("data"):
        for images in (n for n in table.values("images") if n <= 5):
            few = table.where(data=data, images=images)
            linear = [name for name in INCREMENTAL if "forest" not in name]
            forests = [name for name in learners.LEARNERS if "forest" in name]
            (name, accuracy), (forest, other) = (
                learners.best(few, linear),
                learners.best(few, forests),
            )
            lead = ex.compare_means(few, "accuracy", {"learner": name}, {"learner": forest})
            shown = "image" if images == 1 else "images"
            findings.append(
                ex.Finding(
                    f"With {images} {shown} per class of {data}, least squares or class means "
                    "are the most accurate.",
                    f"The best of them is {name} with {accuracy:.1%}, the best forest is "
                    f"“{forest}” with {other:.1%}.",
                    lead.verdict,
                    reason=_level_at_once(few),
                )
            )
    return findings


def _level_at_once(few: ex.Table) -> str:
    """A forest is level if it sees all classes at once; not if it grows."""
    at_once, grown = (
        ex.format_percent(few, "accuracy", learner=name)
        for name in (learners.RETRAINED, learners.FOREST)
    )
    return (
        f"The forest is level where it is trained on all classes at once, with {at_once}. The one "
        f"that grows, as least squares do, has {grown}."
    )


EXPERIMENT = ex.Experiment(
    name="guide-images-per-class",
    title="You have a handful of images per class",
    shows="accuracy of every learner with 1 to 10 images per class, which come a tenth at a time",
    sources={
        "objects": ex.Source("caltech101_efflite0_224.npz", partial(mixture, 20, 64, 20, 20)),
        "characters": ex.Source("omniglot_small.npz", digits),
    },
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "learner", "images", "seed"),
    exact=("accuracy",),
    timed=("seconds",),
    size=(11.5, 3.0),
    notes=(
        "Accuracy is the mean over classes, because they have different numbers of test images.",
        "In a full run, objects are Caltech-101 as embeddings, and characters are Omniglot as "
        "raw pixels. Quick runs use generated classes and scikit-learn's digits.",
    ),
)
