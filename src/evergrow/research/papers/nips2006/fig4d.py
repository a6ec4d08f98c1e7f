"""Figure 4 d: rates over the number of trees."""

from __future__ import annotations

from math import inf, log

from evergrow.research import experiments as ex
from evergrow.research.papers.nips2006 import sweeps
from evergrow.research.papers.nips2006.sweeps import compare_rates

_TREES = (1, 2, 3, sweeps.N_TREES, 10)
# A standard deviation needs more seeds than a mean; the runs are short.
_N_SEEDS = 20
_FEWEST_FOR_SPREAD = 5


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return context.grid(data=context.names, seed=context.seeds(_N_SEEDS, 3))


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    variants = {n_trees: {"n_estimators": n_trees} for n_trees in _TREES}
    return sweeps.forest_rows(context, run, "trees", variants)


def draw(figure: ex.Figure, table: ex.Table) -> None:
    left, right = figure.subplots(1, 2)
    sweeps.draw_curve(left, table, "trees", "ERC forest", fmt="o-", color=ex.BLUE)
    sweeps.draw_published(left, sweeps.N_TREES, table.values("trees"))
    left.set(ylabel=sweeps.RATE, title="accuracy")
    curve = table.curve("trees", "rate")
    right.plot(curve.x, curve.deviation, "o-", color=ex.BLUE)
    right.set(ylabel="standard deviation, points", title="spread over seeds")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.set_xticks(curve.x)
        axes.set_xlabel("trees, each with as many leaves")
    figure.legend(loc="outside right center")


def judge(table: ex.Table) -> list[ex.Finding]:
    most = max(table.values("trees"))
    first = compare_rates(table, {"trees": sweeps.N_TREES}, {"trees": 1})
    beyond = compare_rates(table, {"trees": most}, {"trees": sweeps.N_TREES})
    one, five = (table.deviation("rate", trees=n) for n in (1, sweeps.N_TREES))
    n_seeds = len(table.values("seed"))
    rates = ", ".join(f"{table.mean('rate', trees=n):.1f} % ({n})" for n in table.values("trees"))
    return [
        sweeps.judge_higher(
            "The paper finds that going from 1 tree to 5 raises the accuracy.",
            f"Here {sweeps.N_TREES} trees instead of 1 change the rate by",
            first,
            reason=f"The rates by the number of trees are {rates}.",
        ),
        sweeps.judge_bound(
            "The paper finds that 5 trees vary less from run to run than 1.",
            f"Here the standard deviation over {n_seeds} seeds is {one:.1f} points with 1 tree "
            f"and {five:.1f} with {sweeps.N_TREES}.",
            _compare_spread(table, 1, sweeps.N_TREES).verdict,
            reason=f"The rates by the number of trees are {rates}.",
        ),
        sweeps.judge_bound(
            "The paper finds little improvement beyond 5 trees (a point at most).",
            f"Here {most} trees instead of {sweeps.N_TREES} change the rate by "
            f"{sweeps.format_points(beyond)}.",
            beyond.below(sweeps.LITTLE),
            reason=f"The rates by the number of trees are {rates}: they grow with the number of "
            "words, which grows with the trees.",
        ),
    ]


def _compare_spread(table: ex.Table, one: int, other: int) -> ex.Difference:
    """How many times larger the standard deviation is with one number of trees.

    The interval is that of a ratio of two variances of normal numbers.
    """
    n_seeds = len(table.values("seed"))
    first, second = (table.deviation("rate", trees=n) for n in (one, other))
    name = f"standard deviation with {one} against {other} trees"
    if n_seeds < _FEWEST_FOR_SPREAD or not first or not second:
        return ex.Difference(0.0, inf, n_seeds, "times", name)
    from scipy.stats import f

    noise = log(float(f.ppf(0.975, n_seeds - 1, n_seeds - 1))) / 2
    return ex.Difference(log(first / second), noise, n_seeds, "times", name)


EXPERIMENT = sweeps.make_experiment(
    name="nips2006-fig4d",
    title="Figure 4 d of Moosmann et al.: how many trees a codebook needs",
    shows="rate at equal error, and its spread, over the number of trees",
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "object", "seed", "trees"),
    exact=("words", "rate"),
    published=({"trees": sweeps.N_TREES, "rate": sweeps.PAPER_RATE},),
    size=(9.5, 3.2),
    notes=(*sweeps.NOTES, sweeps.FEWER_WINDOWS),
)
