"""What choosing a penalty costs: a factor for each, or one eigendecomposition for all."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from benchmarks.data import Array
from benchmarks.measure import THREADS, median_seconds, show_table
from evergrow.estimators.linear.solver import back_substitute, factorise

PENALTIES = 10.0 ** np.linspace(-3, 3, 9)


def run(quick: bool) -> None:
    """Weights for nine penalties, for a few and for many classes."""
    rows = []
    for d, n_classes in ((200, 10),) if quick else ((512, 100), (2048, 100), (2048, 1000)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2 * d, d))
        gram, sums = X.T @ X, rng.standard_normal((n_classes, d))
        with threadpool_limits(THREADS):
            times = (median_seconds(partial(way, gram, sums)) for way in (_factors, _eigen))
            rows.append((f"d = {d}, {n_classes} classes", *times))
    show_table(
        f"linear: weights for {len(PENALTIES)} penalties",
        ["", "a factor each, s", "one eigendecomposition, s"],
        rows,
    )


def _factors(gram: Array, sums: Array) -> None:
    for penalty in PENALTIES:
        back_substitute(factorise(gram, penalty, intercept=False), sums)


def _eigen(gram: Array, sums: Array) -> None:
    values, vectors = scipy.linalg.eigh(gram, driver="evd")
    rotated = sums @ vectors
    for penalty in PENALTIES:
        (rotated / (values + penalty)) @ vectors.T
