"""Fig. 5 of the report: how many classes come at a time, on spirals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evergrow.research.experiments.contrasts import Contrast, combined, contrast
from evergrow.research.experiments.drawing import COLOURS, MARKERS
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.report import growing, pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

CHUNKS = (2, 4, 8)
# Points of relative accuracy between chunks that still count as none.
SAME = 0.02

PANELS = (
    *pictures.PANELS[:2],
    ("training_seconds", "all training so far, s", 1.0),
)


def _runs(lab: Lab) -> list[dict[str, Any]]:
    left = growing.n_classes_of(lab) - growing.INITIAL
    # More at a time than are left would be the same stream again.
    chunks = [chunk for chunk in CHUNKS if chunk <= left] or CHUNKS[:1]
    return [growing.run_of(lab, "NCM", s, chunk=chunk) for s in lab.seeds() for chunk in chunks]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    return growing.all_strategies(lab, run, growing.spirals_of(lab, run))


def _draw(figure: Figure, table: Table) -> None:
    rows = figure.subplots(len(growing.GROWING), len(PANELS), sharex=True, sharey="col")
    for name, panels in zip(growing.GROWING, rows, strict=True):
        for axes, (column, label, factor) in zip(panels, PANELS, strict=True):
            for chunk, colour, marker in zip(CHUNKS, COLOURS, MARKERS, strict=False):
                chosen = table.where(strategy=name, chunk=chunk)
                look = {"color": colour, "marker": marker, "label": f"{chunk} classes at a time"}
                pictures.draw_curve(axes, chosen, column, factor, **look)
            axes.set_title(name, loc="left")
            axes.set_ylabel(label)
    for axes in rows[-1]:
        axes.set_xlabel("classes")
        sizes = sorted(table.values("n_classes"))
        axes.set_xticks(sizes[:: 1 + len(sizes) // 6])
    rows[0][1].set_ylim(bottom=0)
    rows[0][2].set_ylim(bottom=0)
    handles, labels = rows[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(CHUNKS))


def _judge(table: Table) -> list[Finding]:
    end = table.where(n_classes=max(table.values("n_classes")))
    spread = {name: _spread(end.where(strategy=name)) for name in growing.GROWING}
    widest = max(spread, key=lambda name: spread[name].difference)
    several = len(table.values("chunk")) > 1
    return [
        Finding(
            "The report finds that relative accuracy does not depend on the chunk size; "
            f"up to {100 * SAME:.0f} points count as that.",
            f"Here it differs most with {widest}: {100 * spread[widest].difference:.1f} points "
            "between chunks at the end.",
            combined(each.below(SAME) for each in spread.values()) if several else None,
        ),
        _falls(
            end,
            "training_seconds",
            "The report finds that several classes at once take less training time.",
            "all training takes {} s",
        ),
        _falls(
            end,
            "comparisons",
            "The report finds that several classes at once make forests that are faster to test.",
            "a test sample costs {} comparisons",
        ),
    ]


def _spread(table: Table) -> Contrast:
    """The most accurate chunk beside the least accurate."""
    means = {chunk: table.mean("relative", chunk=chunk) for chunk in table.values("chunk")}
    worst, best = (find(means, key=lambda chunk: means[chunk]) for find in (min, max))
    return contrast(table, "relative", {"chunk": best}, {"chunk": worst})


def _falls(end: Table, column: str, claim: str, here: str) -> Finding:
    """Whether a cost is lower with the largest chunk than with the smallest, for every strategy."""
    measured = end.values("chunk")
    few, many = ({"chunk": find(measured)} for find in (min, max))
    said, agree = [], []
    for name in growing.GROWING:
        means = [end.mean(column, strategy=name, chunk=chunk) for chunk in measured]
        said.append(f"{name} " + " / ".join(f"{mean:.3g}" for mean in means))
        sides = end.where(strategy=name), column, few, many
        agree.append(contrast(*sides, few_seeds_noise=growing.ANYTHING).verdict)
    chunks = " / ".join(map(str, measured))
    text = here.format(f"({', '.join(said)})")
    return Finding(claim, f"Here, with {chunks} at a time, {text}.", combined(agree))


EXPERIMENT = Experiment(
    name="report-fig5",
    title="Report, fig. 5: two, four or eight classes at a time",
    shows="accuracy, test time and training time of NCM forests by chunk size, on spirals",
    sources=growing.SPIRALS,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=growing.KEYS,
    exact=growing.EXACT,
    timed=growing.TIMED,
    size=(9.0, 6.4),
    notes=(
        "Test work is judged by comparisons per tree and sample, which do not depend on how busy "
        "the machine is; seconds are in the picture.",
        "The report names no number of trees and no smallest leaf: here 50 trees (10 in a quick "
        "run) and 5 samples. Spirals are drawn anew for each seed.",
    ),
)
