"""What choosing a penalty costs: a factor for each, or one eigendecomposition for all."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from benchmarks.measure import THREADS, median_seconds, show_table
from evergrow.linear.ridge import back_substitute, factorise

__all__ = ["run"]

N_PENALTIES = 9


def run(quick: bool) -> None:
    """Weights for nine penalties, for a few and for many classes."""
    rows = []
    for d, n_classes in ((200, 10),) if quick else ((512, 100), (2048, 100), (2048, 1000)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2 * d, d))
        gram, sums = X.T @ X, rng.standard_normal((n_classes, d))
        penalties = 10.0 ** np.linspace(-3, 3, N_PENALTIES)

        def factors(gram: np.ndarray = gram, sums: np.ndarray = sums) -> None:
            for penalty in penalties:  # noqa: B023
                back_substitute(factorise(gram, penalty, intercept=False), sums)

        def eigen(gram: np.ndarray = gram, sums: np.ndarray = sums) -> None:
            values, vectors = scipy.linalg.eigh(gram, driver="evd")
            rotated = sums @ vectors
            for penalty in penalties:  # noqa: B023
                (rotated / (values + penalty)) @ vectors.T

        with threadpool_limits(THREADS):
            rows.append(
                (f"d = {d}, {n_classes} classes", *(median_seconds(f) for f in (factors, eigen)))
            )
    show_table(
        f"linear: weights for {N_PENALTIES} penalties",
        ["", "a factor each, s", "one eigendecomposition, s"],
        rows,
    )
