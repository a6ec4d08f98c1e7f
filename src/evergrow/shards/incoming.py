"""What comes in to be written to shards: checked, and brought into one shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.labels import check_label_types
from evergrow.ragged import RaggedArray
from evergrow.shards.labels import ShardLabels
from evergrow.shards.manifest import DTYPES, ORIGIN_BYTES

__all__ = ["Incoming", "fitting_dtype", "label_values"]

Ints = npt.NDArray[np.int64]


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
        offsets = X.offsets if isinstance(X, RaggedArray) else None
        rows = np.asarray(X.values if isinstance(X, RaggedArray) else X)
        if rows.ndim != 2 or rows.dtype.kind not in "biuf":
            raise ValueError(
                f"{what} must be a matrix of numbers or a pair of one and its labels, "
                f"got {rows.dtype} of shape {rows.shape}"
            )
        incoming = cls(rows, None if y is None else label_values(y), offsets)
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
        if not rounded and not np.can_cast(rows.dtype, dtype, "safe"):
            raise ValueError(
                f"{what} is of type {rows.dtype}, the shards are of type {dtype.name}, "
                f"which does not hold it exactly: give dtype={dtype.name!r} to have it rounded"
            )
        with np.errstate(over="ignore"):
            rows = rows.astype(dtype, copy=False)
        if not np.isfinite(rows).all():
            raise ValueError(f"{what} holds numbers too large for {dtype.name}")
        return Incoming(rows, self.labels, self.offsets, self.origins)

    def with_origins(self, origins: npt.NDArray[np.uint8]) -> Incoming:
        """With hashes of where each came from."""
        if origins.shape != (self.n_items, ORIGIN_BYTES):
            raise ValueError(f"there must be {ORIGIN_BYTES} bytes per image or row")
        return Incoming(self.rows, self.labels, self.offsets, origins)


def fitting_dtype(given: np.dtype[Any]) -> np.dtype[Any]:
    """The type that shards get whose first rows are of a type."""
    exact = (dtype for dtype in DTYPES.values() if np.can_cast(given, dtype, "safe"))
    return next(exact, DTYPES["float64"])


def label_values(y: Any) -> list[Any]:
    """Labels as Python's integers or strings, None where one is missing.

    >>> label_values(["cat", None, "dog"])
    ['cat', None, 'dog']
    """
    listed = getattr(y, "to_numpy", lambda: y)()
    if not isinstance(listed, (list, tuple, ShardLabels)):
        listed = np.asarray(listed)
        if listed.ndim != 1:
            raise ValueError(f"labels must be a flat list, got {listed.ndim} dimensions")
    values = list(listed) if isinstance(listed, (list, tuple)) else listed.tolist()
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    present = [value for value in values if value is not None]
    if present:
        check_label_types(present)
    odd = next((value for value in present if type(value) not in (int, str)), None)
    if odd is not None:
        raise TypeError(f"labels must be integers or strings, got {odd!r:.80}")
    return values
