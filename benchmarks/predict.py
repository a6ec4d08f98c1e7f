"""Predicting: batches against the machine's limit and kNN, single rows against a random forest."""

from __future__ import annotations

from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.data import Split, image_features, mixture
from benchmarks.measure import THREADS, median_seconds, sgemm_rate, show_figures, show_table
from benchmarks.peers import ncm_forest, peers, random_forest


def run(quick: bool) -> None:
    """Measure batches on generated data and single rows on image features."""
    batches(mixture(10000 if quick else 100000, 512, 100), quick)
    features = image_features()
    single_rows(features.head(4000, 2000) if quick else features, quick)


def batches(split: Split, quick: bool) -> None:
    """Batches of 5000 rows, two threads on each side."""
    rate = sgemm_rate(size=2048 if quick else 4096)
    batch = split.X_test[:5000]
    forest = ncm_forest(THREADS).fit(split.X, split.y)
    seconds = median_seconds(lambda: forest.predict(batch), 5)
    flops = 2.0 * batch.size * forest.comparisons(batch) * forest.n_estimators
    rows = [("NCMForest(50)", seconds, len(batch) / seconds)]
    for name, model in peers(THREADS).items():
        if quick or not name.startswith("RandomForest"):
            with threadpool_limits(THREADS):
                model.fit(split.X, split.y)
                spent = median_seconds(lambda: model.predict(batch))  # noqa: B023
            rows.append((name, spent, len(batch) / spent))
    show_table(f"predict 5000 rows: {split.name}", ["", "s", "rows/s"], rows)
    share = 100 * flops / rate / seconds
    show_figures(f"predict: {split.name}", {"share of the roofline %, batches of 5000": share})


def single_rows(split: Split, quick: bool) -> None:
    """One row at a time on one thread."""
    n_rows = 50 if quick else 300
    forests = {"": ncm_forest(THREADS), ", RandomForest(50)": random_forest(THREADS)}
    figures = {}
    for name, model in forests.items():
        model.fit(split.X, split.y).set_params(n_jobs=1)

        def one_by_one(model: Any = model) -> None:
            for i in range(n_rows):
                model.predict(split.X_test[i : i + 1])

        figures[f"one row{name}, ms"] = 1000 * median_seconds(one_by_one) / n_rows
    show_figures(f"predict: {split.name}", figures)
