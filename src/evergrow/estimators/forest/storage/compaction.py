"""Stored samples that move to other files, so that no file is held for a few rows.

Every update beyond a memory limit brings a file of its own, and a file goes when no sample that is
left lies in it. Files that are half empty are written anew, and small ones are joined: then the
files take at most about twice the budget of their samples, there are at most as many as the samples
can be halved, and on the whole a sample moves no more often than that.

Samples keep their numbers, so trees stay as they are; forests of before keep their files.
"""

from __future__ import annotations

import errno

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.storage.budget import copy_bytes
from evergrow.estimators.forest.storage.scratch_file import ScratchRows, aligned_rows
from evergrow.estimators.forest.value.sample_matrix import as_floats
from evergrow.estimators.forest.value.standardization import Standardization

Numbers = npt.NDArray[np.int32]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def tidy_files(forest: _core.Forest, limit: int | None) -> _core.Forest:
    """A forest after some of its samples left or others came: without files that are not worth it.

    ``limit`` is the memory limit in bytes; without one samples stay in memory.
    """
    samples = forest.samples
    rooms = np.array(samples.foreign_rooms, dtype=np.int64)
    # Most forests have no files; their updates cost by what they touch, not by what is stored.
    if not len(rooms):
        return forest
    lenders = samples.lenders
    n_left = np.bincount(lenders[lenders >= 0], minlength=len(rooms))
    moving = _worth_moving(n_left, rooms)
    if not len(moving):
        return forest
    try:
        rows = np.flatnonzero(np.isin(lenders, moving)).astype(np.int32)
        return forest.with_samples(_moved(samples, rows, limit))
    except OSError as error:
        # The files of now do as well; only later ones will find less budget.
        if error.errno not in _NO_ROOM:
            raise
        return forest


def gather_files(forest: _core.Forest, limit: int | None) -> _core.Forest:
    """The forest with all samples that lie in files in one file that holds nothing else."""
    rows = np.flatnonzero(forest.samples.lenders >= 0).astype(np.int32)
    if not len(rows):
        return forest
    return forest.with_samples(_moved(forest.samples, rows, limit))


def spill_to_file(samples: _core.Samples, chunk_bytes: int) -> _core.Samples:
    """The same samples, those in memory in a file: a model that was loaded has all there."""
    in_memory = (samples.lenders < 0) & (samples.classes >= 0)
    return _in_file(samples, np.flatnonzero(in_memory).astype(np.int32), chunk_bytes)


def _worth_moving(n_left: npt.NDArray[np.int64], rooms: npt.NDArray[np.int64]) -> Numbers:
    """Which files are half empty or, with the smaller ones, not larger than those together."""
    moving = (n_left > 0) & (2 * n_left < rooms)
    order = np.argsort(n_left, kind="stable")
    order = order[n_left[order] > 0]
    smaller = np.cumsum(n_left[order]) - n_left[order]
    joined = np.flatnonzero(n_left[order] <= smaller)
    if len(joined):
        moving[order[: joined[-1] + 1]] = True
    return np.flatnonzero(moving).astype(np.int32)


def _moved(samples: _core.Samples, rows: Numbers, limit: int | None) -> _core.Samples:
    if limit is not None:
        return _in_file(samples, rows, copy_bytes(limit))
    copy = samples.copy()
    fresh = aligned_rows((len(rows), samples.width), half=samples.half)
    plain = Standardization.identity(samples.n_features).core
    step = max(1, copy_bytes(0) // fresh.itemsize // samples.width)
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        block = as_floats(samples.take(rows[part])).astype(np.float32, copy=False)
        _core.standardize_rows(block, plain, fresh[part])
    copy.move_over(fresh, rows)
    return copy


def _in_file(samples: _core.Samples, rows: Numbers, chunk_bytes: int) -> _core.Samples:
    copy = samples.copy()
    scratch = ScratchRows(
        lambda numbers: as_floats(samples.take(rows[numbers])),
        samples.classes[rows],
        Standardization.identity(samples.n_features),
        half=samples.half,
        chunk_bytes=chunk_bytes,
    )
    copy.move_over(scratch.rows, rows, places=scratch.places)
    return copy
