"""Measure runs of an experiment, one after the other or in several processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from typing import Any

from joblib import effective_n_jobs

from evergrow.research.experiments.catalogue import find_experiments
from evergrow.research.experiments.context import ExperimentContext
from evergrow.research.experiments.environment import describe_environment
from evergrow.research.experiments.experiment import Experiment, Run
from evergrow.research.experiments.table import Row


@dataclass(frozen=True)
class Measured:
    """The rows of a run, and how it was measured.

    Attributes
    ----------
    rows : sequence of Row
        What was measured.
    seconds : float
        Seconds that the run took.
    n_workers, n_jobs : int
        Runs that were measured at the same time, and threads of each; -1 for all.
    environment : dict
        Versions, processor and number of cores.
    """

    rows: Sequence[Row]
    seconds: float
    n_workers: int
    n_jobs: int
    environment: dict[str, Any]


def measure_runs(
    experiment: Experiment, context: ExperimentContext, runs: Sequence[Run], n_workers: int
) -> Iterator[tuple[int, Measured]]:
    """Measure runs; yields (place, result) in the order in which they finish.

    With more than one worker the experiment must be one of the catalogue, and the threads that the
    context allows are divided among the workers.
    """
    if n_workers == 1:
        for place, run in enumerate(runs):
            yield place, _measure(experiment, context, run, 1)
        return
    n_threads = effective_n_jobs(context.n_jobs)
    options = {
        "quick": context.quick,
        "data": context.data,
        "n_seeds": context.n_seeds,
        "n_jobs": max(1, n_threads // n_workers),
    }
    pool = ProcessPoolExecutor(
        n_workers,
        # Not forked: a forked process may wait for ever for a lock that a thread held.
        get_context("spawn"),
        initializer=_start,
        initargs=(
            experiment.name,
            {**options, "n_jobs": max(1, n_threads // n_workers)},
            n_workers,
        ),
    )
    try:
        places = {pool.submit(_measure_here, run): place for place, run in enumerate(runs)}
        for done in as_completed(places):
            yield places[done], done.result()
    finally:
        # After an interruption, runs that have begun are not waited for.
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


def _measure(
    experiment: Experiment, context: ExperimentContext, run: Run, n_workers: int
) -> Measured:
    start = time.perf_counter()
    rows = experiment.measure(context, run)
    seconds = time.perf_counter() - start
    return Measured(rows, seconds, n_workers, context.n_jobs, describe_environment())


# What a worker measures, and the number of workers.
_here: list[tuple[Experiment, ExperimentContext, int]] = []


def _start(name: str, options: dict[str, Any], n_workers: int) -> None:
    """Prepare a worker; Ctrl-C is for the process that started it."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(options["n_jobs"])
    (experiment,) = find_experiments([name])
    _here[:] = [(experiment, ExperimentContext(experiment.sources, **options), n_workers)]


def _end_with_parent() -> None:
    """End the worker if the process that started it was killed: a run may take an hour."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _measure_here(run: Run) -> Measured:
    experiment, context, n_workers = _here[0]
    measured = _measure(experiment, context, run, n_workers)
    # Experiments may give rows that only this process could read.
    return replace(measured, rows=[dict(row) for row in measured.rows])
