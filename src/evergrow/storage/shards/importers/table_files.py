"""Imports tables of features and labels: ``.npz``, ``.npy``, Parquet, Arrow, and tables in memory.

They are read sequentially. A table is identified by the hash of its content and of the selected
arrays; rows of it that are already in the shards are not imported again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, ShardError
from evergrow.foundation.files import open_regular
from evergrow.foundation.progress import progress_bar
from evergrow.storage.shards.batches import RowBatch, label_values
from evergrow.storage.shards.importers.npy_stream import NpyStream
from evergrow.storage.shards.importers.source import (
    LABELS,
    Block,
    Keys,
    Sharded,
    Table,
    periodic_commits,
    report_damage,
)
from evergrow.storage.shards.writer import ShardWriter, open_writer


@dataclass(frozen=True)
class _Arrays:
    """A matrix and the labels of its rows."""

    matrix: NpyStream
    labels: list[Any] | None

    @property
    def n_rows(self) -> int:
        return self.matrix.shape[0] if self.matrix.shape else 0

    def blocks(self, n_skipped: int) -> Iterator[Block]:
        first = n_skipped
        if self.labels is not None and len(self.labels) != self.n_rows:
            raise ShardError(
                f"{self.matrix.name} has {self.n_rows} rows but there are {len(self.labels)} labels"
            )
        for block in self.matrix.blocks(n_skipped):
            last = first + len(block)
            yield block, None if self.labels is None else self.labels[first:last]
            first = last


@contextmanager
def _npz(path: Path, keys: Keys) -> Iterator[Table]:
    with open(path, "rb") as content:
        try:
            archive = zipfile.ZipFile(content)
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            raise ShardError(f"{str(path)!r} is not an .npz file: {error}") from error
        with archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            label_name = _chosen(keys.labels, LABELS, members, path)
            labels = None
            if label_name is not None:
                with _member(archive, members[label_name], path) as stream:
                    labels = _labels(stream)
            name = _chosen(keys.features or "X", (), members, path)
            with _member(archive, members[str(name)], path) as stream:
                yield _Arrays(stream, labels)


@contextmanager
def _member(archive: zipfile.ZipFile, member: str, path: Path) -> Iterator[NpyStream]:
    name = f"{member.removesuffix('.npy')!r} in {str(path)!r}"
    with report_damage(name):
        file = archive.open(member)
    with file:
        yield NpyStream(file, name)


def _chosen(
    wanted: str | None, usual: tuple[str, ...], found: dict[str, str], path: Path
) -> str | None:
    if wanted is None:
        return next((name for name in usual if name in found), None)
    if wanted not in found:
        raise ShardError(f"{str(path)!r} has no array {wanted!r}, it has {sorted(found)[:20]}")
    return wanted


@contextmanager
def _npy(path: Path, keys: Keys) -> Iterator[Table]:
    labels = None
    if keys.labels_file is not None:
        with open(keys.labels_file, "rb") as file:
            labels = _labels(NpyStream(file, repr(keys.labels_file)))
    with open(path, "rb") as file:
        yield _Arrays(NpyStream(file, repr(str(path))), labels)


def _labels(stream: NpyStream) -> list[Any]:
    if len(stream.shape) != 1:
        raise ShardError(f"{stream.name} must be a flat list of labels, got {stream.shape}")
    return label_values(stream.whole())


def _parquet(path: Path, keys: Keys) -> AbstractContextManager[Table]:
    from evergrow.storage.shards.importers.columns import open_parquet

    return open_parquet(path, keys)


def _arrow(path: Path, keys: Keys) -> AbstractContextManager[Table]:
    from evergrow.storage.shards.importers.columns import open_arrow

    return open_arrow(path, keys)


TABLES: dict[str, Callable[[Path, Keys], AbstractContextManager[Table]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    ".arrow": _arrow,
}

# How the library datasets lists the files of a folder, and its folders of several splits.
_DATASET_STATE, _DATASET_SPLITS = "state.json", "dataset_dict.json"
_MAX_STATE_BYTES = 1 << 20
_DATASET_FILE = re.compile(r"[\w-][\w.-]*\.arrow")


def find_table_files(folder: str | os.PathLike[str]) -> list[Path] | None:
    """The files of a folder of tables, in order; None if it is not such a folder.

    It contains Parquet files, or is one that ``save_to_disk`` of the library datasets has written.
    """
    root = Path(folder)
    if (root / _DATASET_SPLITS).is_file():
        splits = sorted(one.name for one in root.iterdir() if (one / _DATASET_STATE).is_file())
        example = str(root / (splits or ["train"])[-1])
        raise ShardError(f"{str(root)!r} has several splits: name one, such as {example!r}")
    if (root / _DATASET_STATE).is_file():
        return _dataset_files(root)
    found = sorted(one for one in root.iterdir() if one.suffix.lower() == ".parquet")
    return [one for one in found if one.is_file()] or None


def _dataset_files(root: Path) -> list[Path]:
    """The files that a folder of the library datasets lists."""
    path = root / _DATASET_STATE
    with open_regular(path) as file:
        content = file.read(_MAX_STATE_BYTES + 1)
    try:
        state = json.loads(content) if len(content) <= _MAX_STATE_BYTES else None
        names = [one["filename"] for one in state["_data_files"]]  # type: ignore[index]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ShardError(f"{str(path)!r} does not list the files of a dataset") from error
    if isinstance(state, dict) and state.get("_indices_data_files"):
        raise ShardError(
            f"{str(root)!r} is a selection of rows that was not written out: save it again with a "
            "recent version of datasets"
        )
    for name in names:
        # Never a path: the list must not decide which other files are read.
        if not isinstance(name, str) or not _DATASET_FILE.fullmatch(name):
            raise ShardError(f"{str(path)!r} lists {name!r:.80}, which is not a file of the folder")
    if not names:
        raise ShardError(f"{str(root)!r} has no rows")
    return [root / name for name in names]


def shard_table(
    path: str | os.PathLike[str],
    source: Any,
    *,
    features_key: str | None = None,
    labels_key: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    dtype: str | None = None,
    rows_per_shard: int | None = None,
    on_wait: Callable[[], None] | None = None,
    verbose: int = 0,
) -> Sharded:
    """Append the rows of a table to a folder of shards, without loading a file into memory.

    Parameters
    ----------
    path : path
        The folder of shards. It is created if it does not exist.
    source : path or table
        One of these:

        - a ``.npz``, ``.npy``, ``.parquet`` or ``.arrow`` file;
        - a folder of Parquet files, or one written by ``save_to_disk`` of the library datasets;
        - a table in memory: a Dataset of datasets, or a table of pyarrow, pandas or polars.
    features_key : str, default=None
        Name of the array or column of features. None uses "X" in a ``.npz`` file. In other tables,
        it uses the only column of lists, or all numeric columns except the labels.
    labels_key : str, default=None
        Name of the array or column of labels. None uses "y", "label" or "labels" if present. Labels
        of type ``ClassLabel`` of the library datasets become the names of the classes.
    labels : path, default=None
        A ``.npy`` file with the labels for a ``.npy`` file of features.
    dtype : {"float16", "float32", "float64"}, default=None
        Type of the numbers in the shards; numbers are rounded to it. None uses the type of the
        folder, or of the file for a new folder. Numbers that would have to be rounded are then an
        error.
    rows_per_shard : int, default=None
        Number of rows per file. None makes files of about 64 MiB.
    on_wait : callable, default=None
        Called before waiting for another process that appends to the folder.
    verbose : int, default=0
        Show a progress bar if positive.

    Returns
    -------
    sharded : Sharded
        How many rows were added, and how many were already there. No rows of a damaged file are
        added. After an interruption, the next call resumes.

    Examples
    --------
    >>> import evergrow, tempfile
    >>> import pandas
    >>> from evergrow.storage import shard_table
    >>> table = pandas.DataFrame({"embedding": [[0.5, 1.0], [2.0, 0.0]], "label": ["cat", "dog"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shard_table(folder, table).n_added, shard_table(folder, table).n_present
    ...     evergrow.open_shards(folder).labels.tolist()
    (2, 2)
    ['cat', 'dog']
    """
    options = {
        "dtype": dtype,
        "rows_per_shard": rows_per_shard,
        "on_wait": on_wait,
        "verbose": verbose,
    }
    if not isinstance(source, (str, os.PathLike)):
        if labels is not None:
            raise InvalidInputError("a file of labels can only be used with an .npy file")
        return _shard_object(path, source, Keys(features_key, labels_key), options)
    files = find_table_files(source) if os.path.isdir(source) else None
    done = [
        _shard_file(path, *_checked_source(one, features_key, labels_key, labels), options)
        for one in files or [Path(source)]
    ]
    return Sharded(sum(one.n_added for one in done), sum(one.n_present for one in done))


def _shard_file(
    path: str | os.PathLike[str], file: Path, keys: Keys, options: dict[str, Any]
) -> Sharded:
    with TABLES[file.suffix.lower()](file, keys) as table:
        return _shard(path, table, _name_of(file, keys), repr(str(file)), **options)


def _shard_object(
    path: str | os.PathLike[str], source: Any, keys: Keys, options: dict[str, Any]
) -> Sharded:
    from evergrow.storage.shards.importers.columns import open_table

    table = open_table(source, keys)
    # Known by its content, as files are.
    hashed = hashlib.sha256(f"{keys.features!r} {keys.labels!r}\n".encode())
    for rows, labels in table.blocks(0):
        hashed.update(f"{rows.dtype} {rows.shape} {labels!r}\n".encode())
        hashed.update(np.ascontiguousarray(rows).data)
    return _shard(path, table, hashed.hexdigest(), f"the {type(source).__name__}", **options)


def _shard(
    path: str | os.PathLike[str],
    table: Table,
    name: str,
    what: str,
    *,
    dtype: str | None,
    rows_per_shard: int | None,
    on_wait: Callable[[], None] | None,
    verbose: int,
) -> Sharded:
    """Append those rows of a table that are not there yet; ``name`` identifies its content."""
    with open_writer(path, dtype=dtype, rows_per_shard=rows_per_shard, on_wait=on_wait) as writer:
        n_known = min(writer.rows_of(name), table.n_rows)
        if n_known < table.n_rows:
            try:
                _append(writer, table, name, what, n_known, verbose)
            except (ValueError, TypeError) as error:
                # All rows of a damaged file are removed: a repaired file is another source. After
                # an interruption or a full disk the file is intact and the import can resume.
                writer.roll_back()
                if n_known:
                    raise ShardError(
                        f"{error}; {n_known} rows of this file are in the shards from an "
                        "interrupted run, and may be wrong: write the folder again"
                    ) from error
                raise
        elif not table.n_rows:
            raise ShardError(f"{what} has no rows")
        return Sharded(table.n_rows - n_known, n_known)


def read_table(
    source: str | os.PathLike[str], *, labels: str | os.PathLike[str] | None = None
) -> tuple[npt.NDArray[Any], list[Any] | None]:
    """Read the rows of a file into memory, and their labels if it has any.

    The file is one that :func:`shard_table` takes, with arrays or columns of the default names.
    """
    file, keys = _checked_source(source, None, None, labels)
    with TABLES[file.suffix.lower()](file, keys) as table:
        blocks = [*table.blocks(0)]
    if not blocks:
        raise ShardError(f"{str(file)!r} has no rows")
    named = [label for _, some in blocks for label in some or ()]
    has_labels = blocks[0][1] is not None
    return np.concatenate([rows for rows, _ in blocks]), named if has_labels else None


def _append(
    writer: ShardWriter, table: Table, name: str, source: str, n_known: int, verbose: int
) -> None:
    first = n_known
    bar = progress_bar("reading rows", table.n_rows, verbose)
    with bar as progress, periodic_commits(writer) as commit_if_due:
        for rows, labels in table.blocks(n_known):
            last = first + len(rows)
            what = f"rows {first} to {last - 1} of {source}"
            checked = None if labels is None else label_values(labels)
            writer.add(RowBatch(rows, checked, None), what, name)
            commit_if_due()
            if progress is not None:
                progress(last)
            first = last
    writer.commit()


def _checked_source(
    source: str | os.PathLike[str],
    features_key: str | None,
    labels_key: str | None,
    labels: str | os.PathLike[str] | None,
) -> tuple[Path, Keys]:
    file = Path(source)
    kind = file.suffix.lower()
    if kind not in TABLES:
        raise InvalidInputError(
            f"{str(file)!r} has an unknown type: name a folder of images, or a file that ends in "
            f"{', '.join(sorted(TABLES))}"
        )
    if not file.is_file():
        raise FileNotFoundError(f"no such file: {str(file)!r}")
    if labels is not None and kind != ".npy":
        raise InvalidInputError(
            f"a file of labels can only be used with an .npy file, got {str(file)!r}"
        )
    if kind == ".npy" and (features_key is not None or labels_key is not None):
        raise InvalidInputError(f"{str(file)!r} holds one array, which has no name")
    labels_file = None if labels is None else os.fspath(labels)
    if labels_file is not None and not os.path.isfile(labels_file):
        raise FileNotFoundError(f"no such file: {labels_file!r}")
    return file, Keys(features_key, labels_key, labels_file)


def _name_of(file: Path, keys: Keys) -> str:
    """Return a hash of everything that the rows depend on."""
    hashed = hashlib.sha256(f"{keys.features!r} {keys.labels!r}\n".encode())
    for path in (file, keys.labels_file):
        if path is not None:
            with open(path, "rb") as content:
                hashed.update(hashlib.file_digest(content, "sha256").digest())
    return hashed.hexdigest()
