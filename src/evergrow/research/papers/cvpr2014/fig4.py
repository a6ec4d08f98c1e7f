"""Fig. 4: the minimum number of samples in a leaf, for a forest trained at once and for RUST."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2014 import plots, protocol

KEYS = ("data", "strategy", "min_samples_leaf", "seed", "n_classes")
INITIAL = 3
END, QUICK_END = 50, 20
LEAVES = (2, 5, 10, 20, 50)
# Points by which the influence on RUST may exceed that on the forest trained at once.
LIMITED = 1.0


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    """One run per data set, seed, strategy and smallest leaf."""
    found: list[ex.Run] = []
    for name in protocol.data_names(context, "features"):
        end = protocol.last_class(context, name, context.scaled(END, QUICK_END))
        (initial,) = protocol.initials(context, name, [INITIAL], end)
        for seed in context.seeds():
            for n_samples in LEAVES:
                baseline = protocol.baseline_run(name, seed, [end])
                setting = {
                    "min_samples_leaf": n_samples,
                    "parameters": {"min_samples_leaf": n_samples},
                }
                found.append({**baseline, **setting})
                found.append({**baseline, **setting, "strategy": "rust", "initial": initial})
    return found


def draw(figure: ex.Figure, table: ex.Table) -> None:
    """Accuracy and test time over the smallest leaf."""
    (row,) = plots.panels(figure, 1, 2)
    accuracy, comparisons = row
    for strategy in table.values("strategy"):
        chosen, columns = table.where(strategy=strategy), ("accuracy", "comparisons")
        plots.plot_columns(row, chosen, "min_samples_leaf", columns, plots.STYLES[strategy])
    accuracy.set(title="accuracy", ylabel="%")
    comparisons.set(title="test time", ylabel=plots.DISTANCES)
    for axes in row:
        axes.set_xlabel("samples in a leaf, at least")
        ex.set_log_ticks(axes, LEAVES)
    ex.add_legend(figure, accuracy)


def _shown(table: ex.Table, column: str, scale: float) -> str:
    return ", ".join(
        f"{ex.format_mean(table, column, scale=scale, min_samples_leaf=n)} with {n}" for n in LEAVES
    )


def _small_leaves(last: ex.Table, where: str) -> ex.Finding:
    table = last.where(strategy=protocol.BASELINE)
    smallest, largest = LEAVES[0], LEAVES[-1]
    sides = {"min_samples_leaf": smallest}, {"min_samples_leaf": largest}
    verdicts = [
        ex.compare_means(table, "accuracy", *sides).verdict,
        ex.compare_ratios(table, "comparisons", *sides).verdict,
    ]
    return ex.Finding(
        "In the paper smaller leaves make forests more accurate and slower to test.",
        f"{where} the forest trained at once has {_shown(table, 'accuracy', 100)} samples (%), and "
        f"{_shown(table, 'comparisons', 1)} distances.",
        ex.combine_verdicts(verdicts),
    )


def _limited(last: ex.Table, where: str) -> ex.Finding:
    table = last.where(strategy="rust")

    def excess(rows: ex.Table) -> float:
        spreads = [
            rows.mean("accuracy", strategy=s, min_samples_leaf=LEAVES[0])
            - rows.mean("accuracy", strategy=s, min_samples_leaf=LEAVES[-1])
            for s in ("rust", protocol.BASELINE)
        ]
        return abs(spreads[0]) - abs(spreads[1])

    more = ex.compare_each_seed(last, excess, name="influence on RUST against trained at once")
    return ex.Finding(
        f"In the paper the influence on RUST is limited as well (at most {LIMITED:.0f} point more "
        "than on the forest trained at once).",
        f"{where}, {INITIAL} initial, RUST has {_shown(table, 'accuracy', 100)} samples (%).",
        more.below(LIMITED / 100),
    )


EXPERIMENT = protocol.make_experiment(
    name="cvpr2014-fig4",
    title="Fig. 4 of Ristin et al. 2014: samples in a leaf",
    shows="Accuracy and test time by the least samples of a leaf, trained at once and with RUST.",
    runs=runs,
    draw=draw,
    measure=partial(protocol.measure_strategy, keys=KEYS),
    judge=partial(protocol.judge_last_rows, judges=(_small_leaves, _limited)),
    keys=KEYS,
    exact=("accuracy", "newest", "comparisons", "n_distances"),
    size=(7.5, 3.0),
    notes=(
        *protocol.NOTES,
        "On features only: RUST on visual words takes nearly four times as long.",
    ),
)
