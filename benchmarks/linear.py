"""Least squares: one example at a time, streams of classes, penalties, and cores."""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.linear_model import SGDClassifier
from sklearn.neighbors import NearestCentroid
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, Split, image_features, mixture
from benchmarks.growing import class_batches
from benchmarks.measure import THREADS, median_seconds, show_table
from evergrow import NCMClassifier, NCMForestClassifier, RLSClassifier, _core
from evergrow.estimators import ReLU
from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.solver import back_substitute, factorise

N_TIMED = 200


def _one_by_one(model: RLSClassifier, rng: np.random.Generator, n: int) -> float:
    """Mean seconds to learn one example and predict the next."""
    X = rng.standard_normal((n, model.n_features_in_), dtype=np.float32)
    n_classes = len(model.classes_)
    start = time.perf_counter()
    for i in range(n):
        model.partial_fit(X[i : i + 1], [i % n_classes])
        model.predict(X[i : i + 1])
    return (time.perf_counter() - start) / n


def seconds_per_example(d: int, n_classes: int, sizes: tuple[int, ...]) -> dict[int, float]:
    """Seconds per example after so many were learnt, the median of three stretches."""
    rng = np.random.default_rng(0)
    # Every class has an example from the start.
    block, y = rng.standard_normal((10000, d), dtype=np.float32), np.arange(10000) % n_classes
    model, found, n_seen = RLSClassifier(regularization=1.0, recoding=0.5), {}, 0
    for size in sizes:
        while n_seen < size:
            n = min(size - n_seen, len(block))
            model.partial_fit(block[:n], y[:n])
            n_seen += n
        model.predict(block[:1])
        _one_by_one(model, rng, 20)
        stretches = [_one_by_one(model, rng, N_TIMED // 3) for _ in range(3)]
        found[size] = statistics.median(stretches)
        n_seen += 20 + 3 * (N_TIMED // 3)
    return found


def _update_with_numpy(factor: Array, x: Array) -> None:
    """A rank-one update as one writes it with NumPy: a rotation per row."""
    x = x.copy()
    for j in range(len(x)):
        root = np.hypot(factor[j, j], x[j])
        c, s = root / factor[j, j], x[j] / factor[j, j]
        factor[j, j] = root
        factor[j, j + 1 :] = (factor[j, j + 1 :] + s * x[j + 1 :]) / c
        x[j + 1 :] = c * x[j + 1 :] - s * factor[j, j + 1 :]


def _peer(d: int, n_classes: int) -> tuple[float, float]:
    """Seconds of the paper's update with NumPy and SciPy: the factor, and solving for W."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * d, d))
    factor = scipy.linalg.cholesky(X.T @ X + np.eye(d))
    b, x = rng.standard_normal((d, n_classes)), rng.standard_normal(d)
    return (
        median_seconds(lambda: _update_with_numpy(factor, x)),
        median_seconds(lambda: scipy.linalg.cho_solve((factor, False), b, check_finite=False), 5),
    )


def _factor_alone(d: int) -> tuple[float, float]:
    """Seconds of one rank-one update, and to read and write the triangle once."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * d, d))
    factor = np.ascontiguousarray(scipy.linalg.cholesky(X.T @ X + np.eye(d)))
    row, sign = rng.standard_normal((1, d)), np.ones(1)
    update = median_seconds(lambda: _core.update_factor(factor, row, sign), 31)
    # Larger than any cache: what a copy moves per second, as STREAM counts it.
    source, target = np.ones(1 << 25), np.zeros(1 << 25)
    copy = median_seconds(lambda: np.copyto(target, source), 9)
    bandwidth = 2 * source.nbytes / copy
    return update, 2 * 8 * d * (d + 1) / 2 / bandwidth


def one_example(quick: bool) -> None:
    """Against the paper's update, over the number of examples, and against memory."""
    d, n_classes = (256, 50) if quick else (2048, 1000)
    sizes = (1000, 10000) if quick else (1000, 10000, 100000, 1000000)
    with threadpool_limits(THREADS):
        found = seconds_per_example(d, n_classes, sizes)
        update, solving = _peer(d, n_classes)
    factor, ideal = _factor_alone(d)
    show_table(
        f"linear: one example and a prediction, d = {d}, {n_classes} classes",
        ["", "ms"],
        [
            *((f"ours after {n} examples", 1e3 * seconds) for n, seconds in found.items()),
            ("NumPy update of the factor", 1e3 * update),
            ("SciPy solving for W", 1e3 * solving),
            ("our update of the factor, gains included", 1e3 * factor),
            ("reading and writing the triangle once", 1e3 * ideal),
        ],
    )


def stream(quick: bool) -> None:
    """Five classes at a time, each example once, with a prediction after each batch."""
    split = mixture(4000, 64, 40, n_test=2000) if quick else image_features()
    n_random = 200 if quick else 4000
    _, batches = class_batches(split.y, 5, 5, len(np.unique(split.y)), 0)
    contenders: dict[str, Any] = {
        "RLSClassifier": RLSClassifier(random_state=0),
        f"RLSClassifier, {n_random} random features": RLSClassifier(
            features=ReLU(n_random), random_state=0
        ),
        "NCMClassifier": NCMClassifier(),
        "streaming LDA: NCMClassifier, mahalanobis": NCMClassifier(metric="mahalanobis"),
        "NCMForestClassifier(50)": NCMForestClassifier(n_jobs=THREADS, random_state=0),
        "SGDClassifier, log loss": SGDClassifier(loss="log_loss", random_state=0),
        "NearestCentroid, retrained": NearestCentroid(),
    }
    with threadpool_limits(THREADS):
        rows = [(name, *_learn(model, split, batches)) for name, model in contenders.items()]
    title = f"linear: {split.name}, five classes at a time, each example once"
    show_table(title, ["", "updates s", "accuracy %"], rows)


def _learn(model: Any, split: Split, batches: list[Array]) -> tuple[float, float]:
    """Seconds of all updates, with a prediction after each, and accuracy in the end."""
    told = {"classes": np.unique(split.y)} if isinstance(model, SGDClassifier) else {}
    start, rows = time.perf_counter(), batches[0][:0]
    for batch in batches:
        if hasattr(model, "partial_fit"):
            model.partial_fit(split.X[batch], split.y[batch], **told)
        else:
            rows = np.concatenate([rows, batch])
            model.fit(split.X[rows], split.y[rows])
        model.predict(split.X_test[:1])
    seconds = time.perf_counter() - start
    return seconds, 100 * float(np.mean(model.predict(split.X_test) == split.y_test))


PENALTIES = 10.0 ** np.linspace(-3, 3, 9)


def choosing(quick: bool) -> None:
    """Weights for nine penalties, for a few and for many classes."""
    rows = []
    for d, n_classes in ((200, 10),) if quick else ((512, 100), (2048, 100), (2048, 1000)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2 * d, d))
        gram, sums = X.T @ X, rng.standard_normal((n_classes, d))
        with threadpool_limits(THREADS):
            times = (median_seconds(partial(way, gram, sums)) for way in (_factor_each, _eigen))
            rows.append((f"d = {d}, {n_classes} classes", *times))
    columns = ["", "a factor each, s", "one eigendecomposition, s"]
    show_table(f"linear: weights for {len(PENALTIES)} penalties", columns, rows)


def _factor_each(gram: Array, sums: Array) -> None:
    for penalty in PENALTIES:
        back_substitute(
            factorise(gram, Ridge(penalty, intercept=False, scoring="regression")), sums
        )


def _eigen(gram: Array, sums: Array) -> None:
    values, vectors = scipy.linalg.eigh(gram, driver="evd")
    rotated = sums @ vectors
    for penalty in PENALTIES:
        (rotated / (values + penalty)) @ vectors.T


N_RANDOM = 4096
# Sizes of the matrix product that measures what BLAS reaches in double precision.
PRODUCT = (4096, 8192)


def cores(quick: bool) -> None:
    """Fit time on 1 to all cores, and the share of the rate of a plain matrix product."""
    n_rows, n_inputs = (4000 if quick else 200000), 512
    split = mixture(n_rows, n_inputs, 100, n_test=10)
    most = os.cpu_count() or 1
    # Products with the transposed features are symmetric: half of them are computed.
    operations = n_rows * N_RANDOM * (N_RANDOM + 2 * n_inputs)
    table = []
    for n_threads in [n for n in (1, 2, 4, 8, 16, 32) if n <= most]:
        # On one thread a part of the rows takes long enough.
        n = n_rows if n_threads >= min(4, most) else n_rows // 8
        model = RLSClassifier(
            features=ReLU(N_RANDOM), regularization=1.0, recoding=0.0, random_state=0
        )
        with threadpool_limits(n_threads):
            seconds = median_seconds(
                partial(model.fit, split.X[:n], split.y[:n]), 1 if n_threads < most else 3
            )
            product = _product_rate(quick) / 1e9
        rate = operations * n / n_rows / seconds / 1e9
        table.append((n_threads, n, seconds, rate, product, rate / product))
    headings = ["threads", "rows", "fit s", "GFLOP/s", "dgemm GFLOP/s", "share"]
    show_table(f"least squares: {split.name}, {N_RANDOM} random features", headings, table)


def _product_rate(quick: bool) -> float:
    """Operations per second of a matrix product in double precision."""
    n, k = (1024, 2048) if quick else PRODUCT
    rng = np.random.default_rng(0)
    a, b, out = rng.random((n, k)), rng.random((k, n)), np.empty((n, n))
    np.matmul(a, b, out=out)
    return 2.0 * n * n * k / median_seconds(lambda: np.matmul(a, b, out=out), 3)
