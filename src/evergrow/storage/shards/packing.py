"""Packs batches of any sizes into shards of one size."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evergrow.storage.shards.batches import RowBatch


class Packer:
    """Buffers rows until there are enough for a shard.

    The last shard may have fewer rows, and others if images have several rows (``ragged``), which
    stay together.
    """

    def __init__(self, n_features: int, rows_per_shard: int, *, ragged: bool) -> None:
        self.n_features = n_features
        self.ragged = ragged
        self._rows_per_shard = rows_per_shard
        self._waiting: deque[RowBatch] = deque()
        self._n_rows = 0

    def add(self, piece: RowBatch) -> None:
        """Add rows."""
        if piece.n_items:
            self._waiting.append(piece)
            self._n_rows += len(piece.rows)

    def full(self) -> Iterator[list[RowBatch]]:
        """Yield the pieces of each full shard."""
        while self._n_rows >= self._rows_per_shard:
            yield self._next()
        if self._waiting:
            # The last rows wait, and the caller may reuse the array.
            self._waiting[-1] = replace(self._waiting[-1], rows=np.array(self._waiting[-1].rows))

    def rest(self) -> Iterator[list[RowBatch]]:
        """Yield the pieces of the remaining rows."""
        while self._waiting:
            yield self._next()

    def _next(self) -> list[RowBatch]:
        n_free, pieces = self._rows_per_shard, list[RowBatch]()
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
