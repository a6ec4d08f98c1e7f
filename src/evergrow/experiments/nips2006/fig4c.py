"""Figure 4 c: rates over the number of descriptors that the codebook is built from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evergrow.drawing import COLOURS, MARKERS
from evergrow.experiments.experiment import Experiment, Finding, Run
from evergrow.experiments.lab import Lab
from evergrow.experiments.nips2006 import sweeps
from evergrow.experiments.nips2006.photographs import SOURCES
from evergrow.experiments.nips2006.sweeps import Variant, difference
from evergrow.experiments.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

# Trees that are not pruned have as many leaves as they have.
ALL = "all"
_DESCRIPTORS = (5000, 10_000, 20_000, 40_000)
_FEW_DESCRIPTORS = (1500, 4000, 10_000)
_LEAVES = (100, 300, 1000, 2500)
_FEW_LEAVES = (20, 60, 200, 600)


def _runs(lab: Lab) -> list[Run]:
    return [
        {"data": name, "seed": seed, "descriptors": n}
        for name in lab.names
        for seed in lab.seeds()
        for n in lab.scaled(_DESCRIPTORS, _FEW_DESCRIPTORS)
    ]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    seed, n = int(run["seed"]), int(run["descriptors"])
    variants = [
        Variant(
            {"descriptors": n, "leaves": ALL if leaves is None else leaves},
            sweeps.forest(leaves, seed, lab),
            n,
        )
        for leaves in (*lab.scaled(_LEAVES, _FEW_LEAVES), None)
    ]
    return sweeps.forest_rows(lab, run, variants)


def _draw(figure: Figure, table: Table) -> None:
    axes = figure.add_subplot()
    for leaves, colour, marker in zip(table.values("leaves"), COLOURS, MARKERS, strict=False):
        chosen = table.where(leaves=leaves)
        style = {"color": colour, "marker": marker}
        sweeps.draw_curve(axes, chosen, "descriptors", _named(leaves), **style)
    sweeps.draw_paper(axes, 20_000)
    numbers = sorted(table.values("descriptors"))
    axes.set_xscale("log")
    axes.set_xticks(numbers, [f"{n}" for n in numbers])
    axes.minorticks_off()
    axes.set(xlabel="descriptors that the codebook is built from", ylabel=sweeps.RATE)
    figure.legend(loc="outside right center")


def _best_words(table: Table, n_descriptors: int) -> float:
    """Words of the best codebook, trees grown fully among them."""
    chosen = table.where(descriptors=n_descriptors)
    best = max(chosen.values("leaves"), key=lambda leaves: chosen.mean("rate", leaves=leaves))
    return chosen.mean("words", leaves=best)


def _judge(table: Table) -> list[Finding]:
    numbers = sorted(table.values("descriptors"))
    few, many = numbers[0], numbers[-1]
    best_few, best_many = (_best_words(table, n) for n in (few, many))
    sizes = sorted(leaves for leaves in table.values("leaves") if leaves != ALL)
    heavy = difference(
        table,
        {"leaves": ALL, "descriptors": many},
        {"leaves": sizes[0], "descriptors": many},
    )
    best = max(sizes, key=lambda leaves: table.mean("rate", leaves=leaves))
    fully = difference(table, {"leaves": ALL}, {"leaves": best})
    return [
        Finding(
            "The paper finds that the best size of the codebook grows slightly with the number of "
            "descriptors it is built from.",
            f"Here the best of those tried has {best_few:.0f} words with {few} descriptors and "
            f"{best_many:.0f} with {many}.",
            best_many > best_few,
        ),
        sweeps.tell_higher(
            "The paper finds that trees that are pruned too much lose accuracy.",
            f"Here, with {many} descriptors, growing fully against {sizes[0]} leaves makes a "
            "difference",
            heavy,
        ),
        Finding(
            "The paper finds it better to grow trees fully and not to prune.",
            f"Here, over all numbers of descriptors, growing fully against the best pruned size, "
            f"{best} leaves, makes a difference: {fully}.",
            fully.mean > 0 if fully.is_clear else None,
        ),
    ]


def _named(leaves: Any) -> str:
    return "grown fully" if leaves == ALL else f"{leaves} leaves per tree"


EXPERIMENT = Experiment(
    name="nips2006-fig4c",
    title="Figure 4 c of Moosmann et al.: how many descriptors a codebook is built from",
    shows="rate at equal error over the descriptors to learn from, for several sizes of trees",
    sources=SOURCES,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "object", "seed", "descriptors", "leaves"),
    exact=("words", "rate"),
    timed=sweeps.TIMED,
    published=({"descriptors": 20_000, "leaves": 1000, "rate": sweeps.PAPER_RATE},),
    size=(7.5, 3.2),
    notes=(*sweeps.NOTES, sweeps.FEWER_WINDOWS),
    extras=("vision",),
)
