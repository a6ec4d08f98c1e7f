"""Updates every second: the cost and the gain of a few more examples."""

from __future__ import annotations

import time

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.papers.guide import learners

N_EXAMPLES = 10
N_UPDATES = 5
NAMES = (*learners.LEARNERS, learners.FIXED_SQUARES)
# How much longer an update may take to count as constant.
SAME_TIME = 1.3


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    data, per_class = context.names[:1], context.scaled((50, 150, 450), (20, 60))
    return context.grid(data=data, per_class=per_class, learner=NAMES, seed=context.seeds())


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
    times = {name: many.mean("seconds", learner=name) for name in NAMES}
    fast = [name for name, seconds in times.items() if seconds < 1]
    forest, retrained = (_below_a_second(many, n) for n in (learners.FOREST, learners.RETRAINED))
    return [
        *(_constant(table, name) for name in (learners.FIXED_SQUARES, "least squares")),
        ex.Finding(
            "The forest keeps up with an update every second, retraining does not.",
            f"The forest takes {times[learners.FOREST]:.2f} s, the retrained one "
            f"{times[learners.RETRAINED]:.2f} s. Under a second are {'; '.join(fast)}.",
            ex.combine_verdicts([forest.below(0.0), retrained.above(0.0)]),
        ),
    ]


def _below_a_second(table: ex.Table, name: str) -> ex.Difference:
    seconds = table.where(learner=name).column("seconds")
    return ex.compare_seeds([*np.log(seconds)], unit="times", name=f"{name} against a second")


def _constant(table: ex.Table, name: str) -> ex.Finding:
    points, mine = table.values("samples"), table.where(learner=name)
    grown = ex.compare_ratios(mine, "seconds", {"samples": points[-1]}, {"samples": points[0]})
    known = points[-1] / points[0]
    said = "with its choices fixed" if name == learners.FIXED_SQUARES else "as installed"
    return ex.Finding(
        f"The time of an update of least squares {said} does not grow with the number of known "
        f"samples (at most {SAME_TIME} times).",
        f"It is {1000 * table.mean('seconds', learner=name, samples=points[-1]):.0f} ms with "
        f"{points[-1]} samples known, {np.exp(grown.mean):.2f} times as long as with {points[0]}.",
        grown.below(np.log(SAME_TIME)) if known >= 2 else None,
        reason=_choices_grow(table),
    )


def _choices_grow(table: ex.Table) -> str:
    """The reason is shown by a model that chooses nothing."""
    points = table.values("samples")
    mine = table.where(learner=learners.FIXED_SQUARES)
    fixed = ex.compare_ratios(mine, "seconds", {"samples": points[-1]}, {"samples": points[0]})
    return (
        "Penalty and recoding are chosen again on the holdout, which grows up to a limit. With "
        f"both given an update takes {np.exp(fixed.mean):.2f} times as long with {points[-1]} "
        f"samples as with {points[0]}."
    )


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
    notes=(
        "Fifty examples of one class come in five updates of ten. The time is the median of the "
        "five, each with one answer.",
    ),
)
