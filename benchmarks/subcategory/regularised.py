"""The regularised forest beside the plain one, and what its parameters do."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.measure import Figure, report
from benchmarks.subcategory.data import TwoLevels
from benchmarks.subcategory.protocol import draw
from benchmarks.subcategory.published import TABLE_1, disagreements
from benchmarks.subcategory.results import Summary, Values
from benchmarks.subcategory.runs import CONTENDERS, Bench, Setting

__all__ = ["SWEEPS", "against_plain", "everything", "parameters", "scoring_samples", "sweep"]

# Fig. 2 and fig. 4 of Ristin 2015; each line leaves the other parameters as they are.
SWEEPS: dict[str, tuple[Any, ...]] = {
    "n_subsets": (10, 100, 500, 1000),
    "n_assignments": (10, 50, 100),
    "cost_weight": (0.1, 0.01, 0.005, 0.001, 0.0),
    "subset_scale": (1.0, 1.5, 3.0, 5.0, 10.0, 20.0),
}
QUICK_SWEEPS: dict[str, tuple[Any, ...]] = {name: values[:2] for name, values in SWEEPS.items()}

# Points above the plain forest, and share of its comparisons.
BARS = {"cifar": (0.5, 0.8), "cub": (0.0, 1.0)}
N_ALTERNATE = 3


def everything(contender: str, metric: str = "none", **parameters: Any) -> Setting:
    """All samples with their fine labels."""
    return Setting(contender, 1.0, 0.0, metric, parameters)


def against_plain(bench: Bench, data: TwoLevels) -> None:
    """Table 1: plain and regularised forests and other classifiers, with and without a metric."""
    names = ("class means", "5 neighbours", "ridge classifier", "plain", "regularised")
    summaries: dict[tuple[str, str], Summary] = {}
    for metric in ("none", "all"):
        for name in names:
            summaries[name, metric] = bench.summary(data, everything(name, metric))
    rows = []
    for name in names:
        plain, learnt = (summaries[name, metric] for metric in ("none", "all"))
        printed = TABLE_1.get(name, ("", ""))
        rows.append((SHOWN.get(name, name), plain.percent(), learnt.percent(), *printed))
    columns = ["", "no metric, %", "learnt metric, %", "paper", "paper, metric"]
    notes = [
        f"metric {metric}: {line}"
        for column, metric in enumerate(("none", "all"))
        for line in disagreements(
            {name: summaries[name, metric] for name in names}, TABLE_1, column
        )
    ]
    bench.results.show(f"table 1: {data.name}, all labels fine", columns, rows, notes)
    _figures(bench, data, summaries["plain", "none"], summaries["regularised", "none"])


SHOWN = {"plain": "NCM forest", "regularised": "regularised NCM forest"}


def _figures(bench: Bench, data: TwoLevels, plain: Summary, regularised: Summary) -> None:
    points, share = BARS.get(data.key, (None, None))
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
            3.0 if data.key == "cifar" else None,
            "at most",
        ),
        Figure("plain: fit s", seconds["plain s"]),
    ]
    report("subcategory", data.name, figures, bars=data.is_real and not bench.quick)


def fit_seconds(bench: Bench, data: TwoLevels) -> Values:
    """Median fit time of both, in turns, so that a busy spell of the machine hits both."""

    def measure() -> Values:
        shown = draw(data, 0, 1.0, 0.0)
        times: dict[str, list[float]] = {"plain": [], "regularised": []}
        for seed in range(N_ALTERNATE):
            for name, seconds in times.items():
                model = CONTENDERS[name].make(bench.n_trees, seed)
                start = time.perf_counter()
                model.fit(shown.X, shown.fine)
                seconds.append(time.perf_counter() - start)
        plain, regularised = (statistics.median(seconds) for seconds in times.values())
        return {"plain s": plain, "regularised s": regularised}

    key = {"data": data.name, "times of": "plain and regularised", "trees": bench.n_trees}
    return bench.results.of(key, measure)


def sweep(bench: Bench, data: TwoLevels, parameter: str) -> dict[Any, Summary]:
    """Runs over the values of one parameter of the regularised forest."""
    values = (QUICK_SWEEPS if bench.quick else SWEEPS)[parameter]
    return {
        value: bench.summary(data, everything("regularised", **{parameter: value}))
        for value in values
    }


def parameters(bench: Bench, data: TwoLevels) -> None:
    """Fig. 2 and fig. 4: number of subsets and assignments, cost weight and size of subsets."""
    rows = []
    plain = bench.summary(data, everything("plain"))
    rows.append(("NCM forest", *_cells(plain)))
    for parameter in SWEEPS:
        for value, summary in sweep(bench, data, parameter).items():
            rows.append((f"{parameter}={value}", *_cells(summary)))
    columns = ["", "accuracy, %", "comparisons", "fit s"]
    bench.results.show(f"fig. 2 and 4: {data.name}, regularised forest", columns, rows)


def _cells(summary: Summary) -> tuple[str, float, float]:
    return summary.percent(), summary.mean("comparisons"), summary.mean("fit s")


def scoring_samples(bench: Bench, data: TwoLevels) -> None:
    """Candidates scored on few samples of large nodes, on more, and on all."""
    by_number = {
        name: bench.summary(data, everything("regularised", max_scoring_samples=value))
        for name, value in (("auto", "auto"), ("1024", 1024), ("4096", 4096), ("all", None))
    }
    rows = [(name, *_cells(summary)) for name, summary in by_number.items()]
    bench.results.show(
        f"max_scoring_samples: {data.name}", ["", "accuracy, %", "comparisons", "fit s"], rows
    )
    few, every = by_number["auto"], by_number["all"]
    lost = 100 * (every.mean("accuracy") - few.mean("accuracy"))
    saved = few.mean("fit s") / every.mean("fit s")
    figures = [
        Figure("auto scored: points lost to all", lost, 0.3, "at most"),
        Figure("auto scored: fit time / all", saved),
    ]
    report("subcategory", data.name, figures, bars=data.is_real and not bench.quick)
