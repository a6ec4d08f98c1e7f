"""Accuracy, calibration and speed on image features, class after class."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, Split, bird_features, image_features, mixture, object_features
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow import NCMClassifier, NCMMetric, RLSClassifier

__all__ = ["calibration_error", "run"]


def calibration_error(probabilities: Array, right: Array, n_bins: int = 15) -> float:
    """Expected calibration error: how far confidence is from accuracy, over bins of confidence."""
    confidence = probabilities.max(axis=1)
    places = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    error = 0.0
    for place in np.unique(places):
        mine = places == place
        error += float(mine.mean() * abs(right[mine].mean() - confidence[mine].mean()))
    return error


def run(quick: bool) -> None:
    """Everything that is measured by accuracy."""
    features = mixture(4000, 64, 40, n_test=2000) if quick else image_features()
    birds = mixture(3000, 128, 100, n_test=1000) if quick else bird_features()
    objects = mixture(3000, 128, 50, n_test=1000) if quick else object_features()
    real = features.name.startswith("CIFAR") and birds.name.startswith("CUB")
    with threadpool_limits(THREADS):
        stream(features, real)
        random_features(features, 300 if quick else 4000, real)
        automatic({"features": features, "birds": birds, "objects": objects}, real)
        metric(features, real)


def stream(split: Split, bars: bool) -> None:
    """Batches of 100 in the order of the classes, beside SGD, and against ridge on everything."""
    order = np.argsort(split.y, kind="stable")
    batches = [order[i : i + 100] for i in range(0, len(order), 100)]
    classes = np.unique(split.y)
    penalty = 1.0
    models: dict[str, Any] = {
        "RLSClassifier": RLSClassifier(regularization=penalty, recoding=0.0),
        "SGDClassifier": SGDClassifier(random_state=0),
    }
    rows = []
    for name, model in models.items():
        start = time.perf_counter()
        for batch in batches:
            if name == "SGDClassifier":
                model.partial_fit(split.X[batch], split.y[batch], classes=classes)
            else:
                model.partial_fit(split.X[batch], split.y[batch])
        accuracy = 100 * model.score(split.X_test, split.y_test)
        rows.append((name, time.perf_counter() - start, accuracy))
    start = time.perf_counter()
    ridge = RidgeClassifier(alpha=penalty).fit(split.X, split.y)
    at_once = 100 * ridge.score(split.X_test, split.y_test)
    rows.append(("RidgeClassifier, all at once", time.perf_counter() - start, at_once))
    title = f"{split.name}, class after class in batches of 100"
    show_table(f"linear: {title}", ["", "s, with scoring", "accuracy %"], rows)
    figures = [
        Figure("time of SGDClassifier / ours", rows[1][1] / rows[0][1], 1),
        Figure(
            "accuracy points from ridge on everything", abs(rows[0][2] - at_once), 0.1, "at most"
        ),
    ]
    report("linear", title, figures, bars=bars)


def random_features(split: Split, n_random: int, bars: bool) -> None:
    """Ten classes at a time on random features, and the same at once."""
    order = np.random.default_rng(0).permutation(np.unique(split.y))
    grown = RLSClassifier(n_random_features=n_random, random_state=0)
    start = time.perf_counter()
    for first in range(0, len(order), 10):
        rows = np.isin(split.y, order[first : first + 10])
        grown.partial_fit(split.X[rows], split.y[rows])
    seconds = time.perf_counter() - start
    accuracy = 100 * grown.score(split.X_test, split.y_test)
    start = time.perf_counter()
    chosen = RLSClassifier(n_random_features=n_random, random_state=0).fit(split.X, split.y)
    at_once = time.perf_counter() - start
    # With the numbers that the stream chose the two are one model.
    same = RLSClassifier(
        regularization=grown.regularization_,
        recoding=grown.recoding_,
        n_random_features=n_random,
        random_state=0,
    ).fit(split.X, split.y)
    columns = np.argsort(grown.classes_)
    difference = np.abs(grown.coef_[columns] - same.coef_).max() / np.abs(same.coef_).max()
    title = f"{split.name}, {n_random} random features"
    figures = [
        Figure("ten classes at a time: accuracy %", accuracy, 69.5),
        Figure("at once: accuracy %", 100 * chosen.score(split.X_test, split.y_test)),
        Figure(
            "at once, same parameters: accuracy %", 100 * same.score(split.X_test, split.y_test)
        ),
        Figure("relative difference of their weights", float(difference), 1e-6, "at most"),
        Figure("ten classes at a time: s", seconds),
        Figure("at once: s", at_once),
        Figure("chosen penalty, ten at a time", grown.regularization_),
        Figure("chosen penalty, at once", chosen.regularization_),
    ]
    report("linear", title, figures, bars=bars)


def automatic(splits: dict[str, Split], bars: bool) -> None:
    """Everything "auto": accuracy, what was chosen, and how far probabilities can be trusted."""
    rows, figures = [], []
    for key, split in splits.items():
        start = time.perf_counter()
        model = RLSClassifier(random_state=0).fit(split.X, split.y)
        seconds = time.perf_counter() - start
        probabilities = model.predict_proba(split.X_test)
        right = model.classes_[probabilities.argmax(axis=1)] == split.y_test
        error = calibration_error(probabilities, right)
        rows.append(
            (
                split.name,
                100 * float(right.mean()),
                100 * error,
                model.regularization_,
                model.recoding_,
                model.temperature_,
                seconds,
            )
        )
        bar = 68 if key == "birds" else None
        figures.append(Figure(f"{split.name}: accuracy %", 100 * float(right.mean()), bar))
        figures.append(Figure(f"{split.name}: expected calibration error %", 100 * error))
    columns = ["", "accuracy %", "ECE %", "penalty", "recoding", "temperature", "fit s"]
    show_table('linear: RLSClassifier(), everything "auto"', columns, rows)
    report("linear", 'everything "auto"', figures, bars=bars)


def metric(split: Split, bars: bool) -> None:
    """Class means, with a learnt metric, and with one learnt on a fifth of the classes."""
    classes = np.random.default_rng(0).permutation(np.unique(split.y))
    few = np.isin(split.y, classes[: len(classes) // 5])
    rows = []

    def add(name: str, model: Any, first: Array | None = None) -> float:
        start = time.perf_counter()
        if first is None:
            model.fit(split.X, split.y)
        else:
            model.partial_fit(split.X[first], split.y[first])
            model.partial_fit(split.X[~first], split.y[~first])
        accuracy = 100 * float(model.score(split.X_test, split.y_test))
        rows.append((name, accuracy, time.perf_counter() - start))
        return accuracy

    plain = add("class means", NCMClassifier())
    add("with a shared covariance (streaming LDA)", NCMClassifier(metric="mahalanobis"))
    learnt = add("with a learnt metric", NCMClassifier(metric=NCMMetric(random_state=0)))
    moved = add(
        "with a metric learnt on a fifth of the classes",
        NCMClassifier(metric=NCMMetric(random_state=0)),
        few,
    )
    show_table(f"linear: {split.name}, class means", ["", "accuracy %", "s, with scoring"], rows)
    figures = [
        Figure("learnt metric: points above class means", learnt - plain, 3),
        Figure("learnt on a fifth of the classes: points lost", learnt - moved),
    ]
    report("linear", f"{split.name}, metric", figures, bars=bars)
