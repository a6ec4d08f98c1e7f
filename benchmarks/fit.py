"""Training: time and accuracy beside scikit-learn, few samples, distance to the machine's limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import Split, bird_features, digits, image_features, mixture, object_features
from benchmarks.measure import (
    THREADS,
    Figure,
    cpu_seconds,
    median_seconds,
    report,
    sgemm_rate,
    show_table,
)
from benchmarks.peers import ncm_forest, peers, random_forest
from evergrow import NCMClassifier, RLSClassifier
from evergrow.research.datasets import mixture as separate_classes


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


def small_classes(quick: bool) -> None:
    """Classes of few samples: leaves and class means by themselves, and as in the paper."""
    rows: list[tuple[Any, ...]] = []
    for split in _small_splits(quick):
        least, means = RLSClassifier(random_state=0), NCMClassifier()
        scores = [
            100 * m.fit(split.X, split.y).score(split.X_test, split.y_test) for m in (least, means)
        ]
        seconds = []
        paper: dict[str, Any] = {"min_samples_leaf": 10, "n_centroids": "sqrt"}
        for sizes in (paper, {}):
            forest = ncm_forest(1, **sizes)
            seconds.append(cpu_seconds(lambda: forest.fit(split.X, split.y)))  # noqa: B023
            scores.append(100 * forest.score(split.X_test, split.y_test))
        rows.append((split.name, *scores, *seconds))
    header = ["", "least squares %", "class means %", "paper's sizes %", "forest %"]
    show_table("fit: small classes", [*header, "paper's fit CPU s", "fit CPU s"], rows)


def _small_splits(quick: bool) -> Iterator[Split]:
    objects = object_features()
    for n in (1, 3, 10):
        yield _images_per_class(objects, n)
    yield _images_per_class(bird_features(), 10 if quick else 30)
    n_classes = 300 if quick else 3000
    data = separate_classes(n_classes, 128, 20, 4, distance=0.6, random_state=1)
    name = f"{n_classes} generated classes of 20"
    yield Split(name, data.X_train, data.y_train, data.X_test, data.y_test)


def _images_per_class(split: Split, n: int) -> Split:
    order = np.random.default_rng(0).permutation(len(split.y))
    y = split.y[order]
    chosen = np.concatenate([order[y == k][:n] for k in np.unique(y)])
    return replace(split, name=f"{split.name}, {n} each", X=split.X[chosen], y=split.y[chosen])


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
