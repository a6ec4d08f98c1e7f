"""The same forest on two workers of a cluster, and within a limit of memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import evergrow
from benchmarks.cluster.driver import Job, finished, generated_shards
from benchmarks.cluster.memory import PeakMemory, digest_of, processor_seconds, ray_workers
from benchmarks.data import Split, image_features
from benchmarks.measure import THREADS, Figure, report


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
    """Train the same forest both ways, in turns, so that other programs disturb both alike."""
    split = image_features()
    split = split.head(4000, 1) if quick else split
    with evergrow.cluster("local", n_workers=2):
        _forest(16).fit(split.X[:2000], split.y[:2000])
        # Watching takes time of its own.
        with PeakMemory(ray_workers) as memory:
            for n_trees in (16, 64):
                _forest(n_trees).fit(split.X, split.y)
        for n_trees, n_rounds in ((16, 7), (64, 5)):
            rounds = [_train_both(split, n_trees) for _ in range(1 if quick else n_rounds)]
            figures = _figures(split, rounds, memory.growth)
            report("cluster", f"{split.name}, {n_trees} trees", figures, bars=not quick)


@dataclass(frozen=True)
class _Round:
    """Seconds of both ways, by the wall clock and of all processors, and if trees are equal."""

    own: float
    ray: float
    own_processors: float
    ray_processors: float
    is_same: bool


def _train_both(split: Split, n_trees: int) -> _Round:
    own, ray = _forest(n_trees), _forest(n_trees)
    with evergrow.cluster(None):
        own_seconds = _seconds(lambda: own.fit(split.X, split.y))
    ray_seconds = _seconds(lambda: ray.fit(split.X, split.y))
    wall, processors = zip(own_seconds, ray_seconds, strict=True)
    return _Round(*wall, *processors, digest_of(own) == digest_of(ray))


def _seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the wall clock, and of processors by this process and those it started."""
    before, start = processor_seconds(), time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    return seconds, processor_seconds() - before


def _forest(n_trees: int) -> Any:
    return evergrow.NCMForestClassifier(n_trees, n_jobs=THREADS, random_state=0)


def _figures(split: Split, rounds: list[_Round], growth: int) -> list[Figure]:
    ratios = sorted(one.ray / one.own for one in rounds)
    return [
        Figure("own two threads, s", median(one.own for one in rounds)),
        Figure("two workers of Ray, s", median(one.ray for one in rounds)),
        Figure("Ray / own, median of rounds", median(ratios), 1.25, "at most"),
        Figure("Ray / own, least of rounds", ratios[0]),
        Figure("Ray / own, most of rounds", ratios[-1]),
        Figure(
            "Ray / own, time of processors",
            median(one.ray_processors / one.own_processors for one in rounds),
        ),
        Figure("matrix, MB", split.X.nbytes / 1e6),
        Figure("worker: private memory beyond that before, MB", growth / 1e6),
        Figure("worker: private memory / matrix", growth / split.X.nbytes, 0.3, "at most"),
        Figure("the same forest", float(all(one.is_same for one in rounds)), 1),
    ]
