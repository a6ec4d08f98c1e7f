"""Fig. 7: RUST from different numbers of initial classes."""

from __future__ import annotations

from functools import partial

from evergrow.research.experiments import ExperimentContext, Finding, Run, Table
from evergrow.research.experiments.plots import BLUE, GREEN, RED, Figure, add_legend
from evergrow.research.experiments.verdicts import combine_verdicts, compare_values, format_mean
from evergrow.research.papers.cvpr2014 import plots, protocol

KEYS = ("data", "strategy", "initial", "seed", "n_classes")
INITIALS = (3, 5, 10, 20)
MEASURED = (30, 40, 50)
PAPER_RELATIVE = {3: 0.881, 20: 0.927}
# Percentage points of relative accuracy that more initial classes may gain; the paper's are 4.6.
LIMITED = 8
STYLES = (
    plots.Style("at {} classes", GREEN, "D"),
    plots.Style("at {} classes", BLUE, "^"),
    plots.Style("at {} classes", RED, "s"),
)


def _runs(context: ExperimentContext) -> list[Run]:
    """One run per data set, seed and number of initial classes, and one of retraining."""
    found: list[Run] = []
    for name in protocol.data_names(context, *protocol.SOURCES):
        at = [*dict.fromkeys(protocol.last_class(context, name, n) for n in MEASURED)]
        begun = protocol.initials(context, name, INITIALS, at[0])
        for seed in context.seeds():
            baseline = protocol.baseline_run(name, seed, at)
            found.append(baseline)
            found += [{**baseline, "strategy": "rust", "initial": n} for n in begun]
    return found


def _draw(figure: Figure, table: Table) -> None:
    """Relative accuracy and test time over the initial classes, one row per data set."""
    datas = table.values("data")
    grid = plots.panels(figure, len(datas), 2)
    for row, data in zip(grid, datas, strict=True):
        accuracy, comparisons = row
        grown = table.where(data=data, strategy="rust")
        for n, style in zip(grown.values("n_classes"), STYLES, strict=False):
            named = plots.Style(style.label.format(n), style.colour, style.marker)
            chosen, columns = grown.where(n_classes=n), ("relative", "comparisons")
            plots.plot_columns(row, chosen, "initial", columns, named)
            if n == MEASURED[-1]:
                for initial, relative in PAPER_RELATIVE.items():
                    plots.plot_published(accuracy, initial, 100 * relative, named)
        accuracy.set(title=f"a) {protocol.DATA_NAMES[data]}", ylabel=plots.RELATIVE)
        comparisons.set(title=f"b) {protocol.DATA_NAMES[data]}", ylabel=plots.DISTANCES)
        for axes in row:
            axes.set_xticks(grown.values("initial"))
    for axes in grid[-1]:
        axes.set_xlabel("initial classes")
    add_legend(figure, grid[0][0])


def _judge(table: Table) -> list[Finding]:
    """More initial classes help, but only a little."""
    found: list[Finding] = []
    few, many = PAPER_RELATIVE
    for data, end, last in protocol.last_rows(table.where(strategy="rust")):
        gained = compare_values(last, "relative", "initial", few, many)
        shown = ", ".join(
            f"{format_mean(last, 'relative', initial=n)} from {n}" for n in last.values("initial")
        )
        found.append(
            Finding(
                f"In the paper RUST gains little from more initial classes, at {MEASURED[-1]} from "
                f"88.1 % of the retrained accuracy with {few} to 92.7 % with {many}; a gain of up "
                f"to {LIMITED} points counts as little.",
                f"On {data}, {end} classes: {shown} (%).",
                # With fewer classes, nearly all of them would be initial ones.
                combine_verdicts([gained.verdict, gained.below(LIMITED / 100)])
                if end == MEASURED[-1]
                else None,
            )
        )
    return found


EXPERIMENT = protocol.make_relative_experiment(
    name="cvpr2014-fig7",
    title="Fig. 7 of Ristin et al. 2014: initial classes",
    shows="Accuracy and test time of RUST by the number of classes it begins with.",
    runs=_runs,
    measure=partial(protocol.measure_in_sweep, keys=KEYS),
    draw=_draw,
    judge=_judge,
    keys=KEYS,
    published=tuple(
        {"data": data, "strategy": "rust", "initial": n, "n_classes": MEASURED[-1], "relative": r}
        for data in protocol.SOURCES
        for n, r in PAPER_RELATIVE.items()
    ),
    size=(7.5, 3.0),
    notes=protocol.NOTES,
)
