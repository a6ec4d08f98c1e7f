"""How training time grows with rows, and shrinks with threads."""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.cluster.memory import PeakMemory
from benchmarks.data import Split, mixture
from benchmarks.measure import Figure, call_in_child, median_seconds, report, show_table
from benchmarks.peers import ncm_forest
from evergrow import NCMForestClassifier, open_shards, write_shards
from evergrow.distributed import plan
from evergrow.estimators.forest.value.serialization import to_tensors

# Rows, features and classes of ImageNet's training images as features of a network.
LARGE = (1_281_167, 1280, 1000)
LARGE_TREES = 50


def run(quick: bool) -> None:
    """Measure on a generated mixture."""
    split = mixture(20000 if quick else 100000, 256, 100)
    rows(split, [2000, 5000, 20000] if quick else [10000, 20000, 50000, 100000], bars=not quick)
    threads(split.head(5000, 500) if quick else split, bars=not quick)


def rows(split: Split, sizes: list[int], bars: bool) -> None:
    """Fit time over the number of rows, relative to n log n."""
    table = []
    for n in sizes:
        forest = ncm_forest(2)
        seconds = median_seconds(lambda n=n, f=forest: f.fit(split.X[:n], split.y[:n]))  # type: ignore[misc]
        work = sum(forest._fitted.forest.n_comparisons)
        table.append((n, seconds, seconds / (n * math.log(n)), work / (n * math.log(n))))
    first = table[0]
    shown = [(n, s, rate / first[2], work / first[3]) for n, s, rate, work in table]
    show_table(
        f"scaling: {split.name}",
        ["rows", "fit s", "time / n log n", "distances / n log n"],
        shown,
    )
    last = shown[-1]
    report(
        "scaling",
        split.name,
        [
            Figure(f"fit time / n log n, {sizes[0]} to {sizes[-1]} rows", last[2], 1.15, "at most"),
            Figure("distances computed / n log n", last[3]),
        ],
        bars=bars,
    )


def threads(split: Split, bars: bool) -> None:
    """One thread against two, and whether the forest is the same."""
    forests = {n: ncm_forest(n) for n in (1, 2)}
    seconds = {
        n: median_seconds(lambda f=f: f.fit(split.X, split.y))  # type: ignore[misc]
        for n, f in forests.items()
    }
    one, two = (to_tensors(forest._fitted)[1] for forest in forests.values())
    same = all(np.array_equal(one[name], two[name]) for name in one)
    report(
        "scaling",
        split.name,
        [
            Figure("1 thread / 2 threads", seconds[1] / seconds[2], 1.7),
            Figure("identical forest (1 = yes)", float(same), 1),
        ],
        bars=bars,
    )


def large(quick: bool) -> None:
    """A forest of 50 trees on data of ImageNet's size, on all cores, next to its plan."""
    sizes = (20_000, 64, 100) if quick else LARGE
    expected = plan(*sizes, trees=LARGE_TREES)
    with tempfile.TemporaryDirectory() as folder:
        call_in_child("benchmarks.scaling:write_large", sizes, folder)
        found = {
            way: call_in_child("benchmarks.scaling:fit_large", folder, way == "in memory")
            for way in ("in memory", "from shards")
        }
    table = [(way, s, n_bytes / 2**30, score) for way, (s, n_bytes, score) in found.items()]
    name = f"generated {sizes[0]} x {sizes[1]}, {sizes[2]} classes, {os.cpu_count()} threads"
    table.append(("plan", expected.here_seconds, expected.here_bytes / 2**30, ""))
    show_table(f"scaling: {name}", ["", "fit s", "peak GiB", "accuracy"], table)
    seconds, n_bytes, _ = found["in memory"]
    ratio = seconds / expected.here_seconds
    of_memory = n_bytes / expected.here_bytes
    figures = [
        Figure("time in memory / planned time", ratio),
        Figure("off by", max(ratio, 1 / ratio) - 1, 0.3, "at most"),
        Figure("memory / planned memory", of_memory),
        Figure("off by, memory", max(of_memory, 1 / of_memory) - 1, 0.3, "at most"),
    ]
    report("scaling", name, figures, bars=not quick)


def write_large(sizes: tuple[int, int, int], folder: str) -> None:
    """Write the rows and labels to shards, and rows to test with next to them."""
    split, step = mixture(*sizes), 1 << 16
    parts = (slice(k, k + step) for k in range(0, len(split.y), step))
    write_shards(Path(folder) / "rows", ((split.X[part], split.y[part]) for part in parts))
    np.savez(Path(folder) / "test.npz", X=split.X_test, y=split.y_test)


def fit_large(folder: str, in_memory: bool) -> tuple[float, int, float]:
    """Seconds of a fit, the most private memory of the process, and the accuracy on other rows."""
    shards = open_shards(Path(folder) / "rows")
    X = np.asarray(shards) if in_memory else shards
    with np.load(Path(folder) / "test.npz") as test:
        X_test, y_test = test["X"], test["y"]
    forest = NCMForestClassifier(LARGE_TREES, n_jobs=-1, random_state=0)
    start = time.perf_counter()
    # Pages of the shards do not count: the system takes them back when memory is scarce.
    with PeakMemory(lambda: [os.getpid()]) as memory:
        forest.fit(X, shards.labels)
    seconds = time.perf_counter() - start
    return seconds, max(memory.peak.values()), forest.score(X_test, y_test)
