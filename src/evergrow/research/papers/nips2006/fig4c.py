"""Figure 4 c: rates over the number of descriptors that the codebook is built from."""

from __future__ import annotations

from math import log
from typing import Any

from evergrow.research import experiments as ex
from evergrow.research.papers.nips2006 import sweeps
from evergrow.research.papers.nips2006.sweeps import compare_rates

# Trees that are not pruned.
ALL = "all"
_DESCRIPTORS = (5000, 10_000, 20_000, 40_000)
_FEW_DESCRIPTORS = (1500, 4000, 10_000)
_LEAVES = (100, 300, 1000, 2500, 5000)
_FEW_LEAVES = (20, 60, 200, 600)


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    descriptors = context.scaled(_DESCRIPTORS, _FEW_DESCRIPTORS)
    seeds = context.seeds(sweeps.N_SEEDS)
    return context.grid(data=context.names, seed=seeds, descriptors=descriptors)


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    n = int(run["descriptors"])
    pruned = {leaves: {"n_words": leaves} for leaves in context.scaled(_LEAVES, _FEW_LEAVES)}
    variants: dict[Any, Any] = {**pruned, ALL: {"n_words": None}}
    rows = sweeps.forest_rows(context, run, "leaves", variants, n)
    return [{**row, "descriptors": n} for row in rows]


def draw(figure: ex.Figure, table: ex.Table) -> None:
    axes = figure.add_subplot()
    for leaves, colour, marker in zip(table.values("leaves"), ex.COLOURS, ex.MARKERS, strict=False):
        chosen = table.where(leaves=leaves)
        label = "grown fully" if leaves == ALL else f"{leaves} leaves per tree"
        sweeps.draw_curve(axes, chosen, "descriptors", label, color=colour, marker=marker)
    numbers = sorted(table.values("descriptors"))
    sweeps.draw_published(axes, 20_000, numbers)
    ex.set_log_ticks(axes, numbers)
    axes.set(xlabel="descriptors that the codebook is built from", ylabel=sweeps.RATE)
    figure.legend(loc="outside right center")


def judge(table: ex.Table) -> list[ex.Finding]:
    numbers = sorted(table.values("descriptors"))
    few, many = numbers[0], numbers[-1]
    sizes = _pruned_sizes(table)
    heavy = compare_rates(
        table,
        {"leaves": ALL, "descriptors": many},
        {"leaves": sizes[0], "descriptors": many},
    )
    best = max(sizes, key=lambda leaves: table.mean("rate", leaves=leaves))
    fully = compare_rates(table, {"leaves": ALL}, {"leaves": best})
    return [
        _grows_slightly(table, few, many),
        sweeps.judge_higher(
            "The paper finds that trees that are pruned too much lose accuracy.",
            f"Here, with {many} descriptors, growing fully instead of to {sizes[0]} leaves "
            "changes the rate by",
            heavy,
            reason=_rates(table, many),
        ),
        sweeps.judge_higher(
            "The paper finds it better to grow trees fully and not to prune.",
            "Here, over all numbers of descriptors, growing fully instead of to the best pruned "
            f"size, {best} leaves, changes the rate by",
            fully,
            reason=" ".join(_rates(table, n) for n in numbers),
        ),
    ]


def _rates(table: ex.Table, n_descriptors: int) -> str:
    """The rates of all sizes with one number of descriptors, as a sentence."""
    mine = table.where(descriptors=n_descriptors)
    rates = (
        f"{mine.mean('rate', leaves=leaves):.1f} % ({leaves})"
        for leaves in (*_pruned_sizes(table), ALL)
    )
    leaves = mine.mean("words", leaves=ALL) / sweeps.N_TREES
    return (
        f"With {n_descriptors} descriptors, a fully grown tree has {leaves:.0f} leaves, and "
        f"the rates by leaves per tree are {', '.join(rates)}."
    )


def _pruned_sizes(table: ex.Table) -> list[int]:
    return sorted(leaves for leaves in table.values("leaves") if leaves != ALL)


def _centre(table: ex.Table) -> float:
    """Logarithm of the size around which the rates of one seed are highest.

    The mean of the logarithms of all sizes, each weighted by how far its rate is above the lowest;
    steadier than the best of them alone, which chance picks where rates are flat.
    """
    found = [(row["words"], row["rate"]) for row in table if row["leaves"] != ALL]
    lowest = min(rate for _, rate in found)
    weights = [rate - lowest for _, rate in found]
    total = sum(weights) or 1.0
    weighted = sum(w * log(words) for w, (words, _) in zip(weights, found, strict=True))
    return float(weighted / total)


def _grows_slightly(table: ex.Table, few: int, many: int) -> ex.Finding:
    """Without fully grown trees, which always grow with the number of descriptors."""
    sizes = _pruned_sizes(table)

    def best(seed: int, n_descriptors: int) -> int:
        mine = table.where(seed=seed, descriptors=n_descriptors)
        return max(sizes, key=lambda leaves: mine.mean("rate", leaves=leaves))

    growth = ex.compare_each_seed(
        table,
        lambda rows: _centre(rows.where(descriptors=many)) - _centre(rows.where(descriptors=few)),
        unit="times",
        name=f"size with {many} against {few} descriptors",
    )
    found = [(best(seed, few), best(seed, many)) for seed in table.values("seed")]
    with_few, with_many = (", ".join(map(str, column)) for column in zip(*found, strict=True))
    return sweeps.judge_bound(
        "The paper finds that the best size of the codebook grows slightly with the number of "
        "descriptors it is built from (slower than their number; measured by the mean size, "
        "weighted by the rates).",
        f"Here, seed by seed, the best pruned trees have {with_few} leaves with {few} descriptors "
        f"and {with_many} with {many}; {sizes[-1]} is the largest size that was tried.",
        ex.combine_verdicts([growth.verdict, growth.below(log(many / few))]),
        reason=f"{_rates(table, few)} {_rates(table, many)}",
    )


EXPERIMENT = sweeps.make_experiment(
    name="nips2006-fig4c",
    title="Figure 4 c of Moosmann et al.: how many descriptors a codebook is built from",
    shows="rate at equal error over the descriptors to learn from, for several sizes of trees",
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "object", "seed", "descriptors", "leaves"),
    exact=("words", "rate"),
    published=({"descriptors": 20_000, "leaves": 1000, "rate": sweeps.PAPER_RATE},),
    size=(7.5, 3.2),
    notes=(*sweeps.NOTES, sweeps.FEWER_WINDOWS),
)
