"""Workers and drivers that die: they cost time, not the result."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import evergrow
from benchmarks.cluster.driver import Job, finished, generated_shards, started
from benchmarks.cluster.memory import digest_of, ray_workers
from benchmarks.data import mixture
from benchmarks.measure import Figure, report

# Some kills come too late or find a worker that waits.
_MOST_TRIES = 3


def killing(quick: bool) -> None:
    """Kill one of two workers at a random moment of each run, until so many were at work."""
    n_wanted = 3 if quick else 20
    split = mixture(8000, 64, 20, n_test=1) if quick else mixture(30_000, 128, 100, n_test=1)
    expected = digest_of(_forest().fit(split.X, split.y))
    rng = np.random.default_rng(0)
    n_runs = n_same = n_hit = 0
    with evergrow.cluster("local", n_workers=2):
        start = time.perf_counter()
        _forest().fit(split.X, split.y)
        undisturbed = time.perf_counter() - start
        times = []
        while n_hit < n_wanted and n_runs < _MOST_TRIES * n_wanted:
            killer = _Killer(rng.uniform(0.05, 0.9) * undisturbed)
            start = time.perf_counter()
            with killer:
                forest = _forest().fit(split.X, split.y)
            times.append(time.perf_counter() - start)
            n_runs += 1
            n_same += digest_of(forest) == expected
            n_hit += killer.was_working
    report(
        "cluster",
        f"{split.name}, 16 trees, kill -9 of one of two workers",
        [
            Figure("runs", float(n_runs)),
            Figure("kills that hit a worker at work", float(n_hit), float(n_wanted)),
            Figure("runs that finished with the same forest, share", n_same / n_runs, 1),
            Figure("undisturbed, s", undisturbed),
            Figure("with a kill, median, s", float(np.median(times))),
            Figure("with a kill, longest, s", float(np.max(times))),
        ],
        bars=not quick,
    )


def _forest() -> Any:
    return evergrow.NCMForestClassifier(16, n_jobs=2, random_state=0)


class _Killer:
    """Kills a worker some seconds after the block began, one that is at work if there is one."""

    def __init__(self, seconds: float) -> None:
        self.was_working = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._kill_later, args=(seconds,))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _kill_later(self, seconds: float) -> None:
        if self._over.wait(seconds):
            return
        workers = [(not _is_idle(pid), pid) for pid in ray_workers()]
        if workers:
            self.was_working, victim = max(workers)
            os.kill(victim, signal.SIGKILL)


def _is_idle(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).cmdline()[0].startswith("ray::IDLE"))
    except (psutil.Error, IndexError):
        return True


_SECONDS = 300.0


def resuming(quick: bool) -> None:
    """Kill the driver when half of its results are kept, and run it again."""
    n_rows, n_features, n_classes = (8000, 64, 20) if quick else (50_000, 256, 100)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        job = Job(
            generated_shards(folder, n_rows, n_features, n_classes),
            n_trees=16,
            address="local",
            resume=str(folder / "finished"),
        )
        whole = finished(replace(job, resume=str(folder / "undisturbed")))
        n_parts = len(_kept(folder / "undisturbed"))
        _killed_half_way(job, n_parts)
        before = _kept(folder / "finished")
        resumed = finished(job)
        after = _kept(folder / "finished")
    untouched = sum(after.get(path) == written for path, written in before.items())
    report(
        "cluster",
        f"generated {n_rows // 1000}k x {n_features}, {n_classes} classes, driver killed half way",
        [
            Figure("parts of the work", float(n_parts)),
            Figure("finished before the kill", float(len(before))),
            Figure("of these not done again, share", untouched / len(before), 1),
            Figure("done after the kill", float(len(after) - len(before))),
            Figure("undisturbed, s", whole["seconds"]),
            Figure("rest after the kill, s", resumed["seconds"]),
            Figure("the same forest", float(resumed["digest"] == whole["digest"]), 1),
        ],
        bars=not quick,
    )


def _killed_half_way(job: Job, n_parts: int) -> None:
    process = started(job)
    deadline = time.monotonic() + _SECONDS
    while len(_kept(Path(job.resume or ""))) < n_parts // 2:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the run ended before it could be killed")
        time.sleep(0.001)
    process.kill()
    process.wait()


def _kept(folder: Path) -> dict[str, int]:
    """Finished results, and when each was written."""
    files = folder.rglob("*") if folder.exists() else ()
    found = [path for path in files if path.is_file() and not path.name.startswith(".")]
    return {str(path): path.stat().st_mtime_ns for path in found}
