"""Arrays of other libraries in memory, as arrays of NumPy.

scikit-learn takes what NumPy can convert. Here is the rest: objects that speak only DLPack, and
columns of lists, which are matrices to the libraries that write embeddings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.device import as_array, as_tensor, is_on_gpu, is_tensor, to_host
from evergrow.foundation.errors import InvalidInputError


def from_other_library(values: Any) -> Any:
    """Return an array of another library as one of NumPy; anything else as it is.

    Rows in the memory of a GPU stay there. Tables are left to scikit-learn, which reads the names
    of their columns.

    >>> import pandas
    >>> from_other_library(pandas.Series([[1, 2], [3, 4]])).tolist()
    [[1, 2], [3, 4]]
    """
    if isinstance(values, np.ndarray):
        # The core reads numbers where processors expect them: not at an odd address of a buffer.
        return values if values.flags.aligned else values.copy()
    if isinstance(values, (list, tuple)):
        return values
    if is_tensor(values):
        return values if is_on_gpu(values) else as_array(values)
    library = type(values).__module__.partition(".")[0]
    if library in _CONVERTERS:
        return _CONVERTERS[library](values)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__") and not is_on_gpu(values):
        return _from_dlpack(values)
    return values


def on_processor(values: Any) -> Any:
    """Return an array of any library as one on the processor; anything else as it is."""
    found = from_other_library(values)
    return to_host(as_tensor(found)) if is_on_gpu(found) else found


def _from_dlpack(values: Any) -> npt.NDArray[Any]:
    try:
        return np.from_dlpack(values)
    # Each library has errors of its own for devices and types that NumPy lacks.
    except Exception as error:
        raise InvalidInputError(
            f"the {type(values).__name__} cannot be read as an array on the processor: {error}"
        ) from error


def _from_pyarrow(values: Any) -> Any:
    if not hasattr(values, "null_count"):
        # A table.
        return values
    parts = values.chunks if hasattr(values, "chunks") else [values]
    if "list" not in str(values.type).partition("<")[0]:
        found = [part.to_numpy(zero_copy_only=False) for part in parts]
        return np.concatenate(found) if found else np.empty(0)
    import pyarrow.compute

    lengths = pyarrow.compute.list_value_length(values).to_pylist()
    if None in lengths:
        raise InvalidInputError(f"row {lengths.index(None)} is missing")
    _check_widths(np.array(lengths, dtype=np.int64))
    flat = [part.flatten().to_numpy(zero_copy_only=False) for part in parts if len(part)]
    return np.concatenate(flat or [np.empty(0)]).reshape(len(lengths), -1 if lengths else 0)


def _from_polars(values: Any) -> Any:
    kind = str(getattr(values, "dtype", ""))
    if kind.startswith(("Array", "List")):
        return _stack(values.to_list())
    return values


def _from_pandas(values: Any) -> Any:
    is_column = getattr(values, "ndim", 0) == 1 and str(values.dtype) in ("object", "list")
    if not is_column or not len(values) or isinstance(values.iloc[0], str):
        return values
    return _stack(values.tolist()) if np.ndim(values.iloc[0]) == 1 else values


def _from_datasets(values: Any) -> Any:
    # A column; NumPy would read it row by row.
    return from_other_library(values[:]) if not hasattr(values, "features") else values


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "datasets": _from_datasets,
    "pandas": _from_pandas,
    "polars": _from_polars,
    "pyarrow": _from_pyarrow,
}


def _stack(rows: list[Any]) -> npt.NDArray[Any]:
    """The matrix of a list of rows."""
    missing = next((number for number, row in enumerate(rows) if row is None), None)
    if missing is not None:
        raise InvalidInputError(f"row {missing} is missing")
    _check_widths(np.array([np.size(row) for row in rows]))
    return np.array(rows)


def _check_widths(widths: npt.NDArray[Any]) -> None:
    odd = np.flatnonzero(widths != widths[:1])
    if len(odd):
        raise InvalidInputError(
            f"row {odd[0]} has {widths[odd[0]]} features, the rows before it have {widths[0]}"
        )
