"""Nightly updates: many classes at once, and enough time."""

from __future__ import annotations

from evergrow.research import experiments as ex
from evergrow.research.papers.guide import learners
from evergrow.research.streams import ClassStream, follow

# A gain in accuracy that is not worth a night of training.
LITTLE = 0.02
RETRAINED = "forest, retrained"


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


def judge(table: ex.Table) -> list[ex.Finding]:
    end = table.where(classes=table.values("classes")[-1])
    name, accuracy = learners.best(end, tuple(n for n in learners.LEARNERS if n != RETRAINED))
    lead = ex.compare_means(end, "accuracy", {"learner": name}, {"learner": RETRAINED})
    baseline = end.mean("accuracy", learner=RETRAINED)
    rust, rtst = (
        end.mean("accuracy", learner=n) for n in (learners.RECOMMENDED_FOREST, "forest, RTST")
    )
    closest = learners.RECOMMENDED_FOREST if rust > rtst else "forest, RTST"
    seconds = {n: end.mean("seconds", learner=n) for n in learners.LEARNERS}
    return [
        ex.Finding(
            "With a night for every update, retraining the forest gains little over updating it, "
            f"less than {100 * LITTLE:.0f} points.",
            f"Retrained {baseline:.1%} in {seconds[RETRAINED]:.1f} s, RTST {rtst:.1%} in "
            f"{seconds['forest, RTST']:.1f} s, {learners.RECOMMENDED_FOREST} {rust:.1%} in "
            f"{seconds[learners.RECOMMENDED_FOREST]:.1f} s.",
            ex.compare_means(end, "accuracy", {"learner": closest}, {"learner": RETRAINED}).above(
                -LITTLE
            ),
        ),
        ex.Finding(
            "A learner that is never retrained is more accurate than the retrained forest.",
            f"{name} has {accuracy:.1%} in {seconds[name]:.1f} s, the retrained forest "
            f"{baseline:.1%}.",
            lead.verdict,
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
    notes=("Not of any paper. Half of the classes are known at first.",),
)
