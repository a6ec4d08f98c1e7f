"""Rows of shards as a Parquet file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from evergrow.foundation.errors import ShardError
from evergrow.foundation.files import atomic_write
from evergrow.storage.shards.importers.columns import import_pyarrow
from evergrow.storage.shards.reader import Shards

_ROWS_PER_GROUP = 8192


def write_parquet(shards: Shards, path: str | os.PathLike[str]) -> None:
    """Write all rows of shards to a Parquet file, a few at a time.

    Parameters
    ----------
    shards : Shards
        The shards, with one row per example. Rows become the column ``embedding`` of lists. Labels,
        if there are any, become the column ``label``.
    path : path
        File to write. An existing file is replaced only when the new one is complete.

    Examples
    --------
    >>> import evergrow, tempfile
    >>> import numpy as np, pandas
    >>> from evergrow.storage import write_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = evergrow.write_shards(folder + "/rows", [(np.eye(2), ["cat", "dog"])])
    ...     write_parquet(rows, folder + "/rows.parquet")
    ...     pandas.read_parquet(folder + "/rows.parquet").label.tolist()
    ['cat', 'dog']
    """
    pyarrow = import_pyarrow("pyarrow", "pyarrow.parquet")
    if shards.manifest.is_ragged:
        raise ShardError("images of several rows cannot be written to a Parquet file")
    width, labels = shards.shape[1], None if shards.classes is None else shards.labels
    fields = [("embedding", pyarrow.list_(pyarrow.from_numpy_dtype(shards.dtype), width))]
    if labels is not None:
        is_text = labels.classes.dtype.kind == "U"
        fields.append(("label", pyarrow.string() if is_text else pyarrow.int64()))
    schema = pyarrow.schema(fields)
    with atomic_write(path) as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for rows, block in shards.blocks(_ROWS_PER_GROUP):
            values = pyarrow.array(np.ascontiguousarray(block).ravel())
            columns: list[Any] = [pyarrow.FixedSizeListArray.from_arrays(values, width)]
            if labels is not None:
                columns.append(pyarrow.array(labels[rows].tolist(), fields[1][1]))
            writer.write_table(pyarrow.table(columns, schema=schema))
