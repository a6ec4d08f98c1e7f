"""Writes shards: first new files, then a manifest that lists them.

The manifest always lists complete files. A process that is killed leaves files that no manifest
lists; the next writer removes them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError, ShardError
from evergrow.foundation.files import sync_folder
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Choice, Integer, Nothing, check_parameters
from evergrow.storage.shards.batches import RowBatch, smallest_dtype
from evergrow.storage.shards.labels import UNLABELLED
from evergrow.storage.shards.manifest import DTYPES, MANIFEST, Manifest, Shard, Source
from evergrow.storage.shards.reader import Shards, open_shards
from evergrow.storage.shards.staging import (
    MAX_FILES,
    SHARD_FILE_NAME,
    StagedFiles,
    append_lock,
    clean_up,
    journal,
    stage_files,
)

# Default size of a shard: large enough to be read at the speed of the disk.
SHARD_BYTES = 64 << 20

# The content of plain and of ragged shards.
_KINDS = ("single rows", "images of several rows")


def write_shards(
    path: str | os.PathLike[str],
    batches: Iterable[Any],
    *,
    dtype: str | None = None,
    rows_per_shard: int | None = None,
    on_wait: Callable[[], None] | None = None,
) -> Shards:
    """Append rows of features to a folder of shards, a batch at a time.

    Parameters
    ----------
    path : path
        The folder. It is created if it does not exist; otherwise rows are appended.
    batches : iterable
        Matrices of shape (n_rows, n_features), or pairs of such a matrix and its labels. Labels are
        integers or strings; None or NaN marks a row without a label. A
        :class:`~evergrow.RaggedArray`, or the images of other shards, have one label per image.
        Batches are read one by one, so an iterator may yield more than fits into memory.
    dtype : {"float16", "float32", "float64"}, default=None
        Type of the numbers in the files; numbers are rounded to it. None uses the type of the
        folder, or in a new folder the smallest type that holds the first batch exactly. Batches
        that would have to be rounded are then an error.
    rows_per_shard : int, default=None
        Number of rows per file. None makes files of about 64 MiB. Smaller files give more tasks on
        a cluster. The rows of one image are always in the same file.
    on_wait : callable, default=None
        Called before waiting for another process or thread that appends to the folder. An exception
        that it raises ends the wait.

    Returns
    -------
    shards : Shards
        The folder with the new rows. If an error is raised, the folder is unchanged.

    See Also
    --------
    open_shards : Open an existing folder.
    evergrow.storage.shard_table : Append the rows of a file or table.
    evergrow.vision.shard_images : Append the features of images.

    Examples
    --------
    >>> import evergrow, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = evergrow.write_shards(folder, [(np.zeros((3, 2)), ["cat", "dog", "cat"])])
    ...     shards = evergrow.write_shards(folder, [(np.ones((1, 2)), ["ant"])])
    ...     shards.shape, shards.classes.tolist(), np.asarray(shards.labels).tolist()
    ((4, 2), ['cat', 'dog', 'ant'], ['cat', 'dog', 'cat', 'ant'])
    """
    options: dict[str, Any] = {"dtype": dtype, "rows_per_shard": rows_per_shard}
    with open_writer(path, **options, on_wait=on_wait) as writer:
        for number, batch in enumerate(batches):
            what = f"batch {number}"
            writer.add(RowBatch.of(batch, what), what)
        writer.commit()
    return open_shards(path)


@contextmanager
def open_writer(
    path: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    rows_per_shard: int | None = None,
    made_by: str | None = None,
    on_wait: Callable[[], None] | None = None,
) -> Iterator[ShardWriter]:
    """Open a writer that appends to a folder; uncommitted files are removed at the end.

    Only one writer at a time appends to a folder; ``on_wait`` is called before waiting.
    """
    check_parameters(
        {"dtype": dtype, "rows_per_shard": rows_per_shard},
        {
            "dtype": [Choice(tuple(DTYPES)), Nothing()],
            "rows_per_shard": [Integer(1), Nothing()],
        },
    )
    folder = Path(os.path.abspath(path))
    is_new = not folder.exists()
    if not is_new and not folder.is_dir():
        raise NotADirectoryError(f"{os.fspath(path)!r} is not a folder: shards are kept in one")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with append_lock(folder, on_wait):
            known = Manifest.read_if_present(folder)
            clean_up(folder)
            writer = ShardWriter(folder, known, dtype, rows_per_shard, made_by)
            try:
                yield writer
            finally:
                clean_up(folder)
    finally:
        if is_new and not any(folder.iterdir()):
            folder.rmdir()


class ShardWriter:
    """Packs batches into shards of equal size, and lists them in the manifest on commit.

    Created by :func:`open_writer`, which holds the lock.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest | None,
        dtype: str | None,
        rows_per_shard: int | None,
        made_by: str | None,
    ) -> None:
        self.folder = folder
        # The current manifest of the folder; None before the first commit.
        self.manifest = self._before = manifest
        self._rounded = dtype is not None
        self._dtype = None if dtype is None else DTYPES[dtype]
        self._rows_per_shard = rows_per_shard
        self._made_by = made_by
        self.classes = None if manifest is None else manifest.classes
        self._packer: Packer | None = None
        self._finished: list[tuple[StagedFiles, dict[str, int]]] = []
        if manifest is not None:
            self._check_appendable(manifest)

    def _check_appendable(self, manifest: Manifest) -> None:
        where = f"the shards in {str(self.folder)!r}"
        if self._dtype is not None and self._dtype != manifest.dtype:
            raise ShardError(
                f"{where} are of type {manifest.dtype.name}: {self._dtype.name} cannot be appended"
            )
        self._dtype = manifest.dtype
        self._made_by = self._made_by or manifest.made_by
        # Rows without ``made_by`` come from a caller who is responsible for their meaning.
        if None not in (self._made_by, manifest.made_by) and self._made_by != manifest.made_by:
            raise ShardError(
                f"{where} were computed by another network: rows of different features cannot be "
                "stored in one folder"
            )

    def rows_of(self, source: str) -> int:
        """Return the number of rows of a source in the folder."""
        if self.manifest is None:
            return 0
        return sum(known.rows for known in self.manifest.sources if known.sha256 == source)

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Type of the numbers, if given or known from the folder."""
        return self._dtype

    def rows_per_shard(self, n_features: int, dtype: np.dtype[Any], most: int | None = None) -> int:
        """Return the number of rows per file, at most ``most`` if it was not given."""
        usual = max(1, SHARD_BYTES // (n_features * dtype.itemsize))
        return self._rows_per_shard or (usual if most is None else min(usual, most))

    def add(self, batch: RowBatch, what: str, source: str | None = None) -> None:
        """Add rows; full files are written, but not yet listed in the manifest.

        ``what`` names the rows in errors. ``source`` identifies their origin; the manifest counts
        its rows.
        """
        if not batch.rows.shape[1]:
            raise InvalidInputError(f"{what} has no features")
        if self._dtype is None:
            self._dtype = smallest_dtype(batch.rows.dtype)
        self._check_goes_with(batch, what)
        batch = batch.converted(self._dtype, what, rounded=self._rounded)
        codes = None if batch.labels is None else self.codes_of(batch.labels, what)
        if self._packer is None:
            n_features = batch.rows.shape[1]
            per_shard = self.rows_per_shard(n_features, self._dtype)
            self._packer = Packer(n_features, per_shard, ragged=batch.offsets is not None)
        self._packer.add(replace(batch, labels=None, codes=codes, source=source))
        for pieces in self._packer.full():
            self._write(pieces)

    def _check_goes_with(self, batch: RowBatch, what: str) -> None:
        known, width = self.manifest, batch.rows.shape[1]
        expected, ragged = width, batch.offsets is not None
        if self._packer is not None:
            expected, ragged = self._packer.n_features, self._packer.ragged
        elif known is not None:
            expected, ragged = known.n_features, known.is_ragged
        if width != expected:
            raise InvalidInputError(f"{what} has {width} features, the shards have {expected}")
        if ragged != (batch.offsets is not None):
            raise InvalidInputError(
                f"{what} has {_KINDS[not ragged]}, the shards have {_KINDS[ragged]}"
            )

    def codes_of(self, labels: list[Any], what: str) -> npt.NDArray[np.int32]:
        """Return the indices of labels in the list of classes, and append new classes."""
        present = [label for label in labels if label is not None]
        codes = np.full(len(labels), UNLABELLED, dtype=np.int32)
        if not present:
            return codes
        try:
            found = np.array(present, dtype=np.str_ if type(present[0]) is str else np.int64)
        except OverflowError as error:
            raise InvalidInputError(f"{what} has a label too large for 64 bits") from error
        if found.tolist() != present:
            raise InvalidInputError(f"{what} has a label that ends in a null character")
        known = self.classes
        try:
            self.classes, placed = ClassList.of(found) if known is None else known.extend(found)
        except TypeError as error:
            raise InvalidTypeError(f"{what}: {error}") from error
        codes[[label is not None for label in labels]] = placed
        return codes

    def _write(self, pieces: list[RowBatch]) -> None:
        if self._dtype is None:
            raise InvalidInputError("there are no rows yet")
        counts: dict[str, int] = {}
        for piece in pieces:
            if piece.source is not None:
                counts[piece.source] = counts.get(piece.source, 0) + piece.n_items
        self._finished.append((stage_files(self.folder, self._dtype, pieces), counts))

    def adopt(self, files: StagedFiles, *, n_features: int, dtype: str) -> None:
        """Add files that another process staged in this folder."""
        known, ragged = self.manifest, "offsets" in files.files
        if known is not None and (known.n_features, known.dtype.name) != (n_features, dtype):
            raise ShardError(
                f"rows of {n_features} {dtype} cannot be appended to {str(self.folder)!r}, "
                f"whose rows are of {known.n_features} {known.dtype.name}"
            )
        if known is not None and known.is_ragged != ragged:
            raise ShardError(
                f"{_KINDS[ragged]} cannot be appended to {str(self.folder)!r}, "
                f"which holds {_KINDS[known.is_ragged]}"
            )
        self._dtype = DTYPES[dtype]
        if self._packer is None:
            self._packer = Packer(n_features, 1, ragged=ragged)
        self._finished.append((files, {}))

    def commit(self, *, all_rows: bool = True) -> None:
        """List the written files in the manifest; with ``all_rows`` the last file may be partial.

        If a commit fails, its files are dropped.
        """
        if self._packer is not None and all_rows:
            for pieces in self._packer.rest():
                self._write(pieces)
        if not self._finished:
            if self.manifest is None and all_rows:
                raise InvalidInputError("there are no rows to write")
            return
        finished, self._finished = self._finished, []
        shards = self._named([files for files, _ in finished])
        manifest = self._manifest_with(shards, [counts for _, counts in finished])
        try:
            with journal(self.folder, [name for shard in shards for name in shard.names]):
                for shard, (files, _) in zip(shards, finished, strict=True):
                    files.move_into_place(self.folder, shard)
                sync_folder(self.folder)
                manifest.write(self.folder)
        except BaseException:
            # The interruption may have come after the manifest was replaced.
            self.manifest = Manifest.read_if_present(self.folder)
            raise
        self.manifest = manifest

    def roll_back(self) -> None:
        """Restore the folder to its state before this writer, including committed files."""
        self._finished, self._packer = [], None
        found = Manifest.read_if_present(self.folder)
        kept = set() if self._before is None else {s.number for s in self._before.shards}
        new = [] if found is None else [s for s in found.shards if s.number not in kept]
        if not new:
            return
        with journal(self.folder, [name for shard in new for name in shard.names]):
            if self._before is None:
                (self.folder / MANIFEST).unlink()
            else:
                self._before.write(self.folder)
            self.manifest = self._before
            for shard in new:
                for name in shard.names:
                    (self.folder / name).unlink(missing_ok=True)

    def _named(self, finished: list[StagedFiles]) -> list[Shard]:
        """Assign numbers to the finished files."""
        taken = [
            int(name[:6]) for name in os.listdir(self.folder) if SHARD_FILE_NAME.fullmatch(name)
        ]
        if self.manifest is not None:
            # A file that is missing keeps its number.
            taken += [shard.number for shard in self.manifest.shards]
        first = max(taken, default=-1) + 1
        if first + len(finished) > MAX_FILES:
            raise ShardError(f"{str(self.folder)!r} has the maximum number of files")
        return [files.as_shard(first + i) for i, files in enumerate(finished)]

    def _manifest_with(self, new: list[Shard], sources: list[dict[str, int]]) -> Manifest:
        if self._packer is None or self._dtype is None:
            raise InvalidInputError("there are no rows yet")
        known = self.manifest
        counts = {} if known is None else {s.sha256: s.rows for s in known.sources}
        for found in sources:
            for source, n_rows in found.items():
                counts[source] = counts.get(source, 0) + n_rows
        return Manifest(
            self._dtype,
            self._packer.n_features,
            self.classes,
            (*(() if known is None else known.shards), *new),
            tuple(Source(source, n_rows) for source, n_rows in counts.items()),
            self._made_by,
        )


class Packer:
    """Buffers rows until there are enough for a shard.

    The last shard may have fewer rows, and others if images have several rows (``ragged``), which
    stay together.
    """

    def __init__(self, n_features: int, rows_per_shard: int, *, ragged: bool) -> None:
        self.n_features = n_features
        self.ragged = ragged
        self._rows_per_shard = rows_per_shard
        self._waiting: deque[RowBatch] = deque()
        self._n_rows = 0

    def add(self, piece: RowBatch) -> None:
        """Add rows."""
        if piece.n_items:
            self._waiting.append(piece)
            self._n_rows += len(piece.rows)

    def full(self) -> Iterator[list[RowBatch]]:
        """Yield the pieces of each full shard."""
        while self._n_rows >= self._rows_per_shard:
            yield self._next()
        if self._waiting:
            # The last rows wait, and the caller may reuse the array.
            self._waiting[-1] = replace(self._waiting[-1], rows=np.array(self._waiting[-1].rows))

    def rest(self) -> Iterator[list[RowBatch]]:
        """Yield the pieces of the remaining rows."""
        while self._waiting:
            yield self._next()

    def _next(self) -> list[RowBatch]:
        n_free, pieces = self._rows_per_shard, list[RowBatch]()
        while self._waiting:
            piece = self._waiting.popleft()
            n_items = piece.items_within(n_free)
            # An image with more rows than a shard becomes a shard of its own.
            n_items = max(n_items, 0 if pieces else 1)
            first, left = piece.split(n_items)
            if first.n_items:
                pieces.append(first)
            n_free -= len(first.rows)
            if left.n_items:
                self._waiting.appendleft(left)
                break
        self._n_rows = sum(len(piece.rows) for piece in self._waiting)
        return pieces
