"""Figure 4 b: rates over the size of the codebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evergrow.research.experiments.contrasts import combined
from evergrow.research.experiments.drawing import BLUE, ORANGE
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.nips2006 import sweeps
from evergrow.research.papers.nips2006.photographs import SOURCES
from evergrow.research.papers.nips2006.sweeps import LITTLE, N_TREES, Variant, difference

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

# Trees that are not pruned have as many leaves as they have.
ALL = "all"
_LEAVES = (25, 50, 100, 250, 500, 1000, 2000)
_FEW_LEAVES = (10, 25, 50, 100, 200, 400)


def _runs(lab: Lab) -> list[Run]:
    return [{"data": name, "seed": seed} for name in lab.names for seed in lab.seeds()]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    size, seed = sweeps.sizes(lab), int(run["seed"])
    variants = [
        Variant({"leaves": leaves}, sweeps.forest(leaves, seed, lab), size.n_training)
        for leaves in lab.scaled(_LEAVES, _FEW_LEAVES)
    ]
    whole = Variant({"leaves": ALL}, sweeps.forest(None, seed, lab), size.n_training)
    return sweeps.forest_rows(lab, run, [*variants, whole])


def _pruned(table: Table) -> Table:
    return Table(row for row in table if row["leaves"] != ALL)


def _draw(figure: Figure, table: Table) -> None:
    axes = figure.add_subplot()
    sweeps.draw_curve(axes, _pruned(table), "words", "ERC forest, pruned", fmt="o-", color=BLUE)
    whole = table.where(leaves=ALL)
    axes.errorbar(
        [whole.mean("words")],
        [whole.mean("rate")],
        [whole.deviation("rate")] if len(whole) > 1 else None,
        fmt="D",
        color=ORANGE,
        capsize=2,
        label="ERC forest, grown fully",
    )
    sweeps.draw_paper(axes, N_TREES * 1000, _pruned(table).column("words"))
    axes.set_xscale("log")
    axes.set(xlabel=f"words in the codebook ({N_TREES} trees)", ylabel=sweeps.RATE)
    figure.legend(loc="outside right center")


def _judge(table: Table) -> list[Finding]:
    sizes = sorted(_pruned(table).values("leaves"))
    # The paper's thousand leaves, or as many as there are.
    enough = max(size for size in sizes if size <= 1000)
    larger = [*(size for size in sizes if size > enough), ALL]
    best = max(larger, key=lambda leaves: table.mean("rate", leaves=leaves))
    more = difference(table, {"leaves": best}, {"leaves": enough})
    few, rate = (table.mean("rate", leaves=leaves) for leaves in (sizes[0], enough))
    return [
        Finding(
            "The paper finds that about 5000 words, 1000 per tree, are enough (larger codebooks "
            "add a point at most).",
            f"Here {N_TREES} x {enough} leaves give {rate:.1f} %; the best of larger sizes, "
            f"{_named(best)}, adds {more.difference:+.1f} points (noise {more.noise:.1f}). With "
            f"{sizes[0]} leaves per tree it is {few:.1f} %.",
            combined(
                difference(table, {"leaves": leaves}, {"leaves": enough}).below(LITTLE)
                for leaves in larger
            ),
        ),
    ]


def _named(leaves: Any) -> str:
    return "trees grown fully" if leaves == ALL else f"{leaves} leaves per tree"


EXPERIMENT = Experiment(
    name="nips2006-fig4b",
    title="Figure 4 b of Moosmann et al.: how many words a codebook needs",
    shows="rate at equal error over the size of the codebook",
    sources=SOURCES,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "object", "seed", "leaves"),
    exact=("words", "rate"),
    timed=sweeps.TIMED,
    published=({"leaves": 1000, "rate": sweeps.PAPER_RATE},),
    size=(7.5, 3.2),
    notes=(*sweeps.NOTES, sweeps.FEWER_WINDOWS),
    extras=("vision",),
)
