"""Figure 4 b: rates over the size of the codebook."""

from __future__ import annotations

from evergrow.research import experiments as ex
from evergrow.research.papers.nips2006 import sweeps
from evergrow.research.papers.nips2006.sweeps import compare_rates

# Trees that are not pruned.
ALL = "all"
_LEAVES = (25, 50, 100, 250, 500, 1000, 2000)
_FEW_LEAVES = (10, 25, 50, 100, 200, 400)


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return context.grid(data=context.names, seed=context.seeds(sweeps.N_SEEDS))


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    pruned = {leaves: {"n_words": leaves} for leaves in context.scaled(_LEAVES, _FEW_LEAVES)}
    return sweeps.forest_rows(context, run, "leaves", {**pruned, ALL: {"n_words": None}})


def _pruned(table: ex.Table) -> ex.Table:
    return ex.Table(row for row in table if row["leaves"] != ALL)


def draw(figure: ex.Figure, table: ex.Table) -> None:
    axes = figure.add_subplot()
    sweeps.draw_curve(axes, _pruned(table), "words", "ERC forest, pruned", fmt="o-", color=ex.BLUE)
    whole = table.where(leaves=ALL)
    axes.errorbar(
        [whole.mean("words")],
        [whole.mean("rate")],
        [whole.deviation("rate")] if len(whole) > 1 else None,
        fmt="D",
        color=ex.ORANGE,
        capsize=2,
        label="ERC forest, grown fully",
    )
    sweeps.draw_published(axes, sweeps.N_TREES * 1000, _pruned(table).column("words"))
    axes.set_xscale("log")
    axes.set(xlabel=f"words in the codebook ({sweeps.N_TREES} trees)", ylabel=sweeps.RATE)
    figure.legend(loc="outside right center")


def judge(table: ex.Table) -> list[ex.Finding]:
    sizes = sorted(_pruned(table).values("leaves"))
    # 1000 leaves as in the paper, or the largest number measured.
    enough = max(size for size in sizes if size <= 1000)
    larger = [*(size for size in sizes if size > enough), ALL]
    best = max(larger, key=lambda leaves: table.mean("rate", leaves=leaves))
    more = compare_rates(table, {"leaves": best}, {"leaves": enough})
    few, rate = (table.mean("rate", leaves=leaves) for leaves in (sizes[0], enough))
    named = "trees grown fully" if best == ALL else f"{best} leaves per tree"
    rates = ", ".join(
        f"{table.mean('rate', leaves=leaves):.1f} % with "
        f"{'all' if leaves == ALL else leaves} leaves per tree"
        for leaves in (*sizes, ALL)
    )
    return [
        sweeps.judge_bound(
            "The paper finds that about 5000 words, 1000 per tree, are enough (larger codebooks "
            "add a point at most).",
            f"Here the rate is {rate:.1f} % with {enough} leaves in each of {sweeps.N_TREES} "
            f"trees. The best larger codebook, {named}, differs by {more.mean:+.1f} ± "
            f"{more.noise:.1f} points. With {sizes[0]} leaves per tree the rate is {few:.1f} %.",
            ex.combine_verdicts(
                compare_rates(table, {"leaves": leaves}, {"leaves": enough}).below(sweeps.LITTLE)
                for leaves in larger
            ),
            printed="about 5000 words, 1000 per tree",
            reason=f"The rate still grows with the size: {rates}.",
        ),
    ]


EXPERIMENT = sweeps.make_experiment(
    name="nips2006-fig4b",
    title="Figure 4 b of Moosmann et al.: how many words a codebook needs",
    shows="how the rate at equal error depends on the number of words",
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "object", "seed", "leaves"),
    exact=("words", "rate"),
    published=({"leaves": 1000, "rate": sweeps.PAPER_RATE},),
    size=(7.5, 3.2),
    notes=(*sweeps.NOTES, sweeps.FEWER_WINDOWS),
)
