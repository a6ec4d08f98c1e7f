"""Move stored samples between scratch files, so that no file is kept for a few rows.

Every update beyond the memory limit adds a scratch file, and a file is freed when no stored sample
lies in it. Files that are less than half full are rewritten and small ones are merged. So the files
take at most about twice the space of their samples, their number grows with the logarithm of the
number of samples, and so does the average number of times a sample is moved.

Samples keep their numbers, so trees do not change. Earlier forests keep their files.
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

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def tidy_files(forest: _core.Forest, limit: int | None) -> _core.Forest:
    """Rewrite scratch files that are less than half full, and merge small ones.

    ``limit`` is the memory limit in bytes; without a limit the samples are moved to memory.
    """
    samples = forest.samples
    capacities = np.array(samples.lender_capacities, dtype=np.int64)
    # Most forests have no files. Their updates must not take time for every stored sample.
    if not len(capacities):
        return forest
    lenders = samples.lenders
    n_left = np.bincount(lenders[lenders >= 0], minlength=len(capacities))
    moving = _worth_moving(n_left, capacities)
    if not len(moving):
        return forest
    try:
        rows = np.flatnonzero(np.isin(lenders, moving)).astype(np.int32)
        return forest.with_samples(_moved(samples, rows, limit))
    except OSError as error:
        # The current files are still valid; they only take more space than necessary.
        if error.errno not in _DISK_FULL:
            raise
        return forest


def gather_files(forest: _core.Forest, limit: int | None) -> _core.Forest:
    """Move all samples that lie in scratch files into a single new one."""
    rows = np.flatnonzero(forest.samples.lenders >= 0).astype(np.int32)
    if not len(rows):
        return forest
    return forest.with_samples(_moved(forest.samples, rows, limit))


def spill_to_file(samples: _core.Samples, chunk_bytes: int) -> _core.Samples:
    """Move all samples that are in memory to a scratch file; a loaded model has all in memory."""
    in_memory = (samples.lenders < 0) & (samples.classes >= 0)
    return _in_file(samples, np.flatnonzero(in_memory).astype(np.int32), chunk_bytes)


def _worth_moving(n_left: npt.NDArray[np.int64], capacities: npt.NDArray[np.int64]) -> Numbers:
    """Files less than half full, and files no larger than all smaller ones together."""
    moving = (n_left > 0) & (2 * n_left < capacities)
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
