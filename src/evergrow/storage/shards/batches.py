"""What comes in to be written to shards: checked, and brought into one shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ShardError
from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.shards.images import ShardImages
from evergrow.storage.shards.labels import ShardLabels
from evergrow.storage.shards.manifest import DTYPES, ORIGIN_BYTES

__all__ = ["Incoming", "fitting_dtype", "label_values"]

Ints = npt.NDArray[np.int64]

_WIDEST = DTYPES["float64"]


@dataclass(frozen=True)
class Incoming:
    """Rows that belong together, and what is known of them."""

    rows: npt.NDArray[Any]
    # Labels of rows or images, None in place of one that is missing; None if nothing is labelled.
    labels: list[Any] | None
    # Where the rows of each image begin; None where each row stands for itself.
    offsets: Ints | None
    # Hashes of where each came from, if known.
    origins: npt.NDArray[np.uint8] | None = None

    @property
    def n_items(self) -> int:
        """Number of images, or of rows where each stands for itself."""
        return len(self.rows) if self.offsets is None else len(self.offsets) - 1

    @classmethod
    def of(cls, batch: Any, what: str) -> Incoming:
        """A batch as it was given: a matrix or ragged array, or a pair of one and labels.

        ``what`` names it in errors.
        """
        X, y = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        is_ragged = isinstance(X, (RaggedArray, ShardImages))
        offsets = X.offsets if is_ragged else None
        expected = f"{what} must be a matrix of numbers or a pair (rows, labels)"
        try:
            rows = np.asarray(X.values if is_ragged else X)
        except ShardError:
            raise
        except ValueError as error:
            # Lists of several lengths are no matrix.
            raise ValueError(f"{expected}, got a {type(X).__name__}: {error}") from error
        if rows.ndim != 2 or rows.dtype.kind not in "biuf":
            raise ValueError(f"{expected}, got {rows.dtype} of shape {rows.shape}")
        try:
            incoming = cls(rows, None if y is None else label_values(y), offsets)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{what}: {error}") from error
        if incoming.labels is not None and len(incoming.labels) != incoming.n_items:
            kind = "rows" if offsets is None else "images"
            raise ValueError(
                f"{what} has {incoming.n_items} {kind} but {len(incoming.labels)} labels"
            )
        return incoming

    def converted(self, dtype: np.dtype[Any], what: str, *, rounded: bool) -> Incoming:
        """With rows of another type; a ``ValueError`` if that would lose what was not meant to."""
        rows = self.rows
        if not np.isfinite(rows).all():
            raise ValueError(f"{what} holds numbers that are NaN or infinite")
        advice = f"give dtype={dtype.name!r} to have it rounded"
        # What no type holds may still be numbers that the widest one does.
        if not rounded and not np.can_cast(rows.dtype, dtype, "safe") and dtype != _WIDEST:
            raise ValueError(
                f"{what} is of type {rows.dtype}, the shards are of type {dtype.name}, "
                f"which does not hold it exactly: {advice}"
            )
        with np.errstate(over="ignore"):
            rows = rows.astype(dtype, copy=False)
        if not np.isfinite(rows).all():
            raise ValueError(f"{what} holds numbers too large for {dtype.name}")
        if not rounded and not _is_exact(self.rows, rows):
            raise ValueError(
                f"{what} holds numbers of type {self.rows.dtype} that {dtype.name} does not hold "
                f"exactly: {advice}"
            )
        return Incoming(rows, self.labels, self.offsets, self.origins)

    def with_origins(self, origins: npt.NDArray[np.uint8]) -> Incoming:
        """With hashes of where each came from."""
        if origins.shape != (self.n_items, ORIGIN_BYTES):
            raise ValueError(f"there must be {ORIGIN_BYTES} bytes per image or row")
        return Incoming(self.rows, self.labels, self.offsets, origins)


def fitting_dtype(given: np.dtype[Any]) -> np.dtype[Any]:
    """The type that shards get whose first rows are of a type."""
    exact = (dtype for dtype in DTYPES.values() if np.can_cast(given, dtype, "safe"))
    return next(exact, _WIDEST)


def _is_exact(given: npt.NDArray[Any], converted: npt.NDArray[Any]) -> bool:
    """Whether numbers are the same in a type that does not hold all of theirs."""
    kind, n_bytes = given.dtype.kind, given.dtype.itemsize
    if n_bytes < _WIDEST.itemsize or given.dtype == converted.dtype:
        return True
    # 2**63 as an integer is another number on every processor.
    most = 2.0 ** (8 * n_bytes - (kind == "i")) if kind in "iu" else np.inf
    with np.errstate(invalid="ignore"):
        back = converted.astype(given.dtype)
    return bool(((converted < most) & (back == given)).all())


def label_values(y: Any) -> list[Any]:
    """Labels as Python's integers or strings, None where one is missing.

    What pandas calls missing is, and so is NaN.

    >>> label_values(["cat", None, "dog", float("nan")])
    ['cat', None, 'dog', None]
    """
    values = [None if _is_nan(value) else value for value in _listed(y)]
    present = [value for value in values if value is not None]
    odd = next((value for value in present if type(value) not in (int, str)), None)
    if odd is not None:
        raise TypeError(
            f"labels must be integers or strings, or None for a missing one, got {odd!r:.80}"
        )
    if len({type(value) for value in present}) > 1:
        # NumPy would make "1" of 1 without a word, and one class of the two.
        raise TypeError("labels must be all strings or all numbers, or None for a missing one")
    return values


def _listed(y: Any) -> list[Any]:
    """Labels as Python's own values, one after the other."""
    if not isinstance(y, (list, tuple, ShardLabels)) and np.ndim(y) != 1:
        raise ValueError(f"labels must be a flat list, got {np.ndim(y)} dimensions")
    if hasattr(y, "isna"):
        # An array would make floats of the integers of pandas if one is missing.
        pairs = zip(y.tolist(), y.isna().tolist(), strict=True)
        y = [None if is_missing else value for value, is_missing in pairs]
    elif not isinstance(y, (list, tuple)):
        y = (y if isinstance(y, ShardLabels) else np.asarray(y)).tolist()
    return [value.item() if isinstance(value, np.generic) else value for value in y]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
