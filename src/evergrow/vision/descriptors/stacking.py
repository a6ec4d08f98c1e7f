"""Rows of one image after the other, in one matrix that grows in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage
from evergrow.foundation.ragged import RaggedArray
from evergrow.vision.images.extraction import Extraction

__all__ = ["RowStack", "collect"]

Rows = npt.NDArray[np.float32]


class RowStack:
    """Collects the rows of images without ever holding them twice.

    >>> stack = RowStack(2)
    >>> stack.add(np.ones((3, 2), np.float32))
    >>> stack.ragged()
    RaggedArray(1 images, 3 rows, 2 features)
    """

    def __init__(self, n_features: int) -> None:
        self._values: Rows = np.empty((0, n_features), np.float32)
        self._offsets = [0]

    def add(self, rows: Rows) -> None:
        """Add the rows of the next image."""
        first, last = self._offsets[-1], self._offsets[-1] + len(rows)
        if last > len(self._values):
            self._resize(max(last, len(self._values) * 3 // 2))
        self._values[first:last] = rows
        self._offsets.append(last)

    def _resize(self, n_rows: int) -> None:
        # The system moves large blocks by their addresses, without copying; nobody else has seen
        # the matrix yet.
        self._values.resize((n_rows, self._values.shape[1]), refcheck=False)

    def ragged(self) -> RaggedArray:
        """All rows, and where each image begins. Nothing may be added after."""
        self._resize(self._offsets[-1])
        return RaggedArray(self._values, self._offsets)


def collect(
    stream: Iterable[tuple[int, Rows | BadImage]],
    n_features: int,
    show: Callable[[int], None] | None,
) -> Extraction:
    """All of a stream of descriptors, with the places of their images and the problems."""
    stack, kept, problems = RowStack(n_features), [], []
    for index, rows in stream:
        if isinstance(rows, BadImage):
            problems.append(rows)
        else:
            stack.add(rows)
            kept.append(index)
        if show is not None:
            show(index + 1)
    return Extraction(stack.ragged(), np.array(kept, dtype=np.int64), tuple(problems))
