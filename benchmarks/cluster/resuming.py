"""A driver that dies half way: the next run takes up what was finished."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.cluster.driver import Job, finished, started
from benchmarks.cluster.generated import generated_shards
from benchmarks.measure import Figure, report

_SECONDS = 300.0


def run(quick: bool) -> None:
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
