"""How far plans are from real runs: larger than the trial, on real features, on all cores.

Plans are made for one core and compared with time of the processor; the last one is compared with
the clock while all cores are at work.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

import evergrow
from benchmarks.cluster.memory import PeakMemory
from benchmarks.data import bird_features, image_features, object_features
from benchmarks.measure import Figure, report, show_table
from evergrow.distributed.planning.trial import generate, run_trial
from evergrow.distributed.planning.workload import ESTIMATORS, EstimatorSpec, Workload, this_machine
from evergrow.foundation.threads import one_blas_thread

__all__ = ["run"]

# A plan should tell minutes from hours: within a factor of two.
_FACTOR = 2.0
_COLUMNS = ["", "planned s", "measured s", "planned / measured"]

# Rows, features, classes, trees, and rows of a leaf.
_FORESTS = [
    (512000, 128, 300, 1, 10),
    (300000, 64, 2000, 1, 10),
    (8000, 7680, 100, 1, 10),
    (40000, 2048, 200, 1, 10),
    (200000, 96, 50, 1, 1000),
]
_SUMS = [(320000, 512, 100, 1, 1), (6000, 4000, 50, 1, 1), (20000, 768, 4000, 1, 1)]
_SIZES = {
    "ncm_forest": [*_FORESTS, (600000, 500, 1000, 1, 10)],
    "axis": _FORESTS,
    "linear": _FORESTS,
    "svm": [(48000, 64, 100, 1, 10), (4000, 900, 60, 1, 10), (12000, 48, 800, 1, 5)],
    "least_squares": _SUMS,
    "means": _SUMS,
    "erc": [(512000, 128, 100, 1, 1), (20000, 1000, 30, 1, 1), (200000, 64, 50, 2, 1)],
}
_QUICK = {"ncm_forest": [(8000, 256, 100, 2, 10)], "means": [(8000, 256, 100, 1, 1)]}


def run(quick: bool) -> None:
    """Plan, then train for real."""
    for name, sizes in (_QUICK if quick else _SIZES).items():
        cases = []
        for rows, features, classes, trees, leaf in sizes:
            work = Workload(rows, features, classes, trees, leaf)
            X, y = generate(rows, features, classes, seed=1)
            label = f"{rows} x {features}, {classes} classes"
            cases.append((label if leaf in (1, 10) else f"{label}, leaves of {leaf}", work, X, y))
        _compare(name, cases, bars=not quick)
    if quick:
        return
    for name in ("ncm_forest", "axis", "linear", "least_squares"):
        cases = []
        for split in (image_features(), bird_features(), object_features()):
            work = Workload(len(split.X), split.X.shape[1], len(np.unique(split.y)), trees=4)
            cases.append((split.name, work, split.X, split.y))
        _compare(name, cases, bars=False)
    _compare_on_all_cores()


def _compare(
    name: str,
    cases: list[tuple[str, Workload, npt.NDArray[np.float32], npt.NDArray[np.int64]]],
    bars: bool,
) -> None:
    spec, rows, figures = ESTIMATORS[name], [], []
    for label, work, X, y in cases:
        trial = run_trial(spec, work)
        planned = trial.scaled_cost(work).total
        measured, model = _measure(spec, work, X, y)
        rows.append((label, planned, measured, planned / measured))
        off = max(planned / measured, measured / planned)
        figures.append(Figure(f"{name}, {label}: off by a factor", off, _FACTOR, "at most"))
        if spec.kind == "forest":
            size = trial.scaled_tree_bytes(work) * work.trees / model._fitted.forest.nbytes
            figures.append(Figure(f"{name}, {label}: planned / real size of trees", size))
    show_table(f"plan: {name}", _COLUMNS, rows)
    report("cluster", "plan", figures, bars=bars)


def _measure(
    spec: EstimatorSpec, work: Workload, X: npt.NDArray[np.float32], y: npt.NDArray[np.int64]
) -> tuple[float, evergrow.NCMForestClassifier]:
    """The shorter of two: the first fit also waits for memory from the system."""
    model, taken = spec.make(work), []
    with one_blas_thread():
        for _ in range(2):
            start = time.process_time()
            model.fit(X, y)
            if spec.kind == "sums":
                model.predict(X[:1])
            taken.append(time.process_time() - start)
    return min(taken), model


def _compare_on_all_cores() -> None:
    """A whole forest on all cores of this machine: time, memory and the size of its file."""
    n, d, classes, trees = 100000, 500, 500, 8
    cores, _ = this_machine()
    planned = evergrow.plan(n, d, classes, trees=trees)
    X, y = generate(n, d, classes, seed=2)
    forest = evergrow.NCMForestClassifier(trees, n_jobs=cores, random_state=0)
    # Only the first fit: a second one holds the forest of the first until it has finished.
    with PeakMemory(lambda: [os.getpid()]) as memory:
        forest.fit(X, y)
    by_clock, of_core = [], []
    for _ in range(3):
        start, used = time.perf_counter(), time.process_time()
        forest.fit(X, y)
        by_clock.append(time.perf_counter() - start)
        of_core.append((time.process_time() - used) / cores)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest"
        forest.save(path)
        file_bytes = path.stat().st_size
    seconds, peak = planned.here_seconds, max(memory.peak.values())
    rows = [
        (f"by the clock on {cores} cores, s", seconds, min(by_clock), seconds / min(by_clock)),
        ("of each core, s", seconds, min(of_core), seconds / min(of_core)),
        ("private memory, MB", planned.here_bytes / 1e6, peak / 1e6, planned.here_bytes / peak),
        (
            "model file, MB",
            planned.model_bytes / 1e6,
            file_bytes / 1e6,
            planned.model_bytes / file_bytes,
        ),
    ]
    columns = ["", "planned", "measured", "planned / measured"]
    show_table(f"plan: {n} x {d}, {classes} classes, {trees} trees", columns, rows)
    figures = [Figure(f"planned / measured: {what}", ratio) for what, _, _, ratio in rows]
    report("cluster", "plan", figures)
