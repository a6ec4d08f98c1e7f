"""Tables 2 to 5 of Ristin 2015: every method over shares of labels, metrics and levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.measure import Figure, report
from benchmarks.subcategory.data import TwoLevels
from benchmarks.subcategory.published import TABLE_2, TABLE_3, TABLE_4, TABLE_5, disagreements
from benchmarks.subcategory.results import Summary
from benchmarks.subcategory.runs import METHODS, Bench, Setting

__all__ = [
    "by_coarse_share",
    "by_fine_share",
    "by_leaf_size",
    "by_metric",
    "on_coarse_classes",
    "over_shares",
]

SHARES = (0.1, 0.2, 0.5)
FULL = "full supervision"

# With fine labels of a tenth: how far above fine-only, relative.
GAIN_BARS = {
    "cifar": {"ridge-h": 0.08, "nn-h": 0.0},
    "cub": {"ridge-h": 0.30, "nn-h": 0.15},
    "words": {"ridge-h": 0.22, "nn-h": 0.10},
}
# Share of full supervision, with fine labels of a tenth and of half of the samples.
FULL_BARS = {("cifar", 0.1): 0.95, ("cifar", 0.5): 0.985}
# Points that the coarse accuracy of ridge-h may lie below that of a forest of coarse classes.
COARSE_BARS = {"cifar": 0.0, "cub": 0.0, "words": -1.0}

Column = Mapping[str, Summary]


def over_shares(bench: Bench, data: TwoLevels, shares: Sequence[float]) -> dict[float, Column]:
    """Every method with fine labels of some shares of the samples, and full supervision."""
    columns: dict[float, dict[str, Summary]] = {share: {} for share in shares}
    # Seed by seed, so that a series that is stopped has something of every row.
    for seed in bench.seeds:
        for share in shares:
            for method in (*METHODS, "full"):
                bench.run(data, Setting(method, share), seed)
    for share in shares:
        columns[share] = {m: bench.summary(data, Setting(m, share)) for m in METHODS}
        columns[share][FULL] = bench.summary(data, Setting("full", share))
    return dict(columns)


def _relative(column: Column, name: str, baseline: str = "fine-only") -> float:
    return column[name].mean("accuracy") / column[baseline].mean("accuracy")


def _show(
    bench: Bench,
    title: str,
    columns: Mapping[str, Column],
    printed: Mapping[str, tuple[float, ...]],
    baseline: str = "fine-only",
) -> None:
    """A column of accuracies, relative ones in brackets, and the paper's relative ones beside."""
    rows = []
    for name in next(iter(columns.values())):
        cells: list[str] = []
        for place, column in enumerate(columns.values()):
            cells.append(f"{column[name].percent()} ({_relative(column, name, baseline):.3f})")
            theirs = printed.get(name)
            cells.append(f"{theirs[place] / printed[baseline][place]:.2f}" if theirs else "")
        rows.append((name, *cells))
    heads = [head for name in columns for head in (name, "paper")]
    notes = [
        f"{name}: {line}"
        for place, (name, column) in enumerate(columns.items())
        for line in disagreements(column, printed, place)
    ]
    bench.results.show(title, ["", *heads], rows, notes)


def by_fine_share(bench: Bench, data: TwoLevels) -> None:
    """Table 3: half of the samples coarse, fine labels of 10, 20 and 50 % of all."""
    columns = over_shares(bench, data, SHARES)
    named = {f"{share:.0%} fine": column for share, column in columns.items()}
    _show(bench, f"table 3: {data.name}, half coarse; % (relative to fine-only)", named, TABLE_3)
    figures = []
    for share, column in columns.items():
        for name in ("nn-h", "ridge-h"):
            bar = GAIN_BARS.get(data.key, {}).get(name) if share == SHARES[0] else None
            gained = _relative(column, name) - 1
            figures.append(Figure(f"{name}, {share:.0%} fine: relative gain", gained, bar))
        figures.append(
            Figure(
                f"ridge-h, {share:.0%} fine: share of full supervision",
                _relative(column, "ridge-h", FULL),
                FULL_BARS.get((data.key, share)),
            )
        )
    report("subcategory", data.name, figures, bars=data.is_real and not bench.quick)


def by_metric(bench: Bench, data: TwoLevels) -> None:
    """Table 2: half fine, half coarse; without a metric, and with one of either part."""
    names = ("class means", "5 neighbours", "ridge classifier", *METHODS)
    metrics = {"none": "no metric", "coarse": "metric of coarse", "fine": "metric of fine"}
    for seed in bench.seeds:
        for metric in metrics:
            for name in (*names, "full"):
                bench.run(data, Setting(name, metric=metric), seed)
    columns = {}
    for metric, shown in metrics.items():
        column = {n: bench.summary(data, Setting(n, metric=metric)) for n in names}
        column[FULL] = bench.summary(data, Setting("full", metric=metric))
        columns[shown] = column
    _show(bench, f"table 2: {data.name}, half fine; % (relative to fine-only)", columns, TABLE_2)
    bars = (FULL_BARS.get((data.key, 0.5)), None, None)
    figures = [
        Figure(f"ridge-h, {shown}: share of full supervision", _relative(c, "ridge-h", FULL), bar)
        for (shown, c), bar in zip(columns.items(), bars, strict=True)
    ]
    report("subcategory", data.name, figures, bars=data.is_real and not bench.quick)


def by_coarse_share(bench: Bench, data: TwoLevels) -> None:
    """Table 4: half of the samples fine, 10, 20 and 50 % of all coarse."""
    columns = {}
    for share in SHARES:
        columns[f"{share:.0%} coarse"] = {
            # The baseline sees nothing of the coarse part: one run does for all columns.
            method: bench.summary(
                data, Setting(method, 0.5, 0.5 if method == "fine-only" else share)
            )
            for method in METHODS
        }
    _show(bench, f"table 4: {data.name}, half fine; % (relative to fine-only)", columns, TABLE_4)


def on_coarse_classes(bench: Bench, data: TwoLevels) -> None:
    """Table 5: the coarse class of test samples, beside a forest that learnt coarse ones alone."""
    names = ("coarse", *METHODS, "full")
    column = {name: bench.summary(data, Setting(name)) for name in names}
    level = "coarse accuracy"
    baseline = column["coarse"].mean(level)
    rows = [
        (
            name,
            summary.percent(level),
            f"{summary.mean(level) / baseline:.3f}",
            f"{TABLE_5[name][0] / TABLE_5['coarse'][0]:.2f}" if name in TABLE_5 else "",
        )
        for name, summary in column.items()
    ]
    title = f"table 5: {data.name}, mean over coarse classes; half fine"
    notes = disagreements(column, TABLE_5, name=level)
    bench.results.show(title, ["", "%", "relative", "paper"], rows, notes)
    above = 100 * (column["ridge-h"].mean(level) - baseline)
    figure = Figure(
        "ridge-h: points above a forest of coarse classes", above, COARSE_BARS.get(data.key)
    )
    report("subcategory", data.name, [figure], bars=data.is_real and not bench.quick)


def by_leaf_size(bench: Bench, data: TwoLevels) -> None:
    """Few fine labels, smaller leaves: how much of the gain the paper's ten per leaf explains."""
    rows = []
    for size in (1, 3, 10):
        found = {
            name: bench.summary(data, Setting(name, 0.1, parameters={"min_samples_leaf": size}))
            for name in ("fine-only", "hierarchical", "nn-h", "ridge-h", "full")
        }
        rows += [
            (f"{name}, leaves of {size}", s.percent(), f"{_relative(found, name):.3f}")
            for name, s in found.items()
        ]
    title = f"leaves: {data.name}, 10% fine, half coarse"
    bench.results.show(title, ["", "%", "relative to fine-only"], rows)
