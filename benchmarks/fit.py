"""Training: time and accuracy beside scikit-learn, and distance to the machine's limit."""

from __future__ import annotations

import time
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.data import Split, digits, image_features, mixture
from benchmarks.measure import THREADS, Figure, median_seconds, report, sgemm_rate, show_table
from benchmarks.peers import ncm_forest, peers, random_forest


def run(quick: bool) -> None:
    """Measure on image features, on digits and against the roofline."""
    features = image_features()
    beside_peers(features.head(4000, 2000) if quick else features, 1 if quick else 3, not quick)
    beside_peers(digits(), repeat=3, bars=False)
    roofline(mixture(10000 if quick else 100000, 512, 100), quick)


def beside_peers(split: Split, repeat: int, bars: bool) -> None:
    """Fit time and accuracy of every classifier on the same data."""
    rows: list[tuple[str, float, float, float]] = []
    forest = ncm_forest(THREADS)
    contenders: dict[str, Any] = {"NCMForest(50)": forest, **peers(THREADS)}
    if split.name == "digits":
        small = ncm_forest(THREADS, min_samples_leaf=1, standardize=False)
        contenders["NCMForest(50), leaf 1, unscaled"] = small
    for name, model in contenders.items():
        # The two forests carry the bar; the others are there for the picture.
        runs = repeat if name in ("NCMForest(50)", "RandomForest(50)") else 1
        with threadpool_limits(THREADS):
            fit_seconds = median_seconds(lambda: model.fit(split.X, split.y), runs)  # noqa: B023
            start = time.perf_counter()
            accuracy = model.score(split.X_test, split.y_test)
            rows.append((name, fit_seconds, time.perf_counter() - start, 100 * accuracy))
    show_table(
        f"fit: {split.name}, {THREADS} threads", ["", "fit s", "score s", "accuracy %"], rows
    )
    (_, ours, _, accuracy), (_, theirs, _, baseline) = rows[0], rows[1]
    # The bars are promises on real features; generated data is easier.
    bars = bars and split.name.startswith("CIFAR")
    figures = [
        Figure("fit time of RandomForest(50) / ours", theirs / ours, 8),
        Figure("accuracy %", accuracy, 66.5),
        Figure("accuracy points above RandomForest(50)", accuracy - baseline, 10),
    ]
    report("fit", split.name, figures, bars=bars)


def roofline(split: Split, quick: bool) -> None:
    """How much of the speed of a plain matrix product training reaches."""
    rate = sgemm_rate(size=2048 if quick else 4096)
    forest = ncm_forest(THREADS)
    seconds = median_seconds(lambda: forest.fit(split.X, split.y), 1 if quick else 3)
    flops = 2.0 * split.X.shape[1] * sum(forest._fitted.forest.n_comparisons)
    with threadpool_limits(THREADS):
        one_tree = random_forest(THREADS).set_params(n_estimators=2)
        peer = median_seconds(lambda: one_tree.fit(split.X, split.y), 1) / 2
    report(
        "fit",
        split.name,
        [
            Figure("sgemm GFLOP/s", rate / 1e9),
            Figure("fit s", seconds),
            Figure("distance GFLOP/s while fitting", flops / seconds / 1e9),
            Figure("share of the roofline %", 100 * flops / rate / seconds, 40),
            Figure("accuracy %", 100 * forest.score(split.X_test, split.y_test)),
            Figure("RandomForest fit s (two trees, scaled to 50)", 50 * peer),
        ],
        bars=not quick,
    )
