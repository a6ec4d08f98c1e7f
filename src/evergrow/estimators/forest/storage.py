"""How the training samples of a forest are stored: in memory, or beyond a limit in a file."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.errors import warn_user
from evergrow.foundation.params import (
    Choice,
    Integer,
    MemorySize,
    Nothing,
    Rule,
    Value,
    bytes_of,
)
from evergrow.foundation.rows import float_blocks

if TYPE_CHECKING:
    from evergrow.estimators.forest.value.fitted import ForestBatch

_MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


@dataclass(frozen=True, repr=False)
class Storage(Value):
    """How a forest stores its training samples for updates.

    Parameters
    ----------
    limit : str or int, default=None
        Bytes of samples that may be in memory: a size such as ``"4GiB"`` or ``"600MiB"``, or a
        number of bytes. If there are more, all of them are in a memory-mapped temporary file in
        ``TMPDIR``, or in ``/var/tmp`` if that is not set. The operating system keeps those in
        memory that were read last. The forest is the same. None stores all samples in memory, and
        is all that works on Windows.
    per_class : int, default=None
        Maximum number of samples of each class that are stored, drawn uniformly from those seen.
        None stores all of them. The leaves still count every sample.
    dtype : {"float32", "float16"}, default="float32"
        Precision. With ``"float16"``, the samples take half as much memory. It is fixed by the
        first call.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier
    >>> from evergrow.estimators import Storage
    >>> NCMForestClassifier(storage=Storage("4GiB", dtype="float16")).storage
    Storage(limit='4GiB', dtype='float16')
    """

    limit: str | int | None = None
    per_class: int | None = None
    dtype: Literal["float32", "float16"] = "float32"

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "limit": [Nothing(), MemorySize()],
        "per_class": [Nothing(), Integer(1, 2**28)],
        "dtype": [Choice(("float32", "float16"))],
    }

    @property
    def _half(self) -> bool:
        return self.dtype == "float16"

    def _folder(self, n_rows: int, n_features: int) -> str | None:
        """Folder for a file of so many rows; None if they may be in memory."""
        n_bytes = n_rows * _row_bytes(n_features, half=self._half)
        fits = self.limit is None or n_bytes <= bytes_of(self.limit)
        return None if fits else temporary_folder()


def _row_bytes(n_features: int, *, half: bool) -> int:
    return _core.padded_width(n_features) * (2 if half else 4)


def store_batch(
    samples: _core.Samples,
    batch: ForestBatch,
    standardization: Standardization,
    storage: Storage,
    n_threads: int,
) -> npt.NDArray[np.int32]:
    """Add the samples of a batch to the stored ones, and return their numbers."""
    n_rows = len(samples) - samples.n_removed + len(batch)
    folder = storage._folder(n_rows, samples.n_features)
    if folder is not None:
        n_moved = len(batch) if samples.in_file else n_rows
        check_space(folder, n_moved * _row_bytes(samples.n_features, half=samples.half))
        if not samples.in_file:
            _warn_of_memory(folder)
            samples.move_to_file(folder)
    numbers = samples.add(len(batch))
    for rows, block in float_blocks(batch.X):
        codes, ids = batch.codes[rows], batch.ids[rows]
        samples.write(numbers[rows], block, codes, ids, standardization.core, n_threads)
    if batch.weights is not None:
        samples.set_weights(numbers, batch.weights)
    return numbers


def temporary_folder() -> str:
    """Folder of temporary files: ``TMPDIR``, else ``/var/tmp``, which is on a disk."""
    named = os.environ.get("TMPDIR")
    if named and not os.path.isdir(named):
        raise OSError(
            errno.ENOENT,
            "samples beyond Storage.limit need a folder, and TMPDIR names one that does not exist",
            named,
        )
    folders = [named, "/var/tmp", tempfile.gettempdir()]  # noqa: S108
    return next(name for name in folders if name and os.path.isdir(name))


def check_space(folder: str, n_bytes: int) -> None:
    """Raise an ``OSError`` if a folder has too little space for samples."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise OSError(
            errno.ENOSPC,
            f"the samples exceed Storage.limit and need {n_bytes / 1e9:.2f} GB in a temporary "
            f"file, but the folder has only {free / 1e9:.2f} GB left; set TMPDIR to a folder with "
            "more space",
            folder,
        )


def _warn_of_memory(folder: str) -> None:
    """Warn if a folder is in memory rather than on a disk, where the system says so."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}" if hasattr(os, "major") else ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            parts = [mount.partition(" - ") for mount in mounts]
    except OSError:
        return
    kinds = [kind.split()[0] for about, _, kind in parts if about.split()[2] == number]
    if kinds and kinds[0] in _MEMORY_FILE_SYSTEMS:
        warn_user(
            f"the samples exceed Storage.limit, but their temporary folder {folder!r} is itself in "
            "memory: set TMPDIR to a folder on a disk",
            UserWarning,
        )
