"""One coarse class of a running model divided into its fine ones, beside fitting again."""

from __future__ import annotations

import copy
import time
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.data import Array
from benchmarks.measure import Figure, report, show_table
from benchmarks.subcategory.bench import Bench, made
from benchmarks.subcategory.data import TwoLevels
from evergrow.experiments import Table
from evergrow.experiments.cvpr2015.levels import MISSING, Draw, draw
from evergrow.experiments.cvpr2015.trials import Values

__all__ = ["refine", "refined_and_refitted"]

METHOD = "hierarchical"
N_DIVIDED = 6
# The data set that bars are promised on.
REAL = "CIFAR-100 features"


@lru_cache(maxsize=1)
def _running(data: TwoLevels, seed: int, n_trees: int) -> tuple[Draw, Any]:
    """A model that was shown coarse labels only."""
    shown = draw(data, seed, 1.0, 0.0)
    return shown, _fitted(shown, np.zeros(len(shown.fine), dtype=bool), seed, n_trees)


def _fitted(shown: Draw, known: Array, seed: int, n_trees: int) -> Any:
    labels = np.column_stack([shown.coarse, np.where(known, shown.fine, MISSING)])
    return made(METHOD, n_trees, seed).fit(shown.X, labels)


def refined_and_refitted(data: TwoLevels, divided: int, seed: int, n_trees: int) -> Values:
    """Tell all fine labels of one coarse class to a running model, and to a new one."""
    shown, running = _running(data, seed, n_trees)
    mine = shown.coarse == divided
    refined = copy.deepcopy(running)
    start = time.perf_counter()
    refined.refine(running.sample_ids_[mine], shown.fine[mine])
    refine_seconds = time.perf_counter() - start
    start = time.perf_counter()
    refitted = _fitted(shown, mine, seed, n_trees)
    values = {"refine s": refine_seconds, "refit s": time.perf_counter() - start}
    asked = data.coarse_test == divided
    for name, model in (("refined", refined), ("refitted", refitted)):
        values[name] = float(np.mean(model.predict(data.X_test[asked]) == data.fine_test[asked]))
        coarse = model.predict_coarse(data.X_test) == data.coarse_test
        values[f"{name}, coarse"] = float(coarse.mean())
    return values


def refine(bench: Bench, data: TwoLevels) -> None:
    """Mean over several coarse classes of the data and all seeds."""
    coarse, n_children = np.unique(data.parents, return_counts=True)
    candidates = np.random.default_rng(0).permutation(coarse[n_children > 1])
    chosen = candidates[: 2 if bench.quick else N_DIVIDED]
    runs = []
    for seed in bench.seeds:
        for divided in sorted(chosen.tolist()):
            key = {"data": data.name, "refine": divided, "trees": bench.n_trees, "seed": seed}
            runs.append(
                bench.results.of(
                    key,
                    lambda d=divided, s=seed: refined_and_refitted(data, d, s, bench.n_trees),  # type: ignore[misc]
                )
            )
    found = Table(runs)
    rows = [
        (name, 100 * found.mean(name), 100 * found.mean(f"{name}, coarse"), found.mean(seconds))
        for name, seconds in (("refined", "refine s"), ("refitted", "refit s"))
    ]
    title = (
        f"{data.name}, one coarse class divided, {len(chosen)} classes, {len(bench.seeds)} seeds"
    )
    columns = ["", "fine, of that class, %", "coarse, all classes, %", "s"]
    show_table(f"refine: {title}", columns, rows)
    figures = [
        Figure(
            "refined / refitted: accuracy on that class",
            found.mean("refined") / found.mean("refitted"),
            0.97,
        ),
        Figure(
            "refine / fit again: time",
            found.mean("refine s") / found.mean("refit s"),
            0.1,
            "at most",
        ),
    ]
    report("subcategory", title, figures, bars=data.name == REAL and not bench.quick)
