"""Two workers of a cluster against two threads of our own."""

from __future__ import annotations

from typing import Any

import evergrow
from benchmarks.cluster.memory import PeakMemory, digest_of, ray_workers
from benchmarks.data import Split, image_features
from benchmarks.measure import THREADS, Figure, median_seconds, report


def run(quick: bool) -> None:
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
