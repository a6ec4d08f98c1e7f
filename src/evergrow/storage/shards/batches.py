"""Validates batches of rows and labels before they are written to shards."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError, ShardError
from evergrow.storage.ragged import RaggedArray
from evergrow.storage.shards.labels import UNLABELLED, ShardLabels
from evergrow.storage.shards.manifest import DTYPES, ORIGIN_BYTES
from evergrow.storage.shards.rows import ShardImages

Ints = npt.NDArray[np.int64]

_WIDEST = DTYPES["float64"]


@dataclass(frozen=True)
class RowBatch:
    """Rows with their labels, image boundaries and origins, on their way into shards."""

    rows: npt.NDArray[Any]
    # Labels of rows or images, None for a missing one; None if there are no labels.
    labels: list[Any] | None
    # The first row of each image; None if every row is an example.
    offsets: Ints | None
    # Hashes of the origin of each, if known.
    origins: npt.NDArray[np.uint8] | None = None
    # The indices of the labels in the classes of the folder, once they are known.
    codes: npt.NDArray[np.int32] | None = None
    # Identifies the source of the rows.
    source: str | None = None

    @property
    def n_items(self) -> int:
        """Number of images, or of rows if every row is an example."""
        return len(self.rows) if self.offsets is None else len(self.offsets) - 1

    @classmethod
    def of(cls, batch: Any, what: str) -> RowBatch:
        """Validate a batch: a matrix or ragged array, or a pair of one and labels.

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
            # Lists of different lengths are not a matrix.
            raise InvalidInputError(f"{expected}, got a {type(X).__name__}: {error}") from error
        if rows.ndim != 2 or rows.dtype.kind not in "biuf":
            raise InvalidInputError(f"{expected}, got {rows.dtype} of shape {rows.shape}")
        try:
            incoming = cls(rows, None if y is None else label_values(y), offsets)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{what}: {error}") from error
        if incoming.labels is not None and len(incoming.labels) != incoming.n_items:
            kind = "rows" if offsets is None else "images"
            raise InvalidInputError(
                f"{what} has {incoming.n_items} {kind} but {len(incoming.labels)} labels"
            )
        return incoming

    def converted(self, dtype: np.dtype[Any], what: str, *, rounded: bool) -> RowBatch:
        """Convert the rows to another type; an error if that is inexact, unless ``rounded``."""
        rows = self.rows
        if not np.isfinite(rows).all():
            raise InvalidInputError(f"{what} holds numbers that are NaN or infinite")
        advice = f"use dtype={dtype.name!r} to round it"
        # Other types may still hold numbers that float64 represents exactly.
        if not rounded and not np.can_cast(rows.dtype, dtype, "safe") and dtype != _WIDEST:
            raise InvalidInputError(
                f"{what} is of type {rows.dtype}, the shards are of type {dtype.name}, "
                f"which does not hold it exactly: {advice}"
            )
        with np.errstate(over="ignore"):
            rows = rows.astype(dtype, copy=False)
        if not np.isfinite(rows).all():
            raise InvalidInputError(f"{what} holds numbers too large for {dtype.name}")
        if not rounded and not _is_exact(self.rows, rows):
            raise InvalidInputError(
                f"{what} holds numbers of type {self.rows.dtype} that {dtype.name} does not hold "
                f"exactly: {advice}"
            )
        return replace(self, rows=rows)

    def with_origins(self, origins: npt.NDArray[np.uint8]) -> RowBatch:
        """Return the batch with hashes of the origins."""
        if origins.shape != (self.n_items, ORIGIN_BYTES):
            raise InvalidInputError(f"there must be {ORIGIN_BYTES} bytes per image or row")
        return replace(self, origins=origins)

    @property
    def filled_codes(self) -> npt.NDArray[np.int32]:
        """The codes; -1 for a batch without labels."""
        if self.codes is None:
            return np.full(self.n_items, UNLABELLED, dtype=np.int32)
        return self.codes

    def items_within(self, n_rows: int) -> int:
        """Return how many whole images fit into this many rows."""
        if self.offsets is None:
            return min(n_rows, len(self.rows))
        return int(np.searchsorted(self.offsets, n_rows, side="right")) - 1

    def split(self, n_items: int) -> tuple[RowBatch, RowBatch]:
        """Split into the first images and the rest."""
        row = n_items if self.offsets is None else int(self.offsets[n_items])
        first = self._between(slice(0, row), slice(0, n_items))
        return first, self._between(slice(row, None), slice(n_items, None))

    def _between(self, rows: slice, items: slice) -> RowBatch:
        offsets = self.offsets
        if offsets is not None:
            stop = None if items.stop is None else items.stop + 1
            offsets = offsets[items.start : stop] - offsets[items.start]
        return replace(
            self,
            rows=self.rows[rows],
            codes=None if self.codes is None else self.codes[items],
            offsets=offsets,
            origins=None if self.origins is None else self.origins[items],
        )


def smallest_dtype(given: np.dtype[Any]) -> np.dtype[Any]:
    """Return the smallest type for shards that holds the given type exactly."""
    exact = (dtype for dtype in DTYPES.values() if np.can_cast(given, dtype, "safe"))
    return next(exact, _WIDEST)


def _is_exact(given: npt.NDArray[Any], converted: npt.NDArray[Any]) -> bool:
    """Whether a conversion kept every number exactly."""
    kind, n_bytes = given.dtype.kind, given.dtype.itemsize
    if n_bytes < _WIDEST.itemsize or given.dtype == converted.dtype:
        return True
    # Converting 2**63 to an integer is undefined and differs between processors.
    most = 2.0 ** (8 * n_bytes - (kind == "i")) if kind in "iu" else np.inf
    with np.errstate(invalid="ignore"):
        back = converted.astype(given.dtype)
    return bool(((converted < most) & (back == given)).all())


def label_values(y: Any) -> list[Any]:
    """Convert labels to Python integers or strings, None for a missing one.

    NaN and the missing values of pandas count as missing.

    >>> label_values(["cat", None, "dog", float("nan")])
    ['cat', None, 'dog', None]
    """
    values = [None if _is_nan(value) else value for value in _listed(y)]
    present = [value for value in values if value is not None]
    odd = next((value for value in present if type(value) not in (int, str)), None)
    if odd is not None:
        raise InvalidTypeError(
            f"labels must be integers or strings, or None for a missing one, got {odd!r:.80}"
        )
    if len({type(value) for value in present}) > 1:
        # NumPy would silently convert 1 to "1" and merge the two classes.
        raise InvalidTypeError(
            "labels must be all strings or all numbers, or None for a missing one"
        )
    return values


def _listed(y: Any) -> list[Any]:
    """Convert labels to a list of Python values."""
    if not isinstance(y, (list, tuple, ShardLabels)) and np.ndim(y) != 1:
        raise InvalidInputError(f"labels must be a flat list, got {np.ndim(y)} dimensions")
    if hasattr(y, "isna"):
        # NumPy would convert the integers of pandas to floats if one is missing.
        pairs = zip(y.tolist(), y.isna().tolist(), strict=True)
        y = [None if is_missing else value for value, is_missing in pairs]
    elif not isinstance(y, (list, tuple)):
        y = (y if isinstance(y, ShardLabels) else np.asarray(y)).tolist()
    return [value.item() if isinstance(value, np.generic) else value for value in y]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
