"""Blocks of rows, in the types and memory order that the core reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

# Large enough to hide the overhead of Python, small enough that a converted copy needs little
# memory.
_BLOCK_BYTES = 8 << 20


def float_blocks(
    X: npt.NDArray[Any], max_rows: int | None = None
) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
    """Yield (rows, block) with C-ordered float32 or float64 blocks; views where possible.

    A block has at most ``max_rows`` rows, fewer where it has to be converted. Half precision
    becomes float32 and integers become float64, both without loss below 2**53. Rows that are read
    from files on access come in the same blocks as those of an array.
    """
    exact = X.dtype if X.dtype in (np.float32, np.float64) else None
    dtype = exact or (np.float32 if X.dtype == np.float16 else np.float64)
    step = max(1, _BLOCK_BYTES // max(1, X.shape[1] * 8))
    # Rows that are read from files have no memory order and come in the requested one.
    flags = getattr(X, "flags", None)
    is_ordered = flags is None or flags.c_contiguous
    if max_rows is not None and exact is not None and is_ordered:
        step = max_rows
    elif max_rows is not None:
        step = min(step, max_rows)
    for first in range(0, X.shape[0], step):
        rows = slice(first, min(first + step, X.shape[0]))
        yield rows, np.ascontiguousarray(X[rows], dtype=dtype)
