"""How training time grows with rows, and shrinks with threads."""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.data import Split, mixture
from benchmarks.measure import call_in_child, median_seconds, show_figures, show_table
from benchmarks.peers import ncm_forest
from benchmarks.processes import PeakMemory
from evergrow import open_shards, write_shards

# Rows, features and classes of ImageNet's training images as features of a network.
LARGE = (1_281_167, 1280, 1000)


def run(quick: bool) -> None:
    """Measure on a generated mixture."""
    split = mixture(20000 if quick else 100000, 256, 100)
    rows(split, [2000, 5000, 20000] if quick else [10000, 20000, 50000, 100000])
    threads(split.head(5000, 500) if quick else split)


def rows(split: Split, sizes: list[int]) -> None:
    """Fit time over the number of rows, relative to n log n."""
    table = []
    for n in sizes:
        forest = ncm_forest(2)
        seconds = median_seconds(lambda n=n, f=forest: f.fit(split.X[:n], split.y[:n]))  # type: ignore[misc]
        work = sum(forest._fitted.forest.n_comparisons)
        table.append((n, seconds, seconds / (n * math.log(n)), work / (n * math.log(n))))
    first = table[0]
    shown = [(n, s, rate / first[2], work / first[3]) for n, s, rate, work in table]
    columns = ["rows", "fit s", "time / n log n", "distances / n log n"]
    show_table(f"scaling: {split.name}", columns, shown)


def threads(split: Split) -> None:
    """One thread against two."""
    seconds = {
        n: median_seconds(lambda n=n: ncm_forest(n).fit(split.X, split.y))  # type: ignore[misc]
        for n in (1, 2)
    }
    figures = {f"fit on {n} threads, s": spent for n, spent in seconds.items()}
    show_figures(
        f"threads: {split.name}", figures | {"1 thread / 2 threads": seconds[1] / seconds[2]}
    )


def large(quick: bool) -> None:
    """A forest of 50 trees on data of ImageNet's size, on all cores."""
    sizes = (20_000, 64, 100) if quick else LARGE
    with tempfile.TemporaryDirectory() as folder:
        call_in_child("benchmarks.scaling:write_large", sizes, folder)
        table = []
        for way in ("in memory", "from shards"):
            found = call_in_child("benchmarks.scaling:fit_large", folder, way == "in memory")
            table.append((way, found[0], found[1] / 2**30))
    name = f"generated {sizes[0]} x {sizes[1]}, {sizes[2]} classes, {os.cpu_count()} threads"
    show_table(f"scaling: {name}", ["", "fit s", "peak of private memory, GiB"], table)


def write_large(sizes: tuple[int, int, int], folder: str) -> None:
    """Write the rows and labels to shards."""
    split, step = mixture(*sizes, n_test=0), 1 << 16
    parts = (slice(k, k + step) for k in range(0, len(split.y), step))
    write_shards(Path(folder) / "rows", ((split.X[part], split.y[part]) for part in parts))


def fit_large(folder: str, in_memory: bool) -> tuple[float, int]:
    """Seconds of a fit, and the most private memory of the process."""
    shards = open_shards(Path(folder) / "rows")
    X = np.asarray(shards) if in_memory else shards
    start = time.perf_counter()
    # Pages of the shards do not count: the system takes them back when memory is scarce.
    with PeakMemory(lambda: [os.getpid()]) as memory:
        ncm_forest(-1).fit(X, shards.labels)
    return time.perf_counter() - start, max(memory.peak.values())
