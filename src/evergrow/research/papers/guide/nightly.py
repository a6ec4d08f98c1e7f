"""Nightly updates: many classes at once, and enough time."""

from __future__ import annotations

from evergrow.research import experiments as ex
from evergrow.research.papers.guide import learners
from evergrow.research.streams import ClassStream, follow

# A gain in accuracy that is not worth a night of training.
LITTLE = 0.02
# A loss that counts as none.
NOT_BELOW = 0.005


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return context.grid(data=context.names[:1], learner=learners.LEARNERS, seed=context.seeds())


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data = context.dataset(run["data"])
    n_classes = len(data.classes)
    stream = ClassStream(max(1, n_classes // 2), max(1, n_classes // 10), random_state=run["seed"])
    learner = learners.learner_of(context, run["learner"], run["seed"])
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


def draw(figure: ex.Figure, table: ex.Table) -> None:
    learners.draw_panels(figure, table, "classes", PANELS)


RTST = "forest, RTST"


def judge(table: ex.Table) -> list[ex.Finding]:
    end = table.where(classes=table.values("classes")[-1])
    name, accuracy = learners.best(
        end, tuple(n for n in learners.LEARNERS if n != learners.RETRAINED)
    )
    lead = ex.compare_means(end, "accuracy", {"learner": name}, {"learner": learners.RETRAINED})
    baseline = end.mean("accuracy", learner=learners.RETRAINED)
    grown = {n: end.mean("accuracy", learner=n) for n in (learners.FOREST, RTST)}
    closest = max(grown, key=lambda n: grown[n])
    seconds = {n: end.mean("seconds", learner=n) for n in learners.LEARNERS}
    return [
        ex.Finding(
            "With a night for every update, retraining the forest gains little over updating it, "
            f"less than {100 * LITTLE:.0f} points.",
            f"The forest has {grown[learners.FOREST]:.1%}, and its last night takes "
            f"{seconds[learners.FOREST]:.1f} s; with RTST it has {grown[RTST]:.1%} and takes "
            f"{seconds[RTST]:.1f} s, trained again {baseline:.1%} and "
            f"{seconds[learners.RETRAINED]:.1f} s.",
            ex.compare_means(
                end, "accuracy", {"learner": closest}, {"learner": learners.RETRAINED}
            ).above(-LITTLE),
        ),
        ex.Finding(
            "A learner that is never retrained is as accurate as the retrained forest, half a "
            "point below at most.",
            f"The best of them, “{name}”, has {accuracy:.1%}, and the retrained forest "
            f"{baseline:.1%}.",
            lead.above(-NOT_BELOW),
        ),
    ]


EXPERIMENT = ex.Experiment(
    name="guide-nightly",
    title="You update at night",
    shows="accuracy and time of every learner when a tenth of the classes comes at a time",
    sources=learners.FEATURES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "learner", "classes", "seed"),
    exact=("accuracy", "newest"),
    timed=("seconds",),
    size=(11, 3.0),
    notes=("Half of the classes are known at first; a tenth of all comes every night.",),
)
