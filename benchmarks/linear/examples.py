"""One example at a time with a prediction after each, and what choosing a penalty costs."""

from __future__ import annotations

import statistics
import time
from functools import partial

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from benchmarks.data import Array
from benchmarks.measure import THREADS, Figure, median_seconds, report, show_table
from evergrow import RLSClassifier, _core
from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.solver import back_substitute, factorise

N_TIMED = 200


def _rows(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d), dtype=np.float32)


def _one_by_one(model: RLSClassifier, rng: np.random.Generator, n: int) -> float:
    """Mean seconds to learn one example and predict the next."""
    X = _rows(rng, n, model.n_features_in_)
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
    block, y = _rows(rng, 10000, d), np.arange(10000) % n_classes
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
    ours = found[sizes[0]]
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
    figures = [
        Figure("update, then solve / ours", (update + solving) / ours, 20),
        Figure("solving for W alone / ours", solving / ours),
        Figure(
            "slowest / fastest over examples seen",
            max(found.values()) / min(found.values()),
            1.2,
            "at most",
        ),
        Figure("factor update / reading and writing the triangle", factor / ideal, 3, "at most"),
    ]
    report("linear", f"one example, d = {d}, {n_classes} classes", figures, bars=not quick)


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
    show_table(
        f"linear: weights for {len(PENALTIES)} penalties",
        ["", "a factor each, s", "one eigendecomposition, s"],
        rows,
    )


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
