"""The same forest on two workers of a cluster, and within a limit of memory."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import evergrow
from benchmarks.cluster.driver import Job, finished, generated_shards
from benchmarks.cluster.memory import PeakMemory, digest_of, ray_workers
from benchmarks.data import Split, image_features
from benchmarks.measure import THREADS, Figure, median_seconds, report


def limited(quick: bool) -> None:
    """Train with and without a limit, each in a process of its own."""
    n_rows, n_features, n_classes, limit = (
        (30_000, 512, 100, 40) if quick else (300_000, 1000, 1000, 600)
    )
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        shards = generated_shards(Path(folder), n_rows, n_features, n_classes)
        job = Job(shards, n_trees=4, n_jobs=THREADS, memory_limit=f"{limit}MiB")
        within = finished(job)
        free = finished(replace(job, in_memory=True, memory_limit=None))
    allowed = limit * 2**20 + within["trees"]
    report(
        "cluster",
        f"generated {n_rows // 1000}k x {n_features}, {n_classes} classes, {limit} MiB, 4 trees",
        [
            Figure("features, MB", n_rows * n_features * 4 / 1e6),
            Figure("model (trees), MB", within["trees"] / 1e6),
            Figure("in memory, s", free["seconds"]),
            Figure("in memory: peak private memory, MB", free["peak"] / 1e6),
            Figure("within the limit, s", within["seconds"]),
            Figure("within the limit: peak private memory, MB", within["peak"] / 1e6),
            Figure("of this before training, MB", within["before"] / 1e6),
            Figure(
                "peak private memory / (limit + model)", within["peak"] / allowed, 1.0, "at most"
            ),
            Figure(
                "within the limit / in memory", within["seconds"] / free["seconds"], 2.5, "at most"
            ),
            Figure("the same forest", float(within["digest"] == free["digest"]), 1),
        ],
        bars=not quick,
    )


def on_ray(quick: bool) -> None:
    """Train the same forest both ways."""
    split = image_features()
    split = split.head(4000, 1) if quick else split
    forests = {name: _forest() for name in ("own", "ray")}
    own = median_seconds(lambda: forests["own"].fit(split.X, split.y))
    with evergrow.cluster("local", n_workers=2):
        _forest().fit(split.X[:2000], split.y[:2000])
        with PeakMemory(ray_workers) as memory:
            ray = median_seconds(lambda: forests["ray"].fit(split.X, split.y))
    report("cluster", split.name, _figures(split, forests, own, ray, memory), bars=not quick)


def _forest() -> Any:
    return evergrow.NCMForestClassifier(16, n_jobs=THREADS, random_state=0)


def _figures(
    split: Split, forests: dict[str, Any], own: float, ray: float, memory: PeakMemory
) -> list[Figure]:
    same = digest_of(forests["own"]) == digest_of(forests["ray"])
    return [
        Figure("own two threads, s", own),
        Figure("two workers of Ray, s", ray),
        Figure("Ray / own", ray / own, 1.25, "at most"),
        Figure("matrix, MB", split.X.nbytes / 1e6),
        Figure("worker: private memory beyond that before, MB", memory.growth / 1e6),
        Figure("worker: private memory / matrix", memory.growth / split.X.nbytes, 0.3, "at most"),
        Figure("the same forest", float(same), 1),
    ]
