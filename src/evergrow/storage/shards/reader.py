"""Reads a folder of shards as one matrix."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, ShardError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar
from evergrow.storage.shards.array_files import ArrayFile, check_content, check_once
from evergrow.storage.shards.labels import UNLABELLED, ShardLabels
from evergrow.storage.shards.manifest import DTYPES, MANIFEST, Manifest, Shard
from evergrow.storage.shards.rows import Numbers, ShardImages, StoredRows

# The system limits the number of open files.
_MAX_MAPPED = 128


def open_shards(path: str | os.PathLike[str]) -> Shards:
    """Open a folder of shards as one matrix, without reading it into memory.

    Parameters
    ----------
    path : path
        The folder, written by :func:`evergrow.write_shards` or ``evergrow shard``.

    Returns
    -------
    shards : Shards
        All rows that are in the folder now. To see rows that are appended later, open it again.

    Raises
    ------
    ShardError
        If the manifest is damaged or does not match the files. The content of each file is checked
        when its rows are first read.

    Examples
    --------
    >>> import evergrow, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = evergrow.write_shards(folder, [([[0.0], [1.0], [8.0]], ["a", "a", "b"])])
    ...     shards = evergrow.open_shards(folder)
    ...     evergrow.NCMClassifier().fit(shards, shards.labels).predict([[7]])
    array(['b'], dtype='<U1')
    """
    folder = Path(os.path.abspath(path))
    if not os.path.lexists(folder):
        raise FileNotFoundError(f"no such folder: {str(path)!r}")
    if not folder.is_dir():
        raise NotADirectoryError(f"{os.fspath(path)!r} is not a folder of shards")
    return Shards(folder, Manifest.read(folder))


class Shards(StoredRows):
    """A folder of files that behaves like one matrix of features; it may exceed memory.

    Estimators accept it as ``X`` and read it a block at a time. It has ``shape``, ``dtype``,
    ``ndim``, ``size`` and ``nbytes`` like an array, and rows are read by indexing. Files are
    memory-mapped, and each is checked against its SHA-256 hash when it is first read. Created by
    :func:`evergrow.open_shards` and :func:`evergrow.write_shards`. See :doc:`/shards`.

    Attributes
    ----------
    path : Path
        The folder.
    labels : ShardLabels
        The label of each row, which ``fit`` accepts as ``y``. If images have several rows, the
        label of each image. Raises a :class:`ShardError` if the folder has no labels.
    offsets : ndarray or None
        The first row of each image if images have several rows, otherwise None.

    Examples
    --------
    >>> import evergrow, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = evergrow.write_shards(folder, [[[0.0, 1.0]], [[2.0, 3.0], [4.0, 5.0]]])
    ...     shards.shape, shards[1], shards[[2, 0]][:, 0], shards[::2].tolist()
    ((3, 2), array([2., 3.]), array([4., 0.]), [[0.0, 1.0], [4.0, 5.0]])
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._firsts: Numbers = np.cumsum([0, *(shard.rows for shard in manifest.shards)])
        self.shape, self.dtype = (int(self._firsts[-1]), manifest.n_features), manifest.dtype
        self._mapped: OrderedDict[int, tuple[Any, npt.NDArray[Any]]] = OrderedDict()
        self._mapping = threading.Lock()
        self._files = [manifest.file_of(path, shard) for shard in manifest.shards]
        for file, shard in zip(self._files, manifest.shards, strict=True):
            file.check_size()
            for sidecar in shard.sidecar_files(path):
                sidecar.check_size()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path and the digest, not the rows."""
        n_classes = 0 if self.classes is None else len(self.classes)
        return (_reopen, (str(self.path), self.digest, len(self.manifest.shards), n_classes))

    @property
    def classes(self) -> npt.NDArray[Any] | None:
        """The classes in the order in which they were added; None without labels."""
        known = self.manifest.classes
        return None if known is None else known.classes

    @property
    def digest(self) -> str:
        """Hash of all rows and labels."""
        return self.manifest.digest

    @cached_property
    def labels(self) -> ShardLabels:
        """The label of each row, or of each image where images have several rows.

        Raises a ``ShardError`` if there are none; ``classes`` is None then.
        """
        known = self.manifest.classes
        if known is None:
            raise ShardError(
                f"{str(self.path)!r} has no labels: give an array with one per row, or write "
                "shards with labels"
            )
        codes = np.concatenate([self._codes(shard, known) for shard in self.manifest.shards])
        codes.setflags(write=False)
        return ShardLabels(codes, known.classes)

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64] | None:
        """The first row of each image if images have several rows, else None."""
        if not self.manifest.is_ragged:
            return None
        offsets = [np.zeros(1, dtype=np.int64)]
        for shard, first in zip(self.manifest.shards, self._firsts.tolist(), strict=False):
            offsets.append(self._shard_offsets(shard)[1:] + first)
        return np.concatenate(offsets)

    @property
    def images(self) -> ShardImages:
        """A sequence of matrices, one per image; an error if every row is a separate example."""
        if self.offsets is None:
            raise InvalidInputError(
                f"{str(self.path)!r} has no images of several rows: every row is an example"
            )
        return ShardImages(self, self.offsets)

    @property
    def n_items(self) -> int:
        """Number of images, or of rows if every row is a separate example."""
        return sum(shard.items for shard in self.manifest.shards)

    @property
    def parts(self) -> list[ShardPart]:
        """The files, as small objects that can be sent to other processes."""
        return [self.part(i) for i in range(len(self.manifest.shards))]

    def part(self, i: int) -> ShardPart:
        """One of the files, as a small object that can be sent to other processes."""
        shard, last = self.manifest.shards[i], int(self._firsts[1:][i])
        n_features, dtype = self.manifest.n_features, self.dtype.name
        return ShardPart(str(self.path), shard, last - shard.rows, last, n_features, dtype)

    def verify(self, *, verbose: int = 0) -> None:
        """Read every file again and check its hash and values.

        Parameters
        ----------
        verbose : int, default=0
            Show a progress bar if positive.

        Raises
        ------
        ShardError
            If a file is damaged; the error names the first one.
        """
        shards = self.manifest.shards
        with progress_bar("verifying shards", len(shards), verbose) as progress:
            for done, shard in enumerate(shards):
                check_content(self._files[done])
                if self.manifest.classes is not None:
                    self._codes(shard, self.manifest.classes, again=True)
                if shard.offsets is not None:
                    self._shard_offsets(shard, again=True)
                origins = shard.sidecar_file(self.path, "origins")
                if origins is not None:
                    check_content(origins)
                if progress is not None:
                    progress(done + 1)

    def __repr__(self) -> str:
        """Show the path and the size."""
        n_rows, n_features = self.shape
        return (
            f"Shards({str(self.path)!r}: {n_rows} rows of {n_features} {self.dtype.name} "
            f"in {len(self.manifest.shards)} files)"
        )

    def _rows_of(self, i: int) -> npt.NDArray[Any]:
        """Map the rows of one file, after checking it."""
        file = self._files[i]
        # A mapped file that is truncated would crash the process, so it is checked before each use.
        now = check_once(file)
        with self._mapping:
            known = self._mapped.get(i)
            if known is None or known[0] != now:
                known = (now, file.map())
                self._mapped[i] = known
                if len(self._mapped) > _MAX_MAPPED:
                    self._mapped.popitem(last=False)
            self._mapped.move_to_end(i)
        return known[1]

    def _span(self, first: int, last: int, step: int) -> npt.NDArray[Any]:
        parts = []
        begin = int(np.searchsorted(self._firsts, first, side="right")) - 1
        at = first
        for i in range(begin, len(self.manifest.shards)):
            start, stop = int(self._firsts[i]), int(self._firsts[i + 1])
            if at >= last:
                break
            if at < stop:
                parts.append(self._rows_of(i)[at - start : min(last, stop) - start : step])
                at += step * len(parts[-1])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _at(self, numbers: Numbers) -> npt.NDArray[Any]:
        found = np.empty((len(numbers), self.shape[1]), dtype=self.dtype)
        bounds = np.searchsorted(numbers, self._firsts)
        for i in np.flatnonzero(np.diff(bounds)).tolist():
            here = slice(bounds[i], bounds[i + 1])
            np.take(self._rows_of(i), numbers[here] - self._firsts[i], axis=0, out=found[here])
        return found

    def _codes(
        self, shard: Shard, classes: ClassList, *, again: bool = False
    ) -> npt.NDArray[np.int32]:
        file = shard.sidecar_file(self.path, "labels")
        if file is None:
            return np.full(shard.items, UNLABELLED, dtype=np.int32)
        codes = _checked(file, again=again)
        if codes.min() < UNLABELLED or codes.max() >= len(classes):
            raise file.wrong(f"labels must be from {UNLABELLED} to {len(classes) - 1}")
        return codes

    def _shard_offsets(self, shard: Shard, *, again: bool = False) -> npt.NDArray[np.int64]:
        file = shard.sidecar_file(self.path, "offsets")
        if file is None:
            raise ShardError(f"{MANIFEST} lists no offsets for {shard.name}")
        offsets = _checked(file, again=again)
        if offsets[0] != 0 or offsets[-1] != shard.rows or (np.diff(offsets) < 0).any():
            raise file.wrong(
                f"offsets must start with 0, never decrease, and end with {shard.rows}"
            )
        return offsets


@dataclass(frozen=True)
class ShardPart:
    """One file of a folder of shards, as a small object that can be sent to other processes.

    Attributes
    ----------
    path : str
        The folder.
    shard : object
        The entry of the file in the manifest of the folder.
    first : int
        The first row of the file, among all rows of the folder.
    last : int
        The row after the last one of the file.
    n_features : int
        Number of columns.
    dtype : str
        Type of the numbers.
    """

    path: str
    shard: Shard
    first: int
    last: int
    n_features: int
    dtype: str

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.shard.name

    @property
    def sha256(self) -> str:
        """Hash of the file."""
        return self.shard.sha256

    def read(self) -> npt.NDArray[Any]:
        """Return the rows as a memory-mapped array; the file is checked once per process."""
        shape = (self.last - self.first, self.n_features)
        path = Path(self.path) / self.shard.name
        file = ArrayFile(path, DTYPES[self.dtype], shape, self.sha256)
        check_once(file)
        return file.map()


def _checked(file: ArrayFile, *, again: bool = False) -> npt.NDArray[Any]:
    """Read a small array into memory."""
    if again:
        check_content(file)
    else:
        file.check_size()
        check_once(file)
    return np.array(file.map())


def _reopen(path: str, digest: str, n_shards: int, n_classes: int) -> Shards:
    """Open pickled shards, without rows that were appended later."""
    opened = open_shards(path)
    shards = Shards(opened.path, opened.manifest.first(n_shards, n_classes))
    if shards.digest != digest:
        raise ShardError(
            f"the shards in {path!r} have changed: the folder was rewritten, or this machine has "
            "another folder of the same name"
        )
    return shards
