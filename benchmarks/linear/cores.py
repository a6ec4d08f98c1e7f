"""Least squares with random features on more and more cores, next to the matrix product alone."""

from __future__ import annotations

import os

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import mixture
from benchmarks.measure import Figure, median_seconds, report, show_table
from evergrow import RLSClassifier

N_RANDOM = 4096
# Sizes of the matrix product that measures what BLAS reaches in double precision.
_PRODUCT = (4096, 8192)


def cores(quick: bool) -> None:
    """Fit time on 1 to all cores, and the share of the rate of a plain matrix product."""
    n_rows, n_inputs = (4000 if quick else 200000), 512
    split = mixture(n_rows, n_inputs, 100, n_test=10)
    most = os.cpu_count() or 1
    counts = [n for n in (1, 2, 4, 8, 16, 32) if n <= most]
    # Products with the transposed features are symmetric: half of them are computed.
    operations = n_rows * N_RANDOM * (N_RANDOM + 2 * n_inputs)
    rates, products, table = {}, {}, []
    for n_threads in counts:
        # On one thread a part of the rows takes long enough.
        n = n_rows if n_threads >= min(4, most) else n_rows // 8
        with threadpool_limits(n_threads):
            seconds = median_seconds(
                lambda n=n: _model().fit(split.X[:n], split.y[:n]),  # type: ignore[misc]
                1 if n_threads < most else 3,
            )
            rates[n_threads] = operations * n / n_rows / seconds
            products[n_threads] = _product_rate()
        share = rates[n_threads] / products[n_threads]
        table.append(
            (n_threads, n, seconds, rates[n_threads] / 1e9, products[n_threads] / 1e9, share)
        )
    headings = ["threads", "rows", "fit s", "GFLOP/s", "dgemm GFLOP/s", "share"]
    show_table(f"least squares: {split.name}, {N_RANDOM} random features", headings, table)
    figures = [Figure(f"share of dgemm, {counts[-1]} threads", table[-1][5], 0.6)]
    if 2 in rates:
        figures.append(Figure("2 threads / 1 thread", rates[2] / rates[1], 1.8))
    if 16 in rates:
        figures.append(Figure("16 threads / 4 threads", rates[16] / rates[4], 3.0))
    report("linear", split.name, figures, bars=not quick)


def _model() -> RLSClassifier:
    return RLSClassifier(
        n_random_features=N_RANDOM, regularization=1.0, recoding=0.0, random_state=0
    )


def _product_rate() -> float:
    """Operations per second of a matrix product in double precision."""
    n, k = _PRODUCT
    rng = np.random.default_rng(0)
    a, b, out = rng.random((n, k)), rng.random((k, n)), np.empty((n, n))
    np.matmul(a, b, out=out)
    return 2.0 * n * n * k / median_seconds(lambda: np.matmul(a, b, out=out), 3)
