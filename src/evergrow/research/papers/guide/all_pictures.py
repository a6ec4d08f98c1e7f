"""All pictures of every class: least squares next to the heads of the field at equal width."""

from __future__ import annotations

import time

from evergrow.research import experiments as ex
from evergrow.research.papers.guide import heads

WIDTH, QUICK_WIDTH = 4000, 200
# The two that are compared get several draws of their random features, the others one.
DRAWN = (heads.OURS_RANDOM, heads.RANPAC)
# A loss that counts as none.
NOT_BELOW = 0.005


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    seeds = context.seeds(5)
    drawn = context.grid(data=context.names, learner=DRAWN, seed=seeds)
    others = [name for name in heads.HEADS if name not in DRAWN]
    return drawn + context.grid(data=context.names, learner=others, seed=seeds[:1])


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data, width = context.dataset(run["data"]), context.scaled(WIDTH, QUICK_WIDTH)
    start = time.perf_counter()
    predicted = heads.predict(run["learner"], data, width, run["seed"])
    seconds = time.perf_counter() - start
    accuracy = float((predicted == data.y_test).mean())
    return [{**run, "accuracy": accuracy, "seconds": seconds}]


def draw(figure: ex.Figure, table: ex.Table) -> None:
    names = table.values("data")
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    shown = [*reversed(heads.HEADS)]
    for axes, name in zip(panels, names, strict=True):
        rows = table.where(data=name)
        means = [100 * rows.mean("accuracy", learner=each) for each in shown]
        spread = [100 * rows.deviation("accuracy", learner=each) for each in shown]
        axes.errorbar(means, shown, xerr=spread, fmt="o", color=ex.BLUE, capsize=2)
        axes.set_title(name)
        axes.set_xlabel("accuracy, %")


def judge(table: ex.Table) -> list[ex.Finding]:
    def look(rows: ex.Table) -> ex.Seen:
        found = heads.compare_heads(rows, heads.OURS_RANDOM, heads.RANPAC)
        ours, theirs = (
            ex.format_percent(rows, "accuracy", learner=name)
            for name in (heads.OURS_RANDOM, heads.RANPAC)
        )
        return f"{ours} against {theirs}", found.above(-NOT_BELOW)

    claim = (
        "With all images, least squares with random features is at most half a point below "
        "RanPAC with as many of them."
    )
    return ex.findings_by_data(table, [ex.Claim(claim, look)])


EXPERIMENT = ex.Experiment(
    name="guide-all-pictures",
    title="All pictures of every class",
    shows="accuracy of least squares and of other heads of a network, with all training images",
    sources=heads.SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "learner", "seed"),
    exact=("accuracy",),
    timed=("seconds",),
    size=(11.5, 3.0),
    notes=(
        f"All methods with random features have {WIDTH} of them. Least squares that chooses "
        "their number may take up to 5792 features, including the inputs. Least squares "
        "without random features, class means, streaming LDA and logistic regression use the input "
        "itself. Only least squares with random features and RanPAC are drawn several times.",
        "In a full run, objects are Caltech-101, birds are CUB-200 and small photographs are "
        "CIFAR-100, all as embeddings. Quick runs use generated classes and scikit-learn's "
        "digits.",
    ),
    summarize=lambda table: (
        "Accuracy in %:\n\n" + heads.format_table(table, [*heads.HEADS], "data")
    ),
)
