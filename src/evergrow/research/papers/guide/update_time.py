"""Updates every second: the cost and the gain of a few more examples."""

from __future__ import annotations

import time

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.papers.guide import learners

N_EXAMPLES = 10
N_UPDATES = 5


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    data, per_class = context.names[:1], context.scaled((50, 150, 450), (20, 60))
    return context.grid(
        data=data, per_class=per_class, learner=learners.LEARNERS, seed=context.seeds()
    )


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data = context.dataset(run["data"])
    new = np.random.default_rng(run["seed"]).choice(data.classes)
    old = data.of_classes([label for label in data.classes if label != new])
    known = old.per_class(run["per_class"])
    examples = data.X_train[data.y_train == new][: N_EXAMPLES * N_UPDATES]
    learner = learners.learner_of(context, run["learner"], run["seed"])
    learner.partial_fit(known.X_train, known.y_train)
    learner.predict(examples[:1])
    times = []
    for batch in np.array_split(examples, N_UPDATES):
        start = time.perf_counter()
        learner.partial_fit(batch, np.repeat(new, len(batch)))
        learner.predict(batch[:1])
        times.append(time.perf_counter() - start)
    right = np.asarray(learner.predict(data.X_test)) == data.y_test
    of_new = data.y_test == new
    return [
        {
            **run,
            "samples": len(known.y_train),
            "accuracy": float(right.mean()),
            "new_class": float(right[of_new].mean()),
            "seconds": float(np.median(times)),
        }
    ]


def draw(figure: ex.Figure, table: ex.Table) -> None:
    left, right = figure.subplots(1, 2)
    learners.draw_curves(left, table, "samples", "seconds")
    left.axhline(1, color="black", linestyle=":", linewidth=1)
    left.set_yscale("log")
    left.set_ylabel(f"update by {N_EXAMPLES} examples, s")
    learners.draw_curves(right, table, "samples", "new_class", scale=100)
    right.set_ylabel("accuracy on the new class, %")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("samples known")
    ex.add_legend(figure, left, place="right center")


def judge(table: ex.Table) -> list[ex.Finding]:
    points = table.values("samples")
    many = table.where(samples=points[-1])
    times = {name: many.mean("seconds", learner=name) for name in learners.LEARNERS}
    growth = times["least squares"] / table.mean(
        "seconds", samples=points[0], learner="least squares"
    )
    grew = points[-1] >= 2 * points[0]
    forest, retrained = times[learners.RECOMMENDED_FOREST], times["forest, retrained"]
    fast = [name for name, seconds in times.items() if seconds < 1]
    return [
        ex.Finding(
            "With an update every second take least squares: their time does not grow.",
            f"{1000 * times['least squares']:.0f} ms with {points[-1]} samples known, "
            f"{growth:.1f} times as long as with {points[0]}.",
            times["least squares"] < 1 and growth < 2 if grew else None,
        ),
        ex.Finding(
            "The recommended forest keeps up with an update every second, retraining does not.",
            f"{learners.RECOMMENDED_FOREST}: {forest:.2f} s, retrained: {retrained:.2f} s; under "
            f"one second: {', '.join(fast)}.",
            forest < 1 < retrained,
        ),
    ]


EXPERIMENT = ex.Experiment(
    name="guide-update-time",
    title="You update every second",
    shows="time of an update by ten examples of a new class, over the number of samples known",
    sources=learners.FEATURES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "learner", "per_class", "seed"),
    exact=("samples", "accuracy", "new_class"),
    timed=("seconds",),
    size=(9.5, 3.2),
    notes=("Not of any paper. Fifty examples of one class come in five updates.",),
)
