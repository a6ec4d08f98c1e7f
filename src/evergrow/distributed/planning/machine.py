"""What this machine does beside learning: copying, hashing, reading, embedding, talking to Ray."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from evergrow.distributed.planning.families import FAMILIES
from evergrow.distributed.planning.generated import generate
from evergrow.distributed.planning.workload import this_machine
from evergrow.estimators.forest.scratch import scratch_folder
from evergrow.foundation.progress import progress_bar

__all__ = [
    "RAY_SECONDS",
    "Machine",
    "has_ray",
    "measure_images",
    "measure_machine",
    "measure_ray",
]

_REPEATS = 3
_TRIAL_BYTES = 64 << 20
_N_IMAGES = 12
# Rows of this many features that a cache holds, and that hardly any does.
_NEAR_ROWS, _FAR_ROWS, _CROWD_FEATURES = 2000, 32000, 480
# Ray takes seconds to start, more on a busy machine.
RAY_SECONDS = 60
# Where there is no Ray to measure: what it took on the machines it was measured on.
_USUAL_TASK_SECONDS = 2e-3


@dataclass(frozen=True)
class Machine:
    """Rates in bytes per second, and seconds.

    ``crowding`` is what a core takes longer when all are at work, 1 for nothing, on rows that the
    cache holds, and ``far_crowding`` on more rows than that: cores share the way to memory. What
    takes long to measure is None until it is asked about: ``put_rate`` and
    ``task_seconds`` of Ray, which are guesses unless ``ray_is_measured``, and ``image_seconds``,
    which stays None without the extra ``vision``.
    """

    copy_rate: float
    hash_rate: float
    write_rate: float
    read_rate: float
    crowding: float
    far_crowding: float
    put_rate: float | None = None
    task_seconds: float | None = None
    ray_is_measured: bool = False
    image_seconds: float | None = None

    def with_ray(self) -> Machine:
        """The same with what Ray takes."""
        measured = measure_ray()
        put_rate, task_seconds = measured or (self.copy_rate, _USUAL_TASK_SECONDS)
        return replace(
            self,
            put_rate=put_rate,
            task_seconds=task_seconds,
            ray_is_measured=measured is not None,
        )


def measure_machine(verbose: int = 0) -> Machine:
    """Measure all but what takes long and is not always needed."""
    with progress_bar("measuring this machine", 5, verbose) as progress:
        done = progress or (lambda _: None)
        copy_rate = _copy_rate()
        done(1)
        hash_rate = _hash_rate()
        done(2)
        write_rate, read_rate = _disk_rates()
        done(3)
        crowding = _crowding(_NEAR_ROWS)
        done(4)
        far_crowding = max(crowding, _crowding(_FAR_ROWS))
        return Machine(copy_rate, hash_rate, write_rate, read_rate, crowding, far_crowding)


def _least(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """The least of several times: the one in which nobody else disturbed."""
    best = float("inf")
    for _ in range(_REPEATS):
        start = clock()
        work()
        best = min(best, clock() - start)
    return max(best, 1e-6)


def _copy_rate() -> float:
    source = np.ones(_TRIAL_BYTES, dtype=np.uint8)
    target = np.zeros_like(source)
    return _TRIAL_BYTES / _least(lambda: np.copyto(target, source))


def _hash_rate() -> float:
    content = bytes(_TRIAL_BYTES // 4)
    return len(content) / _least(lambda: hashlib.sha256(content).digest(), time.process_time)


def _disk_rates() -> tuple[float, float]:
    """Writing and reading where forests put rows, past the memory of the system."""
    content = np.random.default_rng(0).bytes(_TRIAL_BYTES)
    # No name: nothing is left however this ends.
    with tempfile.TemporaryFile(dir=scratch_folder()) as file:

        def write() -> None:
            file.seek(0)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

        def read() -> None:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            while file.read(1 << 20):
                pass

        return _TRIAL_BYTES / _least(write), _TRIAL_BYTES / _least(read)


def _crowding(n_rows: int) -> float:
    """Processor time of a tree when all cores grow trees, over that of a tree that grows alone."""
    cores, _ = this_machine()
    if cores == 1:
        return 1.0
    X, y = generate(n_rows, _CROWD_FEATURES, 100)

    def seconds(n_trees: int, n_jobs: int) -> float:
        forest = FAMILIES["ncm_forest"].make(n_trees).set_params(n_jobs=n_jobs)
        return _least(lambda: forest.fit(X, y), time.process_time) / n_trees

    n_trees = 2 * cores
    alone = seconds(min(n_trees, 8), 1)
    return max(1.0, seconds(n_trees, cores) / alone)


def has_ray() -> bool:
    """Whether Ray is installed; it may still not start."""
    return find_spec("ray") is not None


def measure_ray() -> tuple[float, float] | None:
    """Bytes per second into Ray's memory and seconds per task; None if Ray gives no answer.

    In a process of its own: a cluster that the caller is connected to stays as it is.
    """
    if not has_ray():
        return None
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    # A cluster that is running is not to be measured, nor disturbed.
    environment.pop("RAY_ADDRESS", None)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "evergrow.distributed.planning.ray_trial"],
            capture_output=True,
            timeout=RAY_SECONDS,
            env=environment,
            check=True,
        )
        found = json.loads(done.stdout.splitlines()[-1])
        rates = float(found["put_rate"]), float(found["task_seconds"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, IndexError, TypeError):
        return None
    return rates if all(0 < rate < float("inf") for rate in rates) else None


def measure_images() -> float | None:
    """Seconds of one core to read and embed a photograph; None without the extra ``vision``."""
    if any(find_spec(name) is None for name in ("PIL", "onnxruntime", "onnx")):
        return None
    from PIL import Image

    from evergrow.vision.embedding import Embedder

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for place in range(_N_IMAGES):
            # Smooth like a photograph: noise would take longer to read than any picture does.
            coarse = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
            path = Path(folder) / f"{place}.jpg"
            Image.fromarray(coarse).resize((500, 375)).save(path, quality=90)
            paths.append(path)
        try:
            embedder = Embedder(cache=False, n_jobs=1).fit()
        except (ImportError, OSError):
            return None
        return _least(lambda: embedder.transform(paths), time.process_time) / len(paths)
