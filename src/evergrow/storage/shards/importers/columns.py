"""Rows of tables of columns: Parquet and Arrow files, and tables in memory, a few at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidTypeError, ShardError
from evergrow.foundation.extras import install_command
from evergrow.storage.shards.importers.source import LABELS, Block, Keys, report_damage

_BLOCK_BYTES = 8 << 20
# Read at a time of each column.
_READ_BYTES = 1 << 20
# Repeated values compress well on disk but not in memory.
_MOST_TOGETHER = 8192
# More than any network has.
_MAX_FEATURES = 1 << 20
# Where the library datasets describes its columns, and the place of a row without a class.
_DESCRIPTION, _NO_CLASS = b"huggingface", -1
_MAX_DESCRIPTION_BYTES = 16 << 20


class _Batches(Protocol):
    """Record batches of one schema."""

    schema: Any
    n_rows: int

    def read(self, columns: list[str], n_skipped: int) -> Iterator[Any]:
        """Yield batches of these columns after the first rows."""


@contextmanager
def open_parquet(path: Path, keys: Keys) -> Iterator[ColumnRows]:
    """Open a Parquet file; its columns are selected by name, or inferred if unambiguous."""
    pyarrow = import_pyarrow("pyarrow", "pyarrow.parquet")
    try:
        # By default all groups of rows are fetched ahead, which is the whole file.
        file = pyarrow.parquet.ParquetFile(
            path, page_checksum_verification=True, pre_buffer=False, buffer_size=_READ_BYTES
        )
    except (pyarrow.ArrowException, OSError) as error:
        raise ShardError(f"{str(path)!r} is not a Parquet file: {error}") from error
    with file:
        yield ColumnRows(_ParquetBatches(file, repr(str(path))), repr(str(path)), keys)


@contextmanager
def open_arrow(path: Path, keys: Keys) -> Iterator[ColumnRows]:
    """Open a file of Arrow's own format, with or without an index of its batches."""
    pyarrow = import_pyarrow("pyarrow", "pyarrow.ipc")
    with report_damage(repr(str(path)), pyarrow.ArrowException):
        batches = _ArrowBatches(path)
    yield ColumnRows(batches, repr(str(path)), keys)


def open_table(table: Any, keys: Keys) -> ColumnRows:
    """Rows of a table in memory: of datasets, pyarrow, pandas, polars and others."""
    name = f"the {type(table).__name__}"
    pyarrow = import_pyarrow("pyarrow")
    if hasattr(table, "with_format") and hasattr(table, "features"):
        return ColumnRows(_DatasetBatches(table), name, keys)
    if not hasattr(table, "__arrow_c_stream__"):
        raise InvalidTypeError(
            "source must be a path, a Dataset of datasets, or a table of pyarrow, pandas or "
            f"polars, got {type(table).__name__}"
        )
    with report_damage(name, pyarrow.ArrowException, TypeError):
        return ColumnRows(_TableBatches(pyarrow.table(table)), name, keys)


class ColumnRows:
    """The rows of a table, from columns of numbers or one column of lists."""

    def __init__(self, batches: _Batches, name: str, keys: Keys) -> None:
        self._batches = batches
        self._name = name
        schema = batches.schema
        for wanted in (keys.features, keys.labels):
            if wanted is not None and wanted not in schema.names:
                raise ShardError(f"{name} has no column {wanted!r}, it has {schema.names[:20]}")
        if len(set(schema.names)) != len(schema.names):
            raise ShardError(f"{name} has two columns of one name")
        self._label = keys.labels or next((one for one in LABELS if one in schema.names), None)
        self._columns, self._is_list = self._choose(schema, keys.features)
        self._classes = None if self._label is None else _class_names(schema, self._label)
        self._width: int | None = None

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return self._batches.n_rows

    def _choose(self, schema: Any, features: str | None) -> tuple[list[str], bool]:
        """Names of the columns of features, and whether it is one of lists."""
        if features is not None:
            if not _is_list(schema.field(features).type):
                raise ShardError(
                    f"the column {features!r} of {self._name} must hold lists of numbers, "
                    f"it holds {schema.field(features).type}"
                )
            return [features], True
        others = [field for field in schema if field.name != self._label]
        lists = [field.name for field in others if _is_list(field.type)]
        if len(lists) == 1:
            return lists, True
        if lists:
            raise ShardError(f"{self._name} has several columns of lists, {lists}: name one")
        numbers = [field.name for field in others if _is_number(field.type)]
        if not numbers:
            raise ShardError(
                f"{self._name} has no column of lists of numbers and no columns of numbers "
                "to take as features"
            )
        return numbers, False

    def blocks(self, n_skipped: int) -> Iterator[Block]:
        """Rows and labels but for the first few, some at a time."""
        import pyarrow

        blocks = self._read(n_skipped)
        while True:
            with report_damage(self._name, pyarrow.ArrowException):
                block = next(blocks, None)
            if block is None:
                return
            yield block

    def _read(self, first: int) -> Iterator[Block]:
        columns = [*self._columns, *([] if self._label is None else [self._label])]
        for batch in self._batches.read(columns, first):
            for start in range(0, batch.num_rows, _MOST_TOGETHER):
                some = batch.slice(start, _MOST_TOGETHER)
                rows = self._matrix(some, first)
                yield rows, self._labels(some, first)
                first += len(rows)

    def _matrix(self, batch: Any, first: int) -> npt.NDArray[Any]:
        if self._is_list:
            rows = self._from_lists(batch.column(self._columns[0]), first)
        else:
            parts = [self._numbers(batch.column(name), name, first) for name in self._columns]
            rows = np.column_stack(parts)
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0].tolist()
            raise self._error(
                first + row, f"holds {rows[row, column]} at place {column} of its features"
            )
        return rows

    def _from_lists(self, column: Any, first: int) -> npt.NDArray[Any]:
        import pyarrow.compute

        name = self._columns[0]
        self._check_no_nulls(column, name, first)
        lengths = pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False)
        # The first row of all decides.
        self._width = int(lengths[0]) if self._width is None else self._width
        odd = np.flatnonzero(lengths != self._width)
        if len(odd):
            raise self._error(
                first + int(odd[0]),
                f"has {lengths[odd[0]]} numbers in column {name!r}, the rows before it have "
                f"{self._width}",
            )
        values = column.flatten()
        if values.null_count:
            place = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise self._error(first + place // self._width, f"lacks a number in column {name!r}")
        numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return numbers.reshape(len(lengths), -1)

    def _numbers(self, column: Any, name: str, first: int) -> npt.NDArray[Any]:
        self._check_no_nulls(column, name, first)
        values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return values

    def _check_no_nulls(self, column: Any, name: str, first: int) -> None:
        if column.null_count:
            place = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise self._error(first + place, f"has no value in column {name!r}")

    def _labels(self, batch: Any, first: int) -> list[Any] | None:
        if self._label is None:
            return None
        found: list[Any] = batch.column(self._label).to_pylist()
        if self._classes is None:
            return found
        named: list[Any] = []
        for place, code in enumerate(found):
            if code is not None and not _NO_CLASS <= code < len(self._classes):
                raise self._error(
                    first + place, f"has the class {code}, there are {len(self._classes)}"
                )
            named.append(None if code in (None, _NO_CLASS) else self._classes[code])
        return named

    def _error(self, row: int, problem: str) -> ShardError:
        return ShardError(f"row {row} of {self._name} {problem}")


class _ParquetBatches:
    """The batches of a Parquet file, read by groups of rows."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name
        self.schema = file.schema_arrow
        self.n_rows = int(file.metadata.num_rows)

    def read(self, columns: list[str], n_skipped: int) -> Iterator[Any]:
        """Yield batches of these columns after the first rows."""
        groups, n_skipped = self._groups_after(n_skipped)
        per_batch = self._rows_per_batch(columns)
        for batch in self._file.iter_batches(per_batch, row_groups=groups, columns=columns):
            n_left_out = min(n_skipped, batch.num_rows)
            n_skipped -= n_left_out
            yield batch.slice(n_left_out)

    def _rows_per_batch(self, columns: list[str]) -> int:
        """Return the rows per batch, by the most values that a row has on average in a group.

        Sizes in bytes do not tell: repeated values take almost none in the file.
        """
        metadata, per_row = self._file.metadata, 1
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            parts = map(group.column, range(group.num_columns))
            # The path of the values of a list goes on after the name of its column.
            counts = (one.num_values for one in parts if _root(one.path_in_schema) in columns)
            per_row = max(per_row, -(-sum(counts) // max(1, group.num_rows)))
        if per_row > _MAX_FEATURES:
            raise ShardError(
                f"{self._name} has rows of {per_row} values, at most {_MAX_FEATURES} are supported"
            )
        return max(1, min(_MOST_TOGETHER, _BLOCK_BYTES // (8 * per_row)))

    def _groups_after(self, n_skipped: int) -> tuple[list[int], int]:
        """Groups of rows that are not skipped whole, and what to skip in them."""
        metadata = self._file.metadata
        first = 0
        while first < metadata.num_row_groups:
            n_rows = metadata.row_group(first).num_rows
            if n_rows > n_skipped:
                break
            n_skipped -= n_rows
            first += 1
        return list(range(first, metadata.num_row_groups)), n_skipped


class _ArrowBatches:
    """The batches of an Arrow file, read one after the other."""

    def __init__(self, path: Path) -> None:
        import pyarrow

        self._path = path
        # Mapped, so that counting reads no values.
        with pyarrow.memory_map(str(path)) as file:
            self.schema, batches = _open_stream(file)
            self.n_rows = sum(batch.num_rows for batch in batches)

    def read(self, columns: list[str], n_skipped: int) -> Iterator[Any]:
        """Yield batches of these columns after the first rows."""
        import pyarrow

        # Read, not mapped: memory is freed with each batch.
        with pyarrow.OSFile(str(self._path)) as file:
            for batch in _skip(_open_stream(file)[1], n_skipped):
                chosen = batch.select(columns)
                # Offsets of a damaged file may lie outside it.
                chosen.validate(full=True)
                yield chosen


def _open_stream(file: Any) -> tuple[Any, Iterator[Any]]:
    """Schema and batches of a file of either of Arrow's formats."""
    from pyarrow import ArrowInvalid, ipc

    try:
        indexed = ipc.open_file(file)
    except ArrowInvalid:
        file.seek(0)
        stream = ipc.open_stream(file)
        return stream.schema, iter(stream)
    return indexed.schema, map(indexed.get_batch, range(indexed.num_record_batches))


class _TableBatches:
    """The batches of a table of pyarrow."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.schema, self.n_rows = table.schema, int(table.num_rows)

    def read(self, columns: list[str], n_skipped: int) -> Iterator[Any]:
        """Yield batches of these columns after the first rows."""
        rest = self._table.select(columns).slice(n_skipped)
        yield from rest.to_batches(max_chunksize=_MOST_TOGETHER)


class _DatasetBatches:
    """The batches of a dataset of the library datasets, its selection and order included."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.schema, self.n_rows = dataset.features.arrow_schema, len(dataset)

    def read(self, columns: list[str], n_skipped: int) -> Iterator[Any]:
        """Yield batches of these columns after the first rows."""
        chosen = self._dataset.with_format("arrow", columns=columns)
        for first in range(n_skipped, self.n_rows, _MOST_TOGETHER):
            table = chosen[first : first + _MOST_TOGETHER]
            yield from table.select(columns).to_batches()


def _root(path: str) -> str:
    """The column of a path such as ``vector.list.element``.

    Names with a point in them belong to columns of numbers, whose values are few.
    """
    return path.partition(".")[0]


def _skip(batches: Iterator[Any], n_rows: int) -> Iterator[Any]:
    for batch in batches:
        n_left_out = min(n_rows, batch.num_rows)
        n_rows -= n_left_out
        if n_left_out < batch.num_rows:
            yield batch.slice(n_left_out)


def _class_names(schema: Any, column: str) -> Sequence[str] | None:
    """The names of classes that the library datasets has stored for a column of their numbers."""
    from pyarrow import types

    described = (schema.metadata or {}).get(_DESCRIPTION, b"")
    if not types.is_integer(schema.field(column).type):
        # The description of the library is that of another column; labels are what they are.
        return None
    if not described or len(described) > _MAX_DESCRIPTION_BYTES:
        return None
    try:
        features = json.loads(described)["info"]["features"]
        names = features[column]["names"] if features[column]["_type"] == "ClassLabel" else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return names


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists) and _is_number(kind.value_type)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def import_pyarrow(*names: str) -> Any:
    """Import modules of pyarrow and return the package; the error says how to install it."""
    import importlib

    try:
        modules = [importlib.import_module(name) for name in names]
    except ImportError as error:
        command = install_command("integrations", "pyarrow")
        raise ImportError(f"Parquet and Arrow tables are read by pyarrow: {command}") from error
    return modules[0]
