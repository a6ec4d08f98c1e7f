"""Rows of Parquet files, a few thousand at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ShardError
from evergrow.foundation.extras import install_command
from evergrow.storage.shards.importers.source import LABELS, Block, Keys, report_damage

_BLOCK_BYTES = 8 << 20
# Repeated values compress well on disk but not in memory.
_MOST_TOGETHER = 8192


@contextmanager
def open_parquet(path: Path, keys: Keys) -> Iterator[ParquetRows]:
    """Open a file; its columns are selected by name, or inferred if unambiguous."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            f"reading Parquet files needs pyarrow: {install_command('tables', 'pyarrow')}"
        ) from error
    try:
        file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError) as error:
        raise ShardError(f"{str(path)!r} is not a Parquet file: {error}") from error
    with file:
        yield ParquetRows(file, str(path), keys)


class ParquetRows:
    """The rows of a file, from columns of numbers or one column of lists."""

    def __init__(self, file: Any, name: str, keys: Keys) -> None:
        self._file = file
        self._name = name
        schema = file.schema_arrow
        for wanted in (keys.features, keys.labels):
            if wanted is not None and wanted not in schema.names:
                raise ShardError(f"{name!r} has no column {wanted!r}, it has {schema.names[:20]}")
        if len(set(schema.names)) != len(schema.names):
            raise ShardError(f"{name!r} has two columns of one name")
        self._label = keys.labels or next((one for one in LABELS if one in schema.names), None)
        self._columns, self._is_list = self._chosen(schema, keys.features)

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return int(self._file.metadata.num_rows)

    def _chosen(self, schema: Any, features: str | None) -> tuple[list[str], bool]:
        """Names of the columns of features, and whether it is one of lists."""
        from pyarrow import types

        def is_list(kind: Any) -> bool:
            lists = types.is_list(kind) or types.is_large_list(kind)
            return bool(lists or types.is_fixed_size_list(kind)) and _is_number(kind.value_type)

        if features is not None:
            if not is_list(schema.field(features).type):
                raise ShardError(
                    f"the column {features!r} of {self._name!r} must hold lists of numbers, "
                    f"it holds {schema.field(features).type}"
                )
            return [features], True
        others = [field for field in schema if field.name != self._label]
        lists = [field.name for field in others if is_list(field.type)]
        if len(lists) == 1:
            return lists, True
        if lists:
            raise ShardError(f"{self._name!r} has several columns of lists, {lists}: name one")
        numbers = [field.name for field in others if _is_number(field.type)]
        if not numbers:
            raise ShardError(
                f"{self._name!r} has no column of lists of numbers and no columns of numbers "
                "to take as features"
            )
        return numbers, False

    def blocks(self, n_skipped: int) -> Iterator[Block]:
        """Rows and labels but for the first few, some at a time."""
        import pyarrow

        blocks = self._read(n_skipped)
        while True:
            with report_damage(repr(self._name), pyarrow.ArrowException):
                block = next(blocks, None)
            if block is None:
                return
            yield block

    def _read(self, n_skipped: int) -> Iterator[Block]:
        groups, n_skipped = self._groups_after(n_skipped)
        columns = [*self._columns, *([] if self._label is None else [self._label])]
        for batch in self._file.iter_batches(
            self._rows_together(), row_groups=groups, columns=columns
        ):
            n_left_out = min(n_skipped, batch.num_rows)
            n_skipped -= n_left_out
            kept = batch.slice(n_left_out)
            if kept.num_rows:
                labels = None if self._label is None else kept.column(self._label).to_pylist()
                yield self._matrix(kept), labels

    def _rows_together(self) -> int:
        """Return the rows per block; the size that a file states is only a hint."""
        metadata = self._file.metadata
        groups = range(metadata.num_row_groups)
        n_bytes = int(sum(metadata.row_group(i).total_byte_size for i in groups))
        per_row = max(8 * len(self._columns), n_bytes // max(1, self.n_rows))
        return max(1, min(_MOST_TOGETHER, _BLOCK_BYTES // per_row))

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

    def _matrix(self, batch: Any) -> npt.NDArray[Any]:
        if self._is_list:
            return self._from_lists(batch.column(self._columns[0]))
        parts = [self._numbers(batch.column(name), name) for name in self._columns]
        return np.column_stack(parts)

    def _from_lists(self, column: Any) -> npt.NDArray[Any]:
        import pyarrow.compute

        name = self._columns[0]
        self._check_no_nulls(column, name)
        lengths = pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False)
        if (lengths != lengths[0]).any():
            raise ShardError(
                f"the lists in column {name!r} of {self._name!r} must be equally long, "
                f"they have from {lengths.min()} to {lengths.max()} numbers"
            )
        values = self._numbers(column.flatten(), name)
        return values.reshape(len(lengths), -1)

    def _numbers(self, column: Any, name: str) -> npt.NDArray[Any]:
        self._check_no_nulls(column, name)
        values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return values

    def _check_no_nulls(self, column: Any, name: str) -> None:
        if column.null_count:
            raise ShardError(f"the column {name!r} of {self._name!r} has missing values")


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
