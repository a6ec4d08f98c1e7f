"""Work for engines; a module of its own, because workers import it by its name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from evergrow.foundation.errors import ShardError


def shifted(part, offset):
    return {"value": np.array([part + offset])}


def random_numbers(part):
    return {"sum": np.random.default_rng(part).normal(size=1000)}


def add(first, second):
    return {"sum": first["sum"] + second["sum"]}


def refuse(part):
    if part == 2:
        raise ShardError("shard 000002.npy has another SHA-256 than the manifest says")
    return {"value": np.array([part])}


def refuse_to_add(first, second):
    raise ValueError("these cannot be added")


def leave_mark(part, folder):
    (Path(folder) / str(part)).touch()
    return {"value": np.array([part])}


def _is_first(part, folder):
    try:
        (Path(folder) / str(part)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def die_once(part, folder):
    """The worker of each part is killed the first time."""
    if _is_first(part, folder):
        os.kill(os.getpid(), 9)
    return {"value": np.array([part])}


def die(part):
    os.kill(os.getpid(), 9)


def hang_once(part, folder):
    if _is_first(part, folder):
        time.sleep(1000)
    return {"value": np.array([part])}


def hang(part):
    time.sleep(1000)


def private_bytes(part, matrix):
    """Private memory of the worker after it has read all of a shared matrix."""
    total = float(matrix.sum())
    status = Path("/proc/self/status").read_text()
    kilobytes = int(status.split("RssAnon:")[1].split()[0])
    return {"bytes": np.array([kilobytes * 1024]), "sum": np.array([total])}


def aligned(part, matrix):
    return {
        "at": np.array([matrix.ctypes.data % 64]),
        "writeable": np.array([matrix.flags.writeable]),
    }
