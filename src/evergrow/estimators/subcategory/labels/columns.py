"""Columns of labels as callers pass them, brought into one form.

There are two or more columns, or one and a hierarchy, as lists, arrays or data frames, with missing
labels in any of the usual forms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import check_label_types

# Types of missing values in pandas, by name: pandas need not be installed.
_MISSING_IN_PANDAS = frozenset({"NAType", "NaTType"})

# What missing labels become when NumPy turns a column into strings.
_STRINGIFIED = frozenset({"nan", "None", "<NA>", "NaT", "-1"})

_MISSING_FINE = -1

_SHAPES = (
    "labels must have two columns, coarse and fine, or one for each of more levels, or one column "
    "and hierarchy={fine: coarse}"
)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Column:
    """Labels of one level: which rows have one, and these labels."""

    present: Mask
    labels: npt.NDArray[Any]

    @classmethod
    def empty(cls, n_rows: int) -> Column:
        """No row has a label."""
        return cls(np.zeros(n_rows, dtype=bool), np.zeros(0, dtype=np.int64))

    def joined(self, other: Column) -> Column:
        """Return the rows of both."""
        labels = [column.labels for column in (self, other) if len(column.labels)]
        present = np.concatenate([self.present, other.present])
        return Column(present, np.concatenate(labels or [self.labels]))


def label_columns(Y: Any) -> list[npt.NDArray[Any]]:
    """The columns of labels, each of its own type; a flat list is one column.

    >>> [column.tolist() for column in label_columns([["cat", "lynx"], ["dog", None]])]
    [['cat', 'dog'], ['lynx', None]]
    >>> len(label_columns(["lynx", "dog"]))
    1
    """
    if hasattr(Y, "iloc") and hasattr(Y, "columns"):
        return [np.asarray(Y.iloc[:, k]) for k in range(_checked_width(Y.shape[1]))]
    if isinstance(Y, (list, tuple)):
        return _columns_of_list(Y)
    array = np.asarray(Y)
    if array.ndim == 1:
        return [array]
    if array.ndim != 2:
        raise InvalidInputError(f"{_SHAPES}; got {array.ndim} dimensions")
    return [array[:, k] for k in range(_checked_width(array.shape[1]))]


def is_flat(Y: Any) -> bool:
    """Whether labels are a flat list and not a table with one column."""
    if isinstance(Y, (list, tuple)):
        return not any(isinstance(row, (list, tuple, np.ndarray)) for row in Y)
    return np.asarray(Y).ndim == 1


def _columns_of_list(rows: Sequence[Any]) -> list[npt.NDArray[Any]]:
    # NumPy would convert the labels and missing values of a column to one type.
    nested = [isinstance(row, (list, tuple, np.ndarray)) for row in rows]
    if not any(nested):
        return [_as_objects(rows)]
    widths = {len(row) if is_row else 0 for row, is_row in zip(rows, nested, strict=True)}
    if len(widths) > 1:
        raise InvalidInputError(f"{_SHAPES}; got rows of different lengths, {sorted(widths)}")
    width = _checked_width(widths.pop())
    return [_as_objects([row[k] for row in rows]) for k in range(width)]


def _as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = [value.item() if isinstance(value, np.generic) else value for value in values]
    return column


def _checked_width(n_columns: int) -> int:
    if n_columns < 1:
        raise InvalidInputError(f"{_SHAPES}; got {n_columns} columns")
    return n_columns


def read_column(
    values: npt.NDArray[Any], *, named: frozenset[Any] = frozenset(), fine: bool = False
) -> Column:
    """Labels of one level, without the missing ones.

    ``named`` are known classes, whose names never stand for a missing label. Among fine labels, -1
    is a missing one unless it is in ``named``.

    >>> column = read_column(np.array([3.0, np.nan, -1.0]), fine=True)
    >>> column.present.tolist(), column.labels
    ([True, False, False], array([3]))
    """
    if values.dtype.kind not in "biufUO" and values.dtype.name != "StringDType":
        raise InvalidTypeError(f"labels must be integers or strings, got {values.dtype}")
    if values.dtype.kind == "U":
        _check_not_stringified(values, named)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing = np.fromiter((_is_missing(value) for value in values), bool, len(values))
    else:
        missing = np.zeros(len(values), dtype=bool)
    if fine and _MISSING_FINE not in named:
        missing |= _is_minus_one(values)
    return Column(~missing, _plain(values[~missing]))


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return type(value).__name__ in _MISSING_IN_PANDAS


def _is_minus_one(values: npt.NDArray[Any]) -> Mask:
    if values.dtype.kind in "if":
        return np.asarray(values == _MISSING_FINE, dtype=bool)
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    numbers = (int, float, np.integer, np.floating)
    return np.fromiter(
        (isinstance(value, numbers) and value == _MISSING_FINE for value in values),
        bool,
        len(values),
    )


def _check_not_stringified(values: npt.NDArray[Any], named: frozenset[Any]) -> None:
    found = sorted((_STRINGIFIED & set(values.tolist())) - named)
    if found:
        raise InvalidInputError(
            f"labels of type {values.dtype} hold {listed(found)}, which NumPy makes of missing "
            "labels among strings: use a list or an array of dtype=object, with None where a "
            "label is missing; if it is the name of a class, put that into hierarchy"
        )


def _plain(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels of one type: strings or integers; floats, from columns with NaN, become integers."""
    if labels.dtype.kind == "O":
        found = labels.tolist()
        check_label_types(found or [0])
        if found and isinstance(found[0], bytes):
            raise InvalidTypeError(
                "labels must be integers or strings, got bytes: decode them first"
            )
        labels = np.array(found) if found else np.zeros(0, dtype=np.int64)
        if labels.ndim != 1 or labels.dtype.kind == "O":
            raise InvalidInputError(
                f"{_SHAPES}; got labels that are lists, or integers beyond 64 bits"
            )
    elif labels.dtype.name == "StringDType":
        labels = np.array(labels.tolist(), dtype=np.str_)
    if labels.dtype.kind == "f":
        # The second test also finds infinity, which equals its floor.
        odd = labels[(labels != np.floor(labels)) | (np.abs(labels) >= 2.0**53)]
        if len(odd):
            raise InvalidInputError(
                f"Unknown label type: classes must be integers or strings, got {odd[0]}"
            )
        labels = labels.astype(np.int64)
    return labels


def check_hierarchy(hierarchy: Any) -> dict[Any, Any]:
    """A hierarchy as a dictionary of plain names, from fine to coarse; empty for None."""
    if hierarchy is None:
        return {}
    if not isinstance(hierarchy, Mapping):
        raise InvalidTypeError(
            f"hierarchy must map fine classes to coarse ones, got {type(hierarchy).__name__}"
        )
    for level in (hierarchy.keys(), hierarchy.values()):
        names = list(level)
        if any(_is_missing(name) for name in names):
            raise InvalidInputError("hierarchy must not contain missing labels")
        check_label_types(names or [0])
    fine, coarse = (_plain(_as_objects(list(level))) for level in (hierarchy, hierarchy.values()))
    return dict(zip(fine.tolist(), coarse.tolist(), strict=True))


def by_number(n: int, one: str, more: str) -> str:
    """The words for one thing or for several."""
    return one if n == 1 else more


def listed(names: Sequence[Any]) -> str:
    """At most ten names as text for an error message."""
    shown = ", ".join(repr(name) for name in names[:10])
    return shown + ("" if len(names) <= 10 else f" and {len(names) - 10} more")
