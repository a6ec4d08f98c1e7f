"""Batches of any sizes, cut into pieces that make shards of one size."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.storage.shards.incoming import Incoming
from evergrow.storage.shards.labels import UNLABELLED

__all__ = ["Cutter", "Piece"]


@dataclass(frozen=True)
class Piece:
    """Some rows on their way into a shard."""

    rows: npt.NDArray[Any]
    codes: npt.NDArray[np.int32] | None
    offsets: npt.NDArray[np.int64] | None = None
    origins: npt.NDArray[np.uint8] | None = None
    # Names where they come from.
    source: str | None = None

    @classmethod
    def of(
        cls, batch: Incoming, codes: npt.NDArray[np.int32] | None, source: str | None = None
    ) -> Piece:
        """A batch whose labels have their codes."""
        return cls(batch.rows, codes, batch.offsets, batch.origins, source)

    @property
    def n_items(self) -> int:
        """Number of images, or of rows where each stands for itself."""
        return len(self.rows) if self.offsets is None else len(self.offsets) - 1

    @property
    def filled_codes(self) -> npt.NDArray[np.int32]:
        """Codes, also of a piece without labels."""
        if self.codes is None:
            return np.full(self.n_items, UNLABELLED, dtype=np.int32)
        return self.codes

    def items_within(self, n_rows: int) -> int:
        """How many whole images so many rows have room for."""
        if self.offsets is None:
            return min(n_rows, len(self.rows))
        return int(np.searchsorted(self.offsets, n_rows, side="right")) - 1

    def cut(self, n_items: int) -> tuple[Piece, Piece]:
        """The first images, and the rest."""
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


class Cutter:
    """Holds rows until there are enough for a shard.

    Parameters
    ----------
    n_features : int
        Length of a row.
    rows_per_shard : int
        Rows in each shard but the last; fewer where images have several rows, which stay together.
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
        """Take more rows."""
        if piece.n_items:
            self._waiting.append(piece)
            self._n_rows += len(piece.rows)

    def full(self) -> Iterator[list[Piece]]:
        """The pieces of each shard that is full."""
        while self._n_rows >= self._rows_per_shard:
            yield self._next()
        if self._waiting:
            # What came last has to wait, and the caller may use his array again.
            self._waiting[-1] = replace(self._waiting[-1], rows=np.array(self._waiting[-1].rows))

    def rest(self) -> Iterator[list[Piece]]:
        """The pieces of what is left."""
        while self._waiting:
            yield self._next()

    def _next(self) -> list[Piece]:
        room, pieces = self._rows_per_shard, list[Piece]()
        while self._waiting:
            piece = self._waiting.popleft()
            n_items = piece.items_within(room)
            # An image of more rows than a shard has is one by itself.
            n_items = max(n_items, 0 if pieces else 1)
            first, left = piece.cut(n_items)
            if first.n_items:
                pieces.append(first)
            room -= len(first.rows)
            if left.n_items:
                self._waiting.appendleft(left)
                break
        self._n_rows = sum(len(piece.rows) for piece in self._waiting)
        return pieces
