"""Rows of samples: blocks of them as the core reads them, places of classes, random priorities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

# Large enough to hide the overhead of Python, small enough that a converted copy needs little
# memory.
_BLOCK_BYTES = 8 << 20

Item = TypeVar("Item")
_END = object()


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


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, of which the next is made in another thread meanwhile.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as reader:
        upcoming = reader.submit(next, items, _END)
        while (item := upcoming.result()) is not _END:
            upcoming = reader.submit(next, items, _END)
            yield cast("Item", item)


def places_by_class(
    codes: npt.NDArray[np.int32],
) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """Yield the column and the places of each class that occurs, in column order.

    >>> [(column, places.tolist()) for column, places in places_by_class(np.array([2, 0, 2]))]
    [(0, [1]), (2, [0, 2])]
    """
    # Sorted once: a search per class would take time proportional to rows times classes.
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    firsts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    if len(codes):
        for places in np.split(order, firsts):
            yield int(codes[places[0]]), places


def priorities(key: str, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a random 63-bit integer for each sample number; different keys give independent ones.

    A priority depends on the sample alone. So the samples with the lowest priorities are a uniform
    sample of all that were ever seen, without a count of them.

    >>> priorities("seed 0", np.array([7, 8])).tolist() == [
    ...     int(priorities("seed 0", np.array([number]))[0]) for number in (7, 8)
    ... ]
    True
    """
    digest = hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest()
    # SplitMix64, which is designed for consecutive inputs.
    bits = np.uint64(int.from_bytes(digest, "little")) + (
        numbers.astype(np.uint64) + np.uint64(1)
    ) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(1)).astype(np.int64)
