"""A folder of shards, opened as one matrix of rows."""

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

from evergrow.foundation.errors import ShardError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.progress import progress_bar
from evergrow.storage.shards.arrayfiles import ArrayFile
from evergrow.storage.shards.images import ShardImages
from evergrow.storage.shards.labels import UNLABELLED, ShardLabels
from evergrow.storage.shards.manifest import DTYPES, MANIFEST, Manifest, Shard
from evergrow.storage.shards.rows import Numbers, StoredRows
from evergrow.storage.shards.verifying import check_content, check_once

__all__ = ["ShardPart", "Shards", "open_shards"]

# Each is an open file to the system, and there are limits on those.
_MOST_MAPPED = 128


def open_shards(path: str | os.PathLike[str]) -> Shards:
    """Open a folder of shards as one matrix, without reading it.

    Parameters
    ----------
    path : path
        The folder, written by :func:`evergrow.write_shards` or ``evergrow shard``.

    Returns
    -------
    shards : Shards
        All rows that are in the folder now. What is appended later is not part of it: open the
        folder again.

    Raises
    ------
    ShardError
        If the manifest is damaged or does not fit the files; the error names what is wrong. The
        content of each file is checked when its rows are first asked for.

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
        raise FileNotFoundError(f"there is no folder {str(path)!r}")
    if not folder.is_dir():
        raise NotADirectoryError(f"{os.fspath(path)!r} is not a folder: shards are kept in one")
    return Shards(folder, Manifest.read(folder))


class Shards(StoredRows):
    """Rows of features in a folder of files, asked for like those of one matrix.

    Estimators take it as ``X`` and go through it a block at a time, so it may be larger than
    memory. Files are mapped, and each is checked against its SHA-256 when it is first read.
    Made by :func:`evergrow.open_shards` and :func:`evergrow.write_shards`.

    It has ``shape``, ``dtype``, ``ndim``, ``size`` and ``nbytes`` as an array of all rows has them,
    and besides:

    - ``path``: the folder.
    - ``classes``: names of the classes, those of one batch sorted and those of later batches after
      them, or None.
    - ``labels``: the label of each row, or of each image where images have several rows, as a
      :class:`~evergrow.storage.ShardLabels` that ``fit`` takes as ``y``; an error without any.
    - ``images``: a sequence of matrices, one per image, where images have several rows.
    - ``parts``: the files one by one, as values that may be sent to other processes.
    - ``digest``: one hash that names all rows and labels.

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
        self._mapped: OrderedDict[int, tuple[Any, npt.NDArray[Any]]] = OrderedDict()
        self._mapping = threading.Lock()
        self._files = [manifest.file_of(path, shard) for shard in manifest.shards]
        for file, shard in zip(self._files, manifest.shards, strict=True):
            file.check_size()
            for beside in shard.files_beside(path):
                beside.check_size()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as where it is and what it holds, not as its rows."""
        n_classes = 0 if self.classes is None else len(self.classes)
        known = (str(self.path), self.digest, len(self.manifest.shards), n_classes)
        return (_opened_again, known)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        return int(self._firsts[-1]), self.manifest.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.manifest.dtype

    @property
    def classes(self) -> npt.NDArray[Any] | None:
        """Names of the classes, sorted within a batch, those of later batches after them."""
        known = self.manifest.classes
        return None if known is None else known.classes

    @property
    def digest(self) -> str:
        """One hash that names all rows and labels."""
        return self.manifest.digest

    @cached_property
    def labels(self) -> ShardLabels:
        """The label of each row, or of each image where images have several rows.

        A ``ShardError`` if there are none; ``classes`` is None then.
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
        """Where the rows of each image begin, if images have several rows; else None."""
        if not self.manifest.is_ragged:
            return None
        offsets = [np.zeros(1, dtype=np.int64)]
        for shard, first in zip(self.manifest.shards, self._firsts.tolist(), strict=False):
            offsets.append(self._shard_offsets(shard)[1:] + first)
        return np.concatenate(offsets)

    @property
    def images(self) -> ShardImages:
        """The rows of each image, where images have several rows; a ``ValueError`` otherwise."""
        if self.offsets is None:
            raise ValueError(
                f"every row of {str(self.path)!r} stands for itself: there are no images of "
                "several rows"
            )
        return ShardImages(self, self.offsets)

    @property
    def n_items(self) -> int:
        """Number of images, or of rows where each stands for itself."""
        return sum(shard.items for shard in self.manifest.shards)

    @property
    def parts(self) -> list[ShardPart]:
        """The files one by one."""
        return [self.part(i) for i in range(len(self.manifest.shards))]

    def part(self, i: int) -> ShardPart:
        """One of the files, as a value that may be sent to other processes."""
        shard = self.manifest.shards[i]
        first, last = (int(row) for row in self._firsts[i : i + 2])
        return ShardPart(
            str(self.path), shard, first, last, self.manifest.n_features, self.dtype.name
        )

    def verify(self, *, verbose: int = 0) -> None:
        """Read every file and check its hash and numbers, whatever was checked before.

        Parameters
        ----------
        verbose : int, default=0
            Show a progress bar when positive.

        Raises
        ------
        ShardError
            Names the first file that is not as it was written.
        """
        shards = self.manifest.shards
        with progress_bar("verifying shards", len(shards), verbose) as progress:
            for done, shard in enumerate(shards):
                check_content(self._files[done])
                if self.manifest.classes is not None:
                    self._codes(shard, self.manifest.classes, again=True)
                if shard.offsets is not None:
                    self._shard_offsets(shard, again=True)
                origins = shard.file_beside(self.path, "origins")
                if origins is not None:
                    check_content(origins)
                if progress is not None:
                    progress(done + 1)

    def __repr__(self) -> str:
        """Say how much there is."""
        n_rows, n_features = self.shape
        return (
            f"Shards({str(self.path)!r}: {n_rows} rows of {n_features} {self.dtype.name} "
            f"in {len(self.manifest.shards)} files)"
        )

    def _rows_of(self, i: int) -> npt.NDArray[Any]:
        """The rows of one file, mapped, after it was checked."""
        file = self._files[i]
        # A file cut short under its mapping would end the process: look before each use.
        now = check_once(file)
        with self._mapping:
            known = self._mapped.get(i)
            if known is None or known[0] != now:
                known = (now, file.map())
                self._mapped[i] = known
                if len(self._mapped) > _MOST_MAPPED:
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
        file = shard.file_beside(self.path, "labels")
        if file is None:
            return np.full(shard.items, UNLABELLED, dtype=np.int32)
        codes = _checked(file, again=again)
        if codes.min() < UNLABELLED or codes.max() >= len(classes):
            raise file.wrong(f"labels must be from {UNLABELLED} to {len(classes) - 1}")
        return codes

    def _shard_offsets(self, shard: Shard, *, again: bool = False) -> npt.NDArray[np.int64]:
        file = shard.file_beside(self.path, "offsets")
        if file is None:
            raise ShardError(f"{MANIFEST} lists no offsets for {shard.name}")
        offsets = _checked(file, again=again)
        if offsets[0] != 0 or offsets[-1] != shard.rows or (np.diff(offsets) < 0).any():
            raise file.wrong(f"offsets must begin with 0, never fall, and end with {shard.rows}")
        return offsets


@dataclass(frozen=True)
class ShardPart:
    """One file of a folder of shards: small enough to send, and all that is needed to read it.

    ``path`` is the folder and ``shard`` what its manifest says of the file, whose rows are those
    from ``first`` up to, not including, ``last`` of all.
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
        """The rows, mapped; the file is checked once in a process."""
        shape = (self.last - self.first, self.n_features)
        path = Path(self.path) / self.shard.name
        file = ArrayFile(path, DTYPES[self.dtype], shape, self.sha256)
        check_once(file)
        return file.map()

    def read_codes(self) -> npt.NDArray[np.int32]:
        """Places of the labels in the classes of the folder; -1 where there is none."""
        file = self.shard.file_beside(Path(self.path), "labels")
        if file is None:
            return np.full(self.shard.items, UNLABELLED, dtype=np.int32)
        return _checked(file)


def _checked(file: ArrayFile, *, again: bool = False) -> npt.NDArray[Any]:
    """A small array, in memory."""
    if again:
        check_content(file)
    else:
        file.check_size()
        check_once(file)
    return np.array(file.map())


def _opened_again(path: str, digest: str, n_shards: int, n_classes: int) -> Shards:
    """Open what was pickled; what was appended meanwhile is left out."""
    opened = open_shards(path)
    shards = Shards(opened.path, opened.manifest.first(n_shards, n_classes))
    if shards.digest != digest:
        raise ShardError(
            f"the shards in {path!r} are not those that were meant: the folder was written anew, "
            "or this machine has another folder of the same name"
        )
    return shards
