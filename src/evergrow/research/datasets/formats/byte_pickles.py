"""Pickled dictionaries of plain values and byte arrays, read without running the pickle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evergrow.foundation.errors import DatasetError
from evergrow.storage.pickles import RefusedPickleError, read_pickle

_BYTE_TYPES = ("u1", "|u1", "uint8")
_MAX_DIMENSIONS = 4
# Stands for the class ``numpy.ndarray``.
_NDARRAY = object()


class _ByteType:
    """The type of arrays of bytes."""

    def set_pickled_state(self, state: Any) -> None:
        """Ignore byte order and alignment, which bytes do not have."""


class _PickledArray:
    """An array whose shape and values are set by its state."""

    def __init__(self) -> None:
        self.values: np.ndarray[Any, Any] | None = None

    def set_pickled_state(self, state: Any) -> None:
        """Set the array from NumPy's state: version, shape, type, order and bytes."""
        if type(state) is not tuple or len(state) != 5:
            raise RefusedPickleError("an array has an invalid state")
        _, shape, kind, columns_first, content = state
        valid = type(shape) is tuple and all(type(side) is int and side >= 0 for side in shape)
        if not valid or len(shape) > _MAX_DIMENSIONS or type(kind) is not _ByteType:
            raise RefusedPickleError("an array has an invalid shape, or is not an array of bytes")
        # Python 2 text is bytes, one per letter.
        content = content.encode("latin-1") if type(content) is str else content
        if type(content) is not bytes or len(content) != math.prod(shape):
            raise RefusedPickleError(f"an array of shape {shape} has another number of bytes")
        order: Any = "F" if columns_first else "C"
        self.values = np.frombuffer(content, np.uint8).reshape(shape, order=order)


def _reconstruct(*arguments: Any) -> _PickledArray:
    if not arguments or arguments[0] is not _NDARRAY:
        raise RefusedPickleError("it calls _reconstruct for something that is not an array")
    return _PickledArray()


def _dtype(*arguments: Any) -> _ByteType:
    if not arguments or arguments[0] not in _BYTE_TYPES:
        raise RefusedPickleError("it has an array that is not an array of bytes")
    return _ByteType()


# NumPy has moved the first of them.
_NAMES = {
    "numpy.core.multiarray _reconstruct": _reconstruct,
    "numpy._core.multiarray _reconstruct": _reconstruct,
    "numpy ndarray": _NDARRAY,
    "numpy dtype": _dtype,
}


def read_plain_pickle(content: bytes, what: str) -> dict[str, Any]:
    """Read a pickled dictionary of text, numbers, lists and arrays of bytes.

    The pickle is of protocol 2 as Python 2 wrote it, whose text is read as Latin-1, or 3; ``what``
    names it in errors.

    Examples
    --------
    >>> import pickle
    >>> from evergrow.research.datasets.formats.byte_pickles import read_plain_pickle
    >>> read_plain_pickle(pickle.dumps({"labels": [3, 1]}, protocol=2), "the file")
    {'labels': [3, 1]}
    >>> harmful = pickle.dumps({"labels": eval}, protocol=2)
    >>> read_plain_pickle(harmful, "the file")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.DatasetError: the file is refused: it names __builtin__.eval, which
    is not allowed
    """
    try:
        values = read_pickle(content, _NAMES)
    except RefusedPickleError as error:
        raise DatasetError(f"{what} is refused: {error}") from error
    # An empty stack, unset memory, lengths beyond the end.
    except (ValueError, IndexError, KeyError, UnicodeError, OverflowError) as error:
        raise DatasetError(f"{what} is not a complete pickle: {error}") from error
    if type(values) is not dict:
        raise DatasetError(f"{what} must be a dictionary")
    return {
        key: value.values if type(value) is _PickledArray else value
        for key, value in values.items()
    }
