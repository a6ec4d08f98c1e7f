"""Coarse and fine classes: time of regularised forests, and of refining a running model."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from benchmarks.data import Array, Split, data_file, image_features, mixture
from benchmarks.measure import THREADS, median_seconds, show_table
from evergrow import RUST, NCMForestClassifier, SubcategoryForestClassifier
from evergrow.estimators import ClassMeans, Regularised

# Settings of the papers' forests, whatever the defaults of ours are.
TREES: dict[str, Any] = {
    "min_samples_leaf": 10,
    "standardize": "scale",
    "update": RUST(refresh=0.0),
    "n_jobs": THREADS,
    "random_state": 0,
}
PLAIN: dict[str, Any] = {**TREES, "balance": 0.0}
SPLITS: dict[str, Any] = {
    "NCM forest": ClassMeans(n_centroids="sqrt"),
    "regularised NCM forest": Regularised(),
    "regularised, scored on 1024 samples": Regularised(scoring_samples=1024),
    "regularised, scored on all samples": Regularised(scoring_samples=None),
}


def _data(quick: bool) -> tuple[Split, Array]:
    """Features, and the coarse class of each fine one."""
    path = data_file("cifar100_efflite0_pca256.npz")
    if quick or path is None:
        split = mixture(4000, 64, 40) if quick else image_features()
        return split, np.arange(int(split.y.max()) + 1) // 5
    with np.load(path) as found:
        return image_features(), found["fine_to_coarse"]


def regularised(quick: bool) -> None:
    """Fit time, comparisons and accuracy of regularised forests next to the plain one."""
    split, _ = _data(quick)
    rows = []
    for name, splits in SPLITS.items():
        forest = NCMForestClassifier(5 if quick else 50, splits=splits, **PLAIN)
        seconds = median_seconds(lambda: forest.fit(split.X, split.y), 1 if quick else 3)  # noqa: B023
        score = 100 * forest.score(split.X_test, split.y_test)
        rows.append((name, seconds, forest.comparisons(split.X_test), score))
    columns = ["", "fit s", "comparisons", "accuracy %"]
    show_table(f"regularised forests: {split.name}", columns, rows)


def refine(quick: bool) -> None:
    """Tell all fine labels of one coarse class to a running model, and to a new one."""
    split, parents = _data(quick)
    coarse = parents[split.y]
    chosen = np.random.default_rng(0).permutation(np.unique(parents))[: 2 if quick else 6]
    found = [_refined_and_refitted(split, coarse, divided, quick) for divided in chosen]
    rows = [
        (name, *(statistics.fmean(one[place][i] for one in found) for i in range(2)))
        for place, name in enumerate(("refined", "refitted"))
    ]
    columns = ["", "s", "fine classes of that class, %"]
    show_table(f"one coarse class divided, {len(chosen)} in turn: {split.name}", columns, rows)


def _refined_and_refitted(
    split: Split, coarse: Array, divided: int, quick: bool
) -> list[tuple[float, float]]:
    """Seconds of both ways, and percent of the fine classes that are right."""
    mine, asked = coarse == divided, np.isin(split.y_test, split.y[coarse == divided])

    def fitted(known: Array) -> SubcategoryForestClassifier:
        labels = np.column_stack([coarse, np.where(known, split.y, -1)])
        forest = SubcategoryForestClassifier(5 if quick else 50, method="hierarchical", **TREES)
        return forest.fit(split.X, labels)

    found = []
    refined = fitted(np.zeros_like(mine))
    start = time.perf_counter()
    refined.refine(refined.sample_ids_[mine], split.y[mine])
    middle = time.perf_counter()
    refitted = fitted(mine)
    times = middle - start, time.perf_counter() - middle
    for model, seconds in zip((refined, refitted), times, strict=True):
        right = model.predict(split.X_test[asked]) == split.y_test[asked]
        found.append((seconds, 100 * float(right.mean())))
    return found
