"""Predicting: batches against the machine's limit and kNN, single rows against a random forest."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from benchmarks.data import Split, image_features, mixture
from benchmarks.measure import THREADS, Figure, median_seconds, report, sgemm_rate, show_table
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
    times = {}
    for name, model in peers(THREADS).items():
        if quick or not name.startswith("RandomForest"):
            with threadpool_limits(THREADS):
                model.fit(split.X, split.y)
                times[name] = median_seconds(lambda: model.predict(batch))  # noqa: B023
            rows.append((name, times[name], len(batch) / times[name]))
    show_table(f"predict 5000 rows: {split.name}", ["", "s", "rows/s"], rows)
    report(
        "predict",
        split.name,
        [
            Figure("share of the roofline %, batches of 5000", 100 * flops / rate / seconds, 30),
            Figure("brute kNN / ours, batches of 5000", times["KNeighbors (brute)"] / seconds, 8),
        ],
        bars=not quick,
    )


def single_rows(split: Split, quick: bool) -> None:
    """One row at a time on one thread."""
    n_rows = 50 if quick else 300
    ours = ncm_forest(THREADS).fit(split.X, split.y).set_params(n_jobs=1)
    theirs = random_forest(THREADS).fit(split.X, split.y).set_params(n_jobs=1)
    milliseconds = {}
    for name, model in {"ours": ours, "RandomForest(50)": theirs}.items():

        def one_by_one(model: object = model) -> None:
            for i in range(n_rows):
                model.predict(split.X_test[i : i + 1])  # type: ignore[attr-defined]

        milliseconds[name] = 1000 * median_seconds(one_by_one) / n_rows
    report(
        "predict",
        split.name,
        [
            Figure("one row, ms", milliseconds["ours"]),
            Figure("one row, RandomForest(50), ms", milliseconds["RandomForest(50)"]),
            Figure(
                "one row: RandomForest(50) / ours",
                milliseconds["RandomForest(50)"] / milliseconds["ours"],
                4,
            ),
        ],
        bars=not quick,
    )
