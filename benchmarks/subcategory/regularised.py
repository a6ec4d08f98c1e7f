"""The regularised forest beside the plain one, and on how many samples its splits are scored."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.measure import Figure, report, show_table
from benchmarks.subcategory.bench import Bench, Setting, made, percent
from benchmarks.subcategory.data import TwoLevels
from evergrow.experiments import Table
from evergrow.experiments.cvpr2015.levels import draw
from evergrow.experiments.cvpr2015.trials import Values

__all__ = ["against_plain", "scoring_samples"]

# Points above the plain forest, and share of its comparisons.
BARS = {"CIFAR-100 features": (0.5, 0.8), "CUB-200 features": (0.0, 1.0)}
TIME_BARS = {"CIFAR-100 features": 3.0}
N_ALTERNATE = 3


def everything(contender: str, **parameters: Any) -> Setting:
    """All samples with their fine labels."""
    return Setting(contender, 1.0, 0.0, parameters)


def against_plain(bench: Bench, data: TwoLevels) -> None:
    """Accuracy, comparisons and time to fit of both."""
    plain, regularised = (
        bench.summary(data, everything(name)) for name in ("plain", "regularised")
    )
    rows = [
        ("NCM forest", *_cells(plain)),
        ("regularised NCM forest", *_cells(regularised)),
    ]
    columns = ["", "accuracy, %", "comparisons", "fit s"]
    show_table(f"regularised: {data.name}, all labels fine", columns, rows)
    points, share = BARS.get(data.name, (None, None))
    seconds = fit_seconds(bench, data)
    gained = 100 * (regularised.mean("accuracy") - plain.mean("accuracy"))
    comparisons = regularised.mean("comparisons") / plain.mean("comparisons")
    figures = [
        Figure("regularised: points above plain", gained, points),
        Figure("regularised: comparisons / plain", comparisons, share, "at most"),
        Figure("plain: comparisons per tree and sample", plain.mean("comparisons")),
        Figure(
            "regularised: fit time / plain",
            seconds["regularised s"] / seconds["plain s"],
            TIME_BARS.get(data.name),
            "at most",
        ),
        Figure("plain: fit s", seconds["plain s"]),
    ]
    report("subcategory", data.name, figures, bars=not bench.quick)


def fit_seconds(bench: Bench, data: TwoLevels) -> Values:
    """Median fit time of both, in turns, so that a busy spell of the machine hits both."""

    def measure() -> Values:
        shown = draw(data, 0, 1.0, 0.0)
        times: dict[str, list[float]] = {"plain": [], "regularised": []}
        for seed in range(N_ALTERNATE):
            for name, seconds in times.items():
                model = made(name, bench.n_trees, seed)
                start = time.perf_counter()
                model.fit(shown.X, shown.fine)
                seconds.append(time.perf_counter() - start)
        plain, regularised = (statistics.median(seconds) for seconds in times.values())
        return {"plain s": plain, "regularised s": regularised}

    key = {"data": data.name, "times of": "plain and regularised", "trees": bench.n_trees}
    return bench.results.of(key, measure)


def _cells(summary: Table) -> tuple[str, float, float]:
    return percent(summary), summary.mean("comparisons"), summary.mean("seconds")


def scoring_samples(bench: Bench, data: TwoLevels) -> None:
    """Candidates scored on few samples of large nodes, on more, and on all."""
    by_number = {
        name: bench.summary(data, everything("regularised", max_scoring_samples=value))
        for name, value in (("auto", "auto"), ("1024", 1024), ("4096", 4096), ("all", None))
    }
    rows = [(name, *_cells(summary)) for name, summary in by_number.items()]
    columns = ["", "accuracy, %", "comparisons", "fit s"]
    show_table(f"max_scoring_samples: {data.name}", columns, rows)
    few, every = by_number["auto"], by_number["all"]
    lost = 100 * (every.mean("accuracy") - few.mean("accuracy"))
    saved = few.mean("seconds") / every.mean("seconds")
    figures = [
        Figure("auto scored: points lost to all", lost, 0.3, "at most"),
        Figure("auto scored: fit time / all", saved),
    ]
    report("subcategory", data.name, figures, bars=data.name in BARS and not bench.quick)
