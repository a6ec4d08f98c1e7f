"""Samples and labels as every experiment takes them: finite float32 rows, none without a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import DatasetError

__all__ = ["as_labels", "as_rows", "check_lengths", "named_by_place"]

Array = npt.NDArray[Any]

_NUMBERS = "biuf"
_TEXTS = "SU"
# Rows are converted and checked so many bytes at a time, to need no second copy of all.
_CHUNK_BYTES = 16 << 20


def as_rows(values: Array, what: str) -> npt.NDArray[np.float32]:
    """Samples as float32 rows; images are flattened. ``what`` names them in errors."""
    if values.dtype.kind not in _NUMBERS:
        raise DatasetError(f"{what} must hold numbers, got values of type {values.dtype}")
    if values.ndim < 2:
        raise DatasetError(
            f"{what} must have a row of features or an image per sample, got shape {values.shape}"
        )
    if not values.size:
        raise DatasetError(f"{what} is empty: its shape is {values.shape}")
    flat = values.reshape(len(values), -1)
    rows = flat if flat.dtype == np.float32 else np.empty(flat.shape, np.float32)
    step = max(1, _CHUNK_BYTES // (_bytes_per_row(flat)))
    for first in range(0, len(flat), step):
        part = slice(first, first + step)
        if rows is not flat:
            # What float32 cannot hold becomes infinite, and is then refused below.
            with np.errstate(over="ignore"):
                rows[part] = flat[part]
        _check_finite(rows[part], first, what)
    return np.ascontiguousarray(rows)


def _bytes_per_row(rows: Array) -> int:
    return int(rows.shape[1] * max(4, rows.itemsize))


def _check_finite(rows: Array, first: int, what: str) -> None:
    finite = np.isfinite(rows)
    if finite.all():
        return
    row, column = (int(place) for place in np.argwhere(~finite)[0])
    found = "NaN" if np.isnan(rows[row, column]) else "no finite float32 number"
    raise DatasetError(
        f"{what} has {found} in row {first + row}, feature {column} (counted from 0): every "
        "feature must be a finite number; leave the row out or fill it in"
    )


def as_labels(values: Array, what: str) -> Array:
    """Labels as int64 or text; ``what`` names them in errors."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DatasetError(f"{what} must hold one label per sample, got shape {values.shape}")
    if values.dtype.kind in _TEXTS:
        return _text_labels(values, what)
    if values.dtype.kind not in _NUMBERS:
        raise DatasetError(f"{what} must hold whole numbers or strings, got {values.dtype}")
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53)
        _refuse_first(~whole, values, what, "whole numbers or strings")
    if values.dtype == np.uint64:
        _refuse_first(values >= 2**63, values, what, "below 2**63")
    return values.astype(np.int64)


def _text_labels(values: Array, what: str) -> Array:
    if values.dtype.kind == "S":
        try:
            values = np.char.decode(values, "utf-8")
        except UnicodeDecodeError as error:
            raise DatasetError(f"{what} holds bytes that are no text: {error}") from error
    _refuse_first(np.char.strip(values) == "", values, what, "of at least one letter")
    return values


def _refuse_first(wrong: Array, values: Array, what: str, allowed: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DatasetError(
            f"{what} has no label in row {row} (counted from 0): labels must be {allowed}, "
            f"got {values[row].item()!r}"
        )


def check_lengths(X: Array, y: Array, names: tuple[str, str]) -> None:
    """Raise a ``DatasetError`` unless there is one label per sample."""
    if len(X) != len(y):
        raise DatasetError(
            f"{names[0]} has {len(X)} samples and {names[1]} has {len(y)} labels: there must be "
            "one label per sample"
        )


def named_by_place(values: Array, classes: Array, what: str) -> dict[Any, Any]:
    """What a list says of each class, whose label is its place in the list."""
    if values.ndim != 1:
        raise DatasetError(f"{what} must be a flat list, got shape {values.shape}")
    if classes.dtype.kind not in "iu":
        raise DatasetError(f"{what} is a list by label, so labels must be its places from 0")
    if len(classes) and not (classes.min() >= 0 and classes.max() < len(values)):
        raise DatasetError(
            f"{what} has {len(values)} entries, but labels go from {classes.min()} to "
            f"{classes.max()}: there must be one for each label from 0"
        )
    return {int(label): values[label].item() for label in classes}
