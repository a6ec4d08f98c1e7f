"""Training past one machine: forests beyond a limit of memory, and forests and sums on Ray."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

import evergrow
from benchmarks.data import Split, image_features
from benchmarks.measure import THREADS, call_in_child, show_figures, show_table
from benchmarks.processes import PeakMemory, processor_seconds
from evergrow.estimators import Storage
from evergrow.foundation.engine import use_engine

_ROWS_AT_ONCE = 4096


def limited(quick: bool) -> None:
    """Train with and without a memory limit, each in a process of its own."""
    n_rows, n_features, n_classes, limit = (
        (30_000, 512, 100, 40) if quick else (300_000, 1000, 1000, 600)
    )
    figures = {"features, MB": n_rows * n_features * 4 / 1e6}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        shards = Path(folder) / "shards"
        evergrow.write_shards(shards, _batches(n_rows, n_features, n_classes))
        for name, given in (("in memory", None), ("within the limit", f"{limit}MiB")):
            found = call_in_child("benchmarks.cluster:train", str(shards), given)
            figures |= {f"{name}: {what}": value for what, value in found.items()}
    title = f"generated {n_rows // 1000}k x {n_features}, {n_classes} classes, {limit} MiB"
    show_figures(f"memory limit: {title}, 4 trees", figures)


def train(path: str, limit: str | None) -> dict[str, float]:
    """Seconds and megabytes of a fit in this process: rows in memory, or beyond a limit."""
    shards = evergrow.open_shards(path)
    X: Any = np.asarray(shards) if limit is None else shards
    storage = Storage(limit)
    forest = evergrow.NCMForestClassifier(4, n_jobs=THREADS, random_state=0, storage=storage)
    # What is imported and allocated once belongs to no run.
    warm = np.random.default_rng(0).random((200, 16), dtype=np.float32)
    evergrow.NCMForestClassifier(2, n_jobs=THREADS).fit(warm, np.arange(200) % 3)
    with PeakMemory(lambda: [os.getpid()]) as memory:
        start = time.perf_counter()
        forest.fit(X, shards.labels)
        seconds = time.perf_counter() - start
    peak = memory.peak[os.getpid()] / 1e6
    return {"s": seconds, "peak private memory, MB": peak, "trees, MB": forest.nbytes / 1e6}


def _batches(
    n_rows: int, n_features: int, n_classes: int
) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[Any]]]:
    """Overlapping Gaussian classes in no order, the same for every run."""
    rng = np.random.default_rng(0)
    centres = 0.35 * rng.standard_normal((n_classes, n_features), dtype=np.float32)
    for first in range(0, n_rows, _ROWS_AT_ONCE):
        y = rng.integers(0, n_classes, min(_ROWS_AT_ONCE, n_rows - first))
        yield rng.standard_normal((len(y), n_features), dtype=np.float32) + centres[y], y


def on_ray(quick: bool) -> None:
    """Two workers against two threads, in turns, so that other programs disturb both alike."""
    split = image_features()
    split = split.head(4000, 1) if quick else split
    rows = []
    with evergrow.cluster("local", n_workers=2):
        _forest(16).fit(split.X[:2000], split.y[:2000])
        # Watching takes time of its own.
        with PeakMemory(_ray_workers) as memory:
            for n_trees in (16, 64):
                _forest(n_trees).fit(split.X, split.y)
        for n_trees, n_rounds in ((16, 7), (64, 5)):
            rounds = [_train_both(split, n_trees) for _ in range(1 if quick else n_rounds)]
            own, ray, own_cpu, ray_cpu = (median(values) for values in zip(*rounds, strict=True))
            rows.append((n_trees, own, ray, ray / own, ray_cpu / own_cpu))
    columns = ["trees", "two threads, s", "two workers, s", "workers / threads", "same, CPU time"]
    show_table(f"forests on Ray: {split.name}", columns, rows)
    figures = {"private memory of a worker / features": memory.growth / split.X.nbytes}
    show_figures(f"memory on Ray: {split.name}", figures)


def _forest(n_trees: int) -> Any:
    return evergrow.NCMForestClassifier(n_trees, n_jobs=THREADS, random_state=0)


def _train_both(split: Split, n_trees: int) -> tuple[float, float, float, float]:
    """Wall-clock seconds of threads and of workers, and CPU seconds of both."""
    with use_engine(None):
        own = _seconds(lambda: _forest(n_trees).fit(split.X, split.y))
    ray = _seconds(lambda: _forest(n_trees).fit(split.X, split.y))
    return own[0], ray[0], own[1], ray[1]


def _seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the wall clock, and of processors by this process and those it started."""
    before, start = processor_seconds(), time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    return seconds, processor_seconds() - before


def _ray_workers() -> list[int]:
    """Processes of a Ray started here in which tasks of ours have run; others wait beside them."""
    return [
        process.pid for process in psutil.Process().children(recursive=True) if _runs_tasks(process)
    ]


def _runs_tasks(process: psutil.Process) -> bool:
    try:
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        return process.cmdline()[0].startswith("ray::") and "evergrow/_core" in mapped
    except (OSError, psutil.Error, IndexError):
        return False


N_SHARDS, N_CLASSES = 64, 100


def sums(quick: bool) -> None:
    """Least squares over shards: one pass here, and two workers of Ray."""
    n_features = 64 if quick else 512
    rows = []
    with evergrow.cluster("local", n_workers=2):
        for n in (200, 1600) if quick else (500, 4000):
            with tempfile.TemporaryDirectory() as folder:
                batches = _batches_of_all_classes(n, n_features)
                shards = evergrow.write_shards(folder, batches, rows_per_shard=n)
                # Workers begin, and look at the files, before anything is timed.
                evergrow.NCMClassifier().fit(shards, shards.labels)
                with use_engine(None):
                    evergrow.NCMClassifier().fit(shards, shards.labels)
                    here = _seconds(lambda: _fit_sums(shards))  # noqa: B023
                there = _seconds(lambda: _fit_sums(shards))  # noqa: B023
            rows.append((f"{N_SHARDS} shards of {n} x {n_features}", here[0], there[0]))
    show_table("least squares over shards", ["", "one pass, s", "two workers, s"], rows)


def _fit_sums(shards: evergrow.Shards) -> None:
    model = evergrow.RLSClassifier(regularization=1.0, recoding=0.0)
    model.fit(shards, shards.labels)


def _batches_of_all_classes(
    n_rows: int, n_features: int
) -> Iterator[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]:
    """Every class in every shard: there is nothing to leave out."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(N_CLASSES, n_features)).astype(np.float32)
    y = np.arange(n_rows) % N_CLASSES
    for _ in range(N_SHARDS):
        noise = rng.normal(size=(n_rows, n_features)).astype(np.float32)
        yield centres[y] + 3 * noise, y
