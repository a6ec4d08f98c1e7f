"""Updates of a forest in a block of a cluster: in this process, or by workers that keep its trees.

Whoever does the update, the estimator has all trees afterwards. What is here on two processors is
the least that workers can do: with as many of them as we have threads they cannot gain, and what
they lose is what it costs to send what changed. With one thread here they do half of the work each.
"""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy.typing as npt

import evergrow
from benchmarks.cluster.memory import digest_of
from benchmarks.data import mixture
from benchmarks.measure import THREADS, Figure, report
from evergrow.foundation.engine import current_engine

_STRATEGIES = ("uls", "igt", "rtst", "rust")
_N_TREES, _N_NEW, _N_WORKERS, _N_UPDATES = 16, 1000, 2, 4

Rows = npt.NDArray[Any]


def run(quick: bool) -> None:
    """Time some updates by each strategy, each way, after a first one that sends the trees."""
    split = mixture(8000, 64, 20, n_test=1) if quick else mixture(50_000, 256, 100, n_test=1)
    n_first = len(split.X) - _N_NEW * (_N_UPDATES + 1)
    figures = []
    for strategy in _STRATEGIES:
        forest = evergrow.NCMForestClassifier(_N_TREES, update=strategy, random_state=0)
        forest.set_params(n_jobs=THREADS).fit(split.X[:n_first], split.y[:n_first])
        expected, seconds, _ = _taught(forest, split.X[n_first:], split.y[n_first:])
        figures.append(Figure(f"{strategy}, here, s", min(seconds[1:])))
        forest.set_params(n_jobs=1)
        _, seconds, _ = _taught(forest, split.X[n_first:], split.y[n_first:])
        figures.append(Figure(f"{strategy}, here on one thread, s", min(seconds[1:])))
        with evergrow.cluster("local", n_workers=_N_WORKERS, updates="workers"):
            found, seconds, n_bytes = _taught(forest, split.X[n_first:], split.y[n_first:])
        assert digest_of(found) == digest_of(expected), "workers give another forest"
        figures += [
            Figure(f"{strategy}, first by {_N_WORKERS} workers, s", seconds[0]),
            Figure(f"{strategy}, by {_N_WORKERS} workers, s", min(seconds[1:])),
            Figure(f"{strategy}, changes sent back, MB", n_bytes / (_N_UPDATES + 1) / 1e6),
        ]
    report("cluster", f"{split.name}, {_N_NEW} new", figures, bars=False)


def _taught(forest: Any, X: Rows, y: Rows) -> tuple[Any, list[float], int]:
    """A copy that has learnt all rows, the seconds of every update, and the bytes from workers."""
    learner, seconds = copy.deepcopy(forest), []
    for first in range(0, len(X), _N_NEW):
        start = time.perf_counter()
        learner.partial_fit(X[first : first + _N_NEW], y[first : first + _N_NEW])
        seconds.append(time.perf_counter() - start)
    return learner, seconds, getattr(current_engine(), "n_bytes", 0)
