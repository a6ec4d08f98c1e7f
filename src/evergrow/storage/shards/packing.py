"""Packs batches of any sizes into shards of one size."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.storage.shards.batches import RowBatch
from evergrow.storage.shards.labels import UNLABELLED


@dataclass(frozen=True)
class Piece:
    """A piece of a batch on its way into a shard."""

    rows: npt.NDArray[Any]
    codes: npt.NDArray[np.int32] | None
    offsets: npt.NDArray[np.int64] | None = None
    origins: npt.NDArray[np.uint8] | None = None
    # Identifies their origin.
    source: str | None = None

    @classmethod
    def of(
        cls, batch: RowBatch, codes: npt.NDArray[np.int32] | None, source: str | None = None
    ) -> Piece:
        """Return a batch with the codes of its labels."""
        return cls(batch.rows, codes, batch.offsets, batch.origins, source)

    @property
    def n_items(self) -> int:
        """Number of images, or of rows if every row is an example."""
        return len(self.rows) if self.offsets is None else len(self.offsets) - 1

    @property
    def filled_codes(self) -> npt.NDArray[np.int32]:
        """The codes; -1 for a piece without labels."""
        if self.codes is None:
            return np.full(self.n_items, UNLABELLED, dtype=np.int32)
        return self.codes

    def items_within(self, n_rows: int) -> int:
        """Return how many whole images fit into this many rows."""
        if self.offsets is None:
            return min(n_rows, len(self.rows))
        return int(np.searchsorted(self.offsets, n_rows, side="right")) - 1

    def split(self, n_items: int) -> tuple[Piece, Piece]:
        """Split into the first images and the rest."""
        row = n_items if self.offsets is None else int(self.offsets[n_items])
        first = self._between(slice(0, row), slice(0, n_items))
        return first, self._between(slice(row, None), slice(n_items, None))

    def _between(self, rows: slice, items: slice) -> Piece:
        offsets = self.offsets
        if offsets is not None:
            stop = None if items.stop is None else items.stop + 1
            offsets = offsets[items.start : stop] - offsets[items.start]
        return Piece(
            self.rows[rows],
            None if self.codes is None else self.codes[items],
            offsets,
            None if self.origins is None else self.origins[items],
            self.source,
        )


class Packer:
    """Buffers rows until there are enough for a shard.

    Parameters
    ----------
    n_features : int
        Length of a row.
    rows_per_shard : int
        Rows per shard, except the last; fewer if images have several rows, which stay together.
    ragged : bool
        Whether images have several rows.
    """

    def __init__(self, n_features: int, rows_per_shard: int, *, ragged: bool) -> None:
        self.n_features = n_features
        self.ragged = ragged
        self._rows_per_shard = rows_per_shard
        self._waiting: deque[Piece] = deque()
        self._n_rows = 0

    def add(self, piece: Piece) -> None:
        """Add rows."""
        if piece.n_items:
            self._waiting.append(piece)
            self._n_rows += len(piece.rows)

    def full(self) -> Iterator[list[Piece]]:
        """Yield the pieces of each full shard."""
        while self._n_rows >= self._rows_per_shard:
            yield self._next()
        if self._waiting:
            # The last rows wait, and the caller may reuse the array.
            self._waiting[-1] = replace(self._waiting[-1], rows=np.array(self._waiting[-1].rows))

    def rest(self) -> Iterator[list[Piece]]:
        """Yield the pieces of the remaining rows."""
        while self._waiting:
            yield self._next()

    def _next(self) -> list[Piece]:
        n_free, pieces = self._rows_per_shard, list[Piece]()
        while self._waiting:
            piece = self._waiting.popleft()
            n_items = piece.items_within(n_free)
            # An image with more rows than a shard becomes a shard of its own.
            n_items = max(n_items, 0 if pieces else 1)
            first, left = piece.split(n_items)
            if first.n_items:
                pieces.append(first)
            n_free -= len(first.rows)
            if left.n_items:
                self._waiting.appendleft(left)
                break
        self._n_rows = sum(len(piece.rows) for piece in self._waiting)
        return pieces
