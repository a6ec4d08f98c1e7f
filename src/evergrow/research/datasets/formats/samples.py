"""Samples and labels: checked, converted, and split into training and test samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import DatasetError, DatasetWarning, InvalidInputError, warn_user
from evergrow.foundation.formatting import format_count
from evergrow.foundation.params import Fraction, Integer, Nothing, check_parameters

_NUMBERS = "biuf"
_TEXTS = "SU"
# Rows are converted and checked in chunks, to avoid a second copy of everything.
_CHUNK_BYTES = 16 << 20


def as_rows(values: Array, what: str) -> npt.NDArray[np.float32]:
    """Convert samples to float32 rows and flatten images; ``what`` names them in errors."""
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
    step = max(1, _CHUNK_BYTES // (flat.shape[1] * max(4, flat.itemsize)))
    for first in range(0, len(flat), step):
        part = slice(first, first + step)
        if rows is not flat:
            # Values too large for float32 become infinite and are rejected below.
            with np.errstate(over="ignore"):
                rows[part] = flat[part]
        _check_finite(rows[part], first, what)
    return np.ascontiguousarray(rows)


def _check_finite(rows: Array, first: int, what: str) -> None:
    finite = np.isfinite(rows)
    if finite.all():
        return
    row, column = (int(place) for place in np.argwhere(~finite)[0])
    found = "NaN" if np.isnan(rows[row, column]) else "a value that is not a finite float32 number"
    raise DatasetError(
        f"{what} has {found} in row {first + row}, feature {column} (counted from 0): every "
        "feature must be a finite number; remove the row or fill in the value"
    )


def as_labels(values: Array, what: str) -> Array:
    """Convert labels to int64 or text; ``what`` names them in errors."""
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
            raise DatasetError(f"{what} holds bytes that are not UTF-8 text: {error}") from error
    _refuse_first(np.char.strip(values) == "", values, what, "of at least one letter")
    return values


def _refuse_first(wrong: Array, values: Array, what: str, allowed: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DatasetError(
            f"{what} has an invalid label in row {row} (counted from 0): labels must be {allowed}, "
            f"got {values[row].item()!r}"
        )


def check_lengths(X: Array, y: Array, names: tuple[str, str]) -> None:
    """Raise a ``DatasetError`` unless there is one label per sample."""
    if len(X) != len(y):
        raise DatasetError(
            f"{names[0]} has {len(X)} samples and {names[1]} has {len(y)} labels: there must be "
            "one label per sample"
        )


def by_label(values: Array, classes: Array, what: str) -> dict[Any, Any]:
    """Return the entry of each class in a list that is indexed by label."""
    if values.ndim != 1:
        raise DatasetError(f"{what} must be a flat list, got shape {values.shape}")
    if classes.dtype.kind not in "iu":
        raise DatasetError(f"{what} is indexed by label, so labels must be integers from 0")
    if len(classes) and not (classes.min() >= 0 and classes.max() < len(values)):
        raise DatasetError(
            f"{what} has {len(values)} entries, but labels go from {classes.min()} to "
            f"{classes.max()}: there must be one entry for each label from 0"
        )
    return {int(label): values[label].item() for label in classes}


_DEFAULT_SHARE = 0.25
# Number of classes that a message names.
_MAX_NAMED = 5


def check_split(test_share: object, random_state: object) -> None:
    """Raise ``InvalidInputError`` for an invalid share or seed."""
    check_parameters(
        {"test_share": test_share, "random_state": random_state},
        {"test_share": [Fraction(), Nothing()], "random_state": [Integer(0, 2**32 - 1)]},
    )
    if test_share == 1.0:
        raise InvalidInputError("test_share must be below 1, because training needs samples")


def refuse_split(test_share: float | None, what: str) -> None:
    """Raise ``InvalidInputError`` if a share is given for data that are already split."""
    if test_share is not None:
        raise InvalidInputError(
            f"test_share cannot be used: {what} is already split into training and test samples"
        )


def split(y: Array, test_share: float | None, random_state: int) -> tuple[Array, Array]:
    """Split rows into training and test rows, with the same share of each class.

    A class with two samples has one for testing; a single sample is for training. Rows stay in
    order.
    """
    share = _DEFAULT_SHARE if test_share is None else test_share
    # RandomState gives the same numbers in every version of NumPy.
    rng = np.random.RandomState(random_state)
    tested = np.zeros(len(y), bool)
    labels, codes = np.unique(y, return_inverse=True)
    starts = np.cumsum(np.bincount(codes, minlength=len(labels)))[:-1]
    for rows in np.split(np.argsort(codes, kind="stable"), starts):
        n_test = min(max(1, round(share * len(rows))), len(rows) - 1)
        tested[rng.permutation(rows)[:n_test]] = True
    return np.flatnonzero(~tested), np.flatnonzero(tested)


def check_tested(y_train: Array, y_test: Array, what: str) -> None:
    """Warn about classes without test samples; raise for classes without training samples."""
    for part, y in (("training", y_train), ("testing", y_test)):
        if not len(y):
            raise DatasetError(f"{what} has no samples for {part}")
    unknown = np.setdiff1d(y_test, y_train)
    if len(unknown):
        classes = format_count(len(unknown), "class")
        raise DatasetError(
            f"{what} has test samples of {classes} without training samples: {_listed(unknown)}"
        )
    untested = np.setdiff1d(y_train, y_test)
    if len(untested):
        warn_user(
            f"{what} has {format_count(len(untested), 'class')} without test samples (perhaps a "
            f"single sample), which are learnt but never tested: {_listed(untested)}",
            DatasetWarning,
        )


def _listed(labels: Iterable[Any]) -> str:
    names = [repr(label) for label in np.asarray(labels).tolist()]
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
