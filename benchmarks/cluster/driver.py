"""One training run on generated shards in a process of its own, which can be watched and killed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import evergrow
from benchmarks.cluster.memory import PeakMemory, digest_of
from benchmarks.measure import call_in_child, start_child


@dataclass(frozen=True)
class Job:
    """What to train on and how."""

    shards: str
    n_trees: int
    # As one array in memory instead of a stream from the shards.
    in_memory: bool = False
    memory_limit: str | None = None
    n_jobs: int = 1
    # As in evergrow.cluster; "" for none.
    address: str = ""
    n_workers: int = 2
    resume: str | None = None


def started(job: Job) -> subprocess.Popen[str]:
    """A process that runs the job."""
    return start_child("benchmarks.cluster.driver:train", asdict(job))


def finished(job: Job) -> dict[str, Any]:
    """What a process found that ran the job to its end."""
    found: dict[str, Any] = call_in_child("benchmarks.cluster.driver:train", asdict(job))
    return found


def train(settings: dict[str, Any]) -> dict[str, Any]:
    """Do a job, given as its fields, in this process."""
    job = Job(**settings)
    shards = evergrow.open_shards(job.shards)
    shards.verify()
    X: Any = np.asarray(shards) if job.in_memory else shards
    forest = evergrow.NCMForestClassifier(
        job.n_trees, n_jobs=job.n_jobs, random_state=0, memory_limit=job.memory_limit
    )
    # What is imported and allocated once belongs to no run.
    warm = np.random.default_rng(0).random((200, 16), dtype=np.float32)
    evergrow.NCMForestClassifier(2, n_jobs=job.n_jobs).fit(warm, np.arange(200) % 3)
    with (
        evergrow.cluster(job.address or None, n_workers=job.n_workers, resume=job.resume),
        PeakMemory(lambda: [os.getpid()]) as memory,
    ):
        start = time.perf_counter()
        forest.fit(X, shards.labels)
        seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "digest": digest_of(forest),
        "trees": forest.nbytes,
        "before": memory.before[os.getpid()],
        "peak": memory.peak[os.getpid()],
    }


_ROWS_AT_ONCE = 4096


def generated_shards(
    folder: Path, n_rows: int, n_features: int, n_classes: int, *, rows_per_shard: int | None = None
) -> str:
    """A folder of overlapping Gaussian classes in no order, the same for every run."""
    path = folder / f"{n_rows}x{n_features}"
    batches = _batches(n_rows, n_features, n_classes)
    evergrow.write_shards(path, batches, rows_per_shard=rows_per_shard)
    return str(path)


def _batches(
    n_rows: int, n_features: int, n_classes: int
) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[Any]]]:
    rng = np.random.default_rng(0)
    centres = 0.35 * rng.standard_normal((n_classes, n_features), dtype=np.float32)
    for first in range(0, n_rows, _ROWS_AT_ONCE):
        y = rng.integers(0, n_classes, min(_ROWS_AT_ONCE, n_rows - first))
        yield rng.standard_normal((len(y), n_features), dtype=np.float32) + centres[y], y
