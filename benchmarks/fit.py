"""Training: time and accuracy beside scikit-learn, and the distance to the machine's limit."""

from __future__ import annotations

import time
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.data import Split, digits, image_features, mixture
from benchmarks.measure import THREADS, median_seconds, sgemm_rate, show_figures, show_table
from benchmarks.peers import ncm_forest, peers, random_forest


def run(quick: bool) -> None:
    """Measure on image features, on digits and against the roofline."""
    features = image_features()
    beside_peers(features.head(4000, 2000) if quick else features, 1 if quick else 3)
    beside_peers(digits(), repeat=3)
    roofline(mixture(10000 if quick else 100000, 512, 100), quick)


def beside_peers(split: Split, repeat: int) -> None:
    """Fit time and accuracy of every classifier on the same data."""
    rows: list[tuple[object, ...]] = []
    contenders: dict[str, Any] = {"NCMForest(50)": ncm_forest(THREADS), **peers(THREADS)}
    for name, model in contenders.items():
        # The two forests are compared; the others are there for the picture.
        runs = repeat if name in ("NCMForest(50)", "RandomForest(50)") else 1
        with threadpool_limits(THREADS):
            fit_seconds = median_seconds(lambda: model.fit(split.X, split.y), runs)  # noqa: B023
            start = time.perf_counter()
            accuracy = model.score(split.X_test, split.y_test)
            rows.append((name, fit_seconds, time.perf_counter() - start, 100 * accuracy))
    show_table(
        f"fit: {split.name}, {THREADS} threads", ["", "fit s", "score s", "accuracy %"], rows
    )


def roofline(split: Split, quick: bool) -> None:
    """How much of the speed of a plain matrix product training reaches."""
    rate = sgemm_rate(size=2048 if quick else 4096)
    forest = ncm_forest(THREADS)
    seconds = median_seconds(lambda: forest.fit(split.X, split.y), 1 if quick else 3)
    flops = 2.0 * split.X.shape[1] * sum(forest._fitted.forest.n_comparisons)
    with threadpool_limits(THREADS):
        one_tree = random_forest(THREADS).set_params(n_estimators=2)
        peer = median_seconds(lambda: one_tree.fit(split.X, split.y), 1) / 2
    show_figures(
        f"fit: {split.name}",
        {
            "sgemm GFLOP/s": rate / 1e9,
            "fit s": seconds,
            "distance GFLOP/s while fitting": flops / seconds / 1e9,
            "share of the roofline %": 100 * flops / rate / seconds,
            "RandomForest fit s (two trees, scaled to 50)": 50 * peer,
        },
    )
