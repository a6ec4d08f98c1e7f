"""Measures Ray in a process of its own and prints JSON.

Run as ``python -m evergrow.distributed.planning.ray_trial``.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["main"]

_TRIAL_BYTES = 64 << 20
_N_TASKS = 200
_REPEATS = 3


def main() -> None:
    """Start Ray here, time it and stop it."""
    import ray

    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        object_store_memory=4 * _TRIAL_BYTES,
    )
    try:
        array = np.ones(_TRIAL_BYTES, dtype=np.uint8)
        nothing = ray.remote(_nothing)
        ray.get(nothing.remote(0))
        put = _least(lambda: ray.put(array))
        tasks = _least(lambda: ray.get([nothing.remote(place) for place in range(_N_TASKS)]))
    finally:
        ray.shutdown()
    found = {"put_rate": _TRIAL_BYTES / put, "task_seconds": tasks / _N_TASKS}
    sys.stdout.write(json.dumps(found) + "\n")


def _nothing(place: int) -> int:
    return place


def _least(work: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return max(best, 1e-6)


if __name__ == "__main__":
    main()
