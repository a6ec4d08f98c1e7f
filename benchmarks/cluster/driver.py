"""One training run in a process of its own, whose memory can be watched and which can be killed."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

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
