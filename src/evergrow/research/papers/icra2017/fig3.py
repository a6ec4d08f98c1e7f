"""Fig. 3 of Camoriano 2017: every class in turn is the new one."""

from __future__ import annotations

from evergrow.research import experiments as ex
from evergrow.research.papers.icra2017 import protocol

COUNTS = (1, 5, 10, 50, 100, 500)
LOOKS = {"naive": (ex.RED, "s"), "recoded": (ex.BLUE, "o")}
COLUMNS = {"new_class": "new class", "others": "other classes", "total": "all classes"}
# Gain that counts as much on the new class, and loss that counts as none on the others.
MUCH, COMPARABLE = 0.05, 0.02


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return context.grid(data=context.names, seed=context.seeds())


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data, setup = context.dataset(run["data"]), protocol.setup_of(context, run["data"])
    n_classes = min(setup.n_classes, len(data.classes))
    # All classes, or a few of them in a quick run.
    step = 1 if not context.quick else max(1, n_classes // 5)
    found = ex.Table(
        row for place in range(0, n_classes, step) for row in _one_class(context, run, place)
    )
    # Means over the classes, for the numbers of examples that every class has.
    counts = set.intersection(
        *(set(found.where(place=place).values("n_new")) for place in found.values("place"))
    )
    return [
        {
            "data": data.name,
            "n_new": count,
            "method": method,
            "seed": run["seed"],
            **{c: found.mean(c, n_new=count, method=method) for c in COLUMNS},
        }
        for count in sorted(counts)
        for method in LOOKS
    ]


def _one_class(context: ex.ExperimentContext, run: ex.Run, place: int) -> list[ex.Row]:
    """Accuracies when the class at this place is the new one."""
    task = protocol.task_of(context, run, place)
    recoded = protocol.setup_of(context, run["data"]).recoding
    rows: list[ex.Row] = []
    for count, model in protocol.learn_new_class(task, COUNTS, run["seed"], select_once=True):
        for method, recoding in (("naive", 0.0), ("recoded", recoded)):
            model.set_params(recoding=recoding)
            where = {"place": place, "n_new": count, "method": method}
            rows.append({**where, **protocol.accuracies(model, task)})
    return rows


def draw(figure: ex.Figure, table: ex.Table) -> None:
    names = table.values("data")
    rows = figure.subplots(len(COLUMNS), len(names), squeeze=False, sharex="col")
    for name, panels in zip(names, rows.T, strict=True):
        for axes, column in zip(panels, COLUMNS, strict=True):
            for method, (colour, marker) in LOOKS.items():
                curve = table.where(data=name, method=method).curve("n_new", column)
                look = {"color": colour, "marker": marker, "label": method}
                ex.plot_band(axes, curve, scale=100, alpha=0.12, **look)
            counts = sorted(table.where(data=name).values("n_new"))
            ex.set_log_ticks(axes, counts)
        panels[0].set_title(name)
        panels[-1].set_xlabel("examples of the new class")
    for axes, what in zip(rows[:, 0], COLUMNS.values(), strict=True):
        axes.set_ylabel(f"{what},\naccuracy %")
    ex.add_legend(figure, rows[0][0], columns=2)


def judge(table: ex.Table) -> list[ex.Finding]:
    findings = []
    for name in table.values("data"):
        few = ex.Table(row for row in table.where(data=name) if row["n_new"] <= 10)
        gains = {
            column: ex.compare_means(few, column, {"method": "recoded"}, {"method": "naive"})
            for column in COLUMNS
        }
        new, others, total = (100 * gains[column].mean for column in COLUMNS)
        findings.append(
            ex.Finding(
                f"{ex.say_value('data', name)}: the paper finds recoding much better on the new "
                "class, comparable on the others and better over all; more than "
                f"{100 * MUCH:.0f} points count as much, a loss of {100 * COMPARABLE:.0f} as "
                "comparable.",
                f"Here, up to 10 examples, it changes the new class by {ex.say_signed(new)} "
                f"points, the others by {ex.say_signed(others)} and all by {ex.say_signed(total)}.",
                ex.combine_verdicts(
                    [
                        gains["new_class"].above(MUCH),
                        gains["others"].above(-COMPARABLE),
                        gains["total"].verdict,
                    ]
                ),
                reason=_by_count(few),
            )
        )
    return protocol.without_idle_reasons(findings)


def _by_count(few: ex.Table) -> str:
    """The gain by recoding, by the number of examples."""
    parts = []
    for column, what in COLUMNS.items():
        gains = (
            rows.mean(column, method="recoded") - rows.mean(column, method="naive")
            for rows in (few.where(n_new=n) for n in few.values("n_new"))
        )
        parts.append(f"{what} by {', '.join(f'{100 * gain:+.1f}' for gain in gains)} points")
    counts = ", ".join(map(str, few.values("n_new")))
    return f"With {counts} examples recoding changes accuracy, on the {'; on '.join(parts)}."


EXPERIMENT = ex.Experiment(
    name="icra2017-fig3",
    title="Camoriano 2017, fig. 3: every class in turn is the new one",
    shows="accuracy on the new class, the others and all, naive and recoded, mean over classes",
    sources=protocol.SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "n_new", "method", "seed"),
    exact=("new_class", "others", "total"),
    size=(9.0, 6.2),
    notes=(
        *protocol.DATA_NOTES,
        "Every row is the mean over all classes, each of which is the new one once. The claim is "
        "about this mean, so the seeds, which draw other examples, are what is repeated: intervals "
        "and bands are over them and not over the classes. In quick runs about five classes of "
        "each data set are the new one in turn.",
        "The penalty is chosen on held-out examples of the known classes, before the new class, "
        "and without recoding; the paper chooses it again after each example.",
    ),
)
