"""One update of a large forest: a new class among many, and new samples among ever more."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data import Array, Split
from benchmarks.growing.protocol import Meter
from benchmarks.measure import THREADS, Figure, report, show_table
from benchmarks.peers import ncm_forest
from evergrow import IGT, RUST, ULS

__all__ = ["more_samples", "one_class"]

STRATEGIES: dict[str, dict[str, Any]] = {
    "ULS": {"update": ULS()},
    "IGT": {"update": IGT()},
    "RUST": {"update": RUST()},
}


def one_class(split: Split, n_held_out: int, bars: bool) -> None:
    """Add one class to all the others; mean over several classes that were held out."""
    classes = np.unique(split.y)
    held_out = np.random.default_rng(0).choice(classes, n_held_out, replace=False)
    names = ["retrained", *STRATEGIES]
    # Processor time, accuracy over all classes, accuracy on the new one.
    results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    for new in held_out:
        rows = split.y == new
        meter, retrained = Meter(), ncm_forest(THREADS)
        meter.fit(retrained, (split.X, split.y))
        results["retrained"].append((meter.seconds, *_accuracies(retrained, split, new)))
        known = ncm_forest(THREADS).fit(split.X[~rows], split.y[~rows])
        for name, parameters in STRATEGIES.items():
            meter, forest = Meter(), copy.deepcopy(known).set_params(**parameters)
            meter.update(forest, (split.X[rows], split.y[rows]))
            results[name].append((meter.seconds, *_accuracies(forest, split, new)))
    means = {name: np.mean(results[name], axis=0).tolist() for name in names}
    title = f"{split.name}, one class into {len(classes) - 1}, {n_held_out} held out in turn"
    show_table(
        f"growing: {title}",
        ["", "CPU s", "accuracy", "new class"],
        [(name, *means[name]) for name in names],
    )
    (seconds, overall, on_new), (full, best, best_on_new) = means["RUST"], means["retrained"]
    figures = [
        Figure("RUST: CPU / retraining", seconds / full, 0.10, "at most"),
        Figure("RUST: new class / retrained", on_new / best_on_new, 0.90),
        Figure("RUST: points lost over all classes", 100 * (best - overall), 1, "at most"),
    ]
    report("growing", title, figures, bars=bars)


def _accuracies(forest: Any, split: Split, new: object) -> tuple[float, float]:
    right = forest.predict(split.X_test) == split.y_test
    return float(right.mean()), float(right[split.y_test == new].mean())


def more_samples(split: Split, repeat: int, bars: bool) -> None:
    """Time of one update of a forest that holds few samples, and of one that holds ten times more.

    Once with the same trees, their leaves holding ten times more, and once with trees grown on ten
    times more. Updates are repeated on copies, which share the fitted state, so each begins with
    one forest.
    """
    n_many = len(split.X)
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(n_many)
    batch = split.X_test[:500], split.y_test[:500]
    rows, figures = [], []
    forests = {
        n: ncm_forest(THREADS).fit(split.X[shuffled[:n]], split.y[shuffled[:n]])
        for n in (n_many // 10, n_many)
    }
    filled = copy.deepcopy(forests[n_many // 10]).set_params(update=ULS())
    rest = shuffled[n_many // 10 :]
    filled.partial_fit(split.X[rest], split.y[rest])
    few, many = (
        1e6 * _update_seconds(forest, STRATEGIES["ULS"], batch, repeat) / len(batch[0])
        for forest in (forests[n_many // 10], filled)
    )
    rows.append(("ULS, same trees", few, many, many / few))
    figures.append(Figure("ULS: time with ten times more, same trees", many / few, 1.5, "at most"))
    for name in ("ULS", "IGT"):
        few, many = (
            1e6 * _update_seconds(forest, STRATEGIES[name], batch, repeat) / len(batch[0])
            for forest in forests.values()
        )
        rows.append((name, few, many, many / few))
        what = f"{name}: time with ten times more, larger trees"
        figures.append(Figure(what, many / few, 1.5, "at most"))
    # What part of it is the way down the trees, which are deeper and no longer fit a cache.
    few, many = (
        1e6 * _seconds(lambda f=forest: f.predict_proba(batch[0]), repeat) / len(batch[0])  # type: ignore[misc]
        for forest in forests.values()
    )
    rows.append(("predicting", few, many, many / few))
    few, many = (forest.comparisons(batch[0]) for forest in forests.values())
    rows.append(("distances per tree", few, many, many / few))
    few_rows, many_rows = forests
    show_table(
        "growing: CPU time per new sample, microseconds",
        ["", f"{few_rows} stored", f"{many_rows} stored", "ratio"],
        rows,
    )
    report("growing", f"{split.name}, {few_rows} and {many_rows} stored", figures, bars=bars)


def _update_seconds(
    forest: Any, parameters: dict[str, Any], batch: tuple[Array, Array], repeat: int
) -> float:
    copies = iter([copy.deepcopy(forest).set_params(**parameters) for _ in range(repeat)])
    return _seconds(lambda: next(copies).partial_fit(*batch), repeat)


def _seconds(work: Callable[[], object], repeat: int) -> float:
    """Median processor time."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)
