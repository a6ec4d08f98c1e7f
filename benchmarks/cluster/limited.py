"""Features that are larger than the memory a forest may use."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.cluster.driver import Job, finished
from benchmarks.cluster.generated import generated_shards
from benchmarks.measure import THREADS, Figure, report


def run(quick: bool) -> None:
    """Train with and without a limit, each in a process of its own."""
    n_rows, n_features, n_classes, limit = (
        (30_000, 512, 100, 40) if quick else (300_000, 1000, 1000, 600)
    )
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        shards = generated_shards(Path(folder), n_rows, n_features, n_classes)
        job = Job(shards, n_trees=4, n_jobs=THREADS, memory_limit=f"{limit}MiB")
        limited = finished(job)
        free = finished(replace(job, in_memory=True, memory_limit=None))
    allowed = limit * 2**20 + limited["trees"]
    report(
        "cluster",
        f"generated {n_rows // 1000}k x {n_features}, {n_classes} classes, {limit} MiB, 4 trees",
        [
            Figure("features, MB", n_rows * n_features * 4 / 1e6),
            Figure("model (trees), MB", limited["trees"] / 1e6),
            Figure("in memory, s", free["seconds"]),
            Figure("in memory: peak private memory, MB", free["peak"] / 1e6),
            Figure("within the limit, s", limited["seconds"]),
            Figure("within the limit: peak private memory, MB", limited["peak"] / 1e6),
            Figure("of this before training, MB", limited["before"] / 1e6),
            Figure(
                "peak private memory / (limit + model)", limited["peak"] / allowed, 1.0, "at most"
            ),
            Figure(
                "within the limit / in memory", limited["seconds"] / free["seconds"], 2.5, "at most"
            ),
            Figure("the same forest", float(limited["digest"] == free["digest"]), 1),
        ],
        bars=not quick,
    )
