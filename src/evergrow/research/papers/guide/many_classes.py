"""Thousands of classes: the cost of one more."""

from __future__ import annotations

from functools import cache

from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, mixture
from evergrow.research.papers.guide import learners
from evergrow.research.streams import ClassStream, follow, model_bytes

# Retraining forests or subtrees of thousands of classes once per class would take hours.
NAMES = (
    "least squares",
    learners.FIXED_SQUARES,
    "class means",
    "streaming LDA",
    learners.FOREST,
    "forest, IGT without refresh",
)

SIMPLE = (learners.FIXED_SQUARES, "class means", "streaming LDA")

# New classes, one at a time, after all others are known.
N_NEW = 5


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    classes = context.scaled((100, 300, 1000, 3000), (50, 200))
    return context.grid(classes=classes, learner=NAMES, seed=context.seeds())


@cache
def _generated(n_classes: int, seed: int) -> Dataset:
    return mixture(n_classes, 128, 20, 4, distance=0.6, random_state=seed)


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    n, seed = run["classes"], run["seed"]
    data = _generated(n, seed)
    stream = ClassStream(n - N_NEW, random_state=seed, measure_at=[n - N_NEW, n])
    learner = learners.learner_of(context, run["learner"], seed)
    before, after = follow(learner, data, stream)
    queries = data.X_test[:1000]
    answer = ex.time_call(learner.predict, queries) / len(queries)
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


def draw(figure: ex.Figure, table: ex.Table) -> None:
    for axes in learners.draw_panels(figure, table, "classes", PANELS):
        axes.set_xscale("log")


def judge(table: ex.Table) -> list[ex.Finding]:
    points = table.values("classes")
    few, many = (table.where(classes=n) for n in (points[0], points[-1]))
    seconds = {name: [part.mean("seconds", learner=name) for part in (few, many)] for name in NAMES}
    shown = "; ".join(
        f"{name} {after:.3f} s ({after / before:.1f} times as long as with {points[0]})"
        for name, (before, after) in seconds.items()
    )
    sides = [{"learner": name} for name in ("least squares", learners.FOREST)]
    lead = ex.compare_means(many, "accuracy", *sides)
    ours, theirs = (ex.format_percent(many, "accuracy", **side) for side in sides)
    return [
        ex.Finding(
            "With thousands of classes take class means, streaming LDA, or least squares whose "
            "penalty and recoding are given: each learns one more class faster than the forest.",
            f"At {points[-1]} classes one more takes {shown}.",
            ex.combine_verdicts(
                ex.compare_ratios(
                    many, "seconds", {"learner": learners.FOREST}, {"learner": name}
                ).verdict
                for name in SIMPLE
            ),
        ),
        ex.Finding(
            "Least squares are at most a point less accurate than the forest with many classes.",
            f"At {points[-1]} classes they have {ours}, the forest {theirs}.",
            lead.above(-0.01),
        ),
    ]


EXPERIMENT = ex.Experiment(
    name="guide-many-classes",
    title="You have thousands of classes",
    shows="accuracy, time of one more class and of one answer, with up to 3000 classes known",
    sources={},
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("learner", "classes", "seed"),
    exact=("accuracy", "newest", "megabytes"),
    timed=("seconds", "milliseconds_per_answer"),
    size=(11, 3.0),
    notes=(
        "The data are generated Gaussian classes of 128 features with 20 samples each, because "
        "we have no real data with thousands of classes. Gaussian classes favour class means.",
    ),
)
