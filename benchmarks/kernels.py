"""The nearest-centroid kernel alone, per instruction set, beside NumPy and a matrix product."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.measure import sgemm_rate, show_figures, show_table
from evergrow import _core


def run(quick: bool) -> None:
    """Measure on one thread over widths, row counts and numbers of centroids."""
    names = _core.available_kernels()
    rate = sgemm_rate(threads=1, size=1024 if quick else 4096) / 1e9
    table = []
    for d, n in [(256, 512), (512, 512), (512, 100000), (2048, 512)]:
        n_rows = min(n, 10000) if quick else n
        for k in (3, 10, 32):
            speeds = [_core_rate(n_rows, d, k, name) for name in names]
            numpy_speed = _numpy_rate(n_rows, d, k)
            table.append((f"{n_rows} x {d}", k, *speeds, numpy_speed))
    show_table("kernels: GFLOP/s, one thread", ["rows", "centroids", *names, "NumPy"], table)
    show_figures("kernels: a matrix product", {"sgemm GFLOP/s, one thread": rate})


Data = tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], npt.NDArray[np.float32]]


def _data(n: int, d: int, k: int) -> Data:
    """Rows, the random order in which a node deep in a tree meets them, and centroids."""
    rng = np.random.default_rng(0)
    rows, centroids = (rng.random((count, d), dtype=np.float32) for count in (n, k))
    return rows, rng.permutation(n).astype(np.int32), centroids


def _core_rate(n: int, d: int, k: int, isa: str) -> float:
    rows, order, centroids = _data(n, d, k)
    # Copying the rows into place takes as long as one pass: measure the difference of two counts.
    few, many = 1, 1 + max(2, int(2e9 / (2.0 * n * d * k)))
    times = []
    for repeat in (few, many) * 3:
        start = time.perf_counter()
        _core.nearest_centroids(rows, order, centroids, isa, repeat)
        times.append(time.perf_counter() - start)
    return 2.0 * n * d * k * (many - few) / (min(times[1::2]) - min(times[::2])) / 1e9


def _numpy_rate(n: int, d: int, k: int) -> float:
    """Gather, product and argmin, as one would write a node in NumPy."""
    rows, order, centroids = _data(n, d, k)
    half_norms = 0.5 * (centroids**2).sum(axis=1)
    best = float("inf")
    with threadpool_limits(1):
        for _ in range(3):
            start = time.perf_counter()
            (half_norms - rows[order] @ centroids.T).argmin(axis=1)
            best = min(best, time.perf_counter() - start)
    return 2.0 * n * d * k / best / 1e9
