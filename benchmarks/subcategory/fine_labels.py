"""What coarse labels add where fine ones are few, and what fine ones add on coarse classes."""

from __future__ import annotations

from benchmarks.measure import Figure, report, show_table
from benchmarks.subcategory.bench import Bench, Setting, percent
from benchmarks.subcategory.data import TwoLevels

__all__ = ["by_fine_share", "by_leaf_size", "on_coarse_classes"]

SHARES = (0.1, 0.2, 0.5)
NAMES = ("fine-only", "hierarchical", "nn-h", "ridge-h", "full")

# With fine labels of a tenth: how far above fine-only, relative.
GAIN_BARS = {
    "CIFAR-100 features": {"ridge-h": 0.08, "nn-h": 0.0},
    "CUB-200 features": {"ridge-h": 0.30, "nn-h": 0.15},
    "CIFAR-100 words": {"ridge-h": 0.22, "nn-h": 0.10},
}
# Share of full supervision, with fine labels of a tenth and of half of the samples.
FULL_BARS = {("CIFAR-100 features", 0.1): 0.95, ("CIFAR-100 features", 0.5): 0.985}
# Points that the coarse accuracy of ridge-h may lie below that of a forest of coarse classes.
COARSE_BARS = {"CIFAR-100 features": 0.0, "CUB-200 features": 0.0, "CIFAR-100 words": -1.0}


def by_fine_share(bench: Bench, data: TwoLevels) -> None:
    """Half of the samples coarse, fine labels of 10, 20 and 50 % of all."""
    # Seed by seed, so that a series that is stopped has something of every row.
    for seed in bench.seeds:
        for share in SHARES:
            for name in NAMES:
                bench.run(data, Setting(name, share), seed)
    found = {(n, s): bench.summary(data, Setting(n, s)) for n in NAMES for s in SHARES}
    accuracy = {key: summary.mean("accuracy") for key, summary in found.items()}
    rows = [
        (
            name,
            *(
                f"{percent(found[name, s])} ({accuracy[name, s] / accuracy['fine-only', s]:.3f})"
                for s in SHARES
            ),
        )
        for name in NAMES
    ]
    title = f"few fine labels: {data.name}, half coarse; % (relative to fine-only)"
    show_table(title, ["", *(f"{share:.0%} fine" for share in SHARES)], rows)
    figures = []
    for share in SHARES:
        for name in ("nn-h", "ridge-h"):
            bar = GAIN_BARS.get(data.name, {}).get(name) if share == SHARES[0] else None
            gained = accuracy[name, share] / accuracy["fine-only", share] - 1
            figures.append(Figure(f"{name}, {share:.0%} fine: relative gain", gained, bar))
        figures.append(
            Figure(
                f"ridge-h, {share:.0%} fine: share of full supervision",
                accuracy["ridge-h", share] / accuracy["full", share],
                FULL_BARS.get((data.name, share)),
            )
        )
    report("subcategory", data.name, figures, bars=not bench.quick)


def on_coarse_classes(bench: Bench, data: TwoLevels) -> None:
    """The coarse class of test samples, beside a forest that learnt coarse ones alone."""
    names = ("coarse", *NAMES)
    column = {name: bench.summary(data, Setting(name)) for name in names}
    level = "coarse_accuracy"
    baseline = column["coarse"].mean(level)
    rows = [
        (name, percent(summary, level), f"{summary.mean(level) / baseline:.3f}")
        for name, summary in column.items()
    ]
    title = f"coarse classes: {data.name}, mean over them; half fine"
    show_table(title, ["", "%", "relative"], rows)
    above = 100 * (column["ridge-h"].mean(level) - baseline)
    figure = Figure(
        "ridge-h: points above a forest of coarse classes", above, COARSE_BARS.get(data.name)
    )
    report("subcategory", data.name, [figure], bars=not bench.quick)


def by_leaf_size(bench: Bench, data: TwoLevels) -> None:
    """Few fine labels, smaller leaves: how much of the gain the paper's ten per leaf explains."""
    rows = []
    for size in (1, 3, 10):
        found = {
            name: bench.summary(data, Setting(name, 0.1, parameters={"min_samples_leaf": size}))
            for name in NAMES
        }
        baseline = found["fine-only"].mean("accuracy")
        rows += [
            (f"{name}, leaves of {size}", percent(s), f"{s.mean('accuracy') / baseline:.3f}")
            for name, s in found.items()
        ]
    title = f"leaves: {data.name}, 10% fine, half coarse"
    show_table(title, ["", "%", "relative to fine-only"], rows)
