"""Work done ahead of time in threads, and items grouped by size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Results that wait per thread: enough that no thread is idle while the consumer is slow, few enough
# that large images do not fill the memory.
_AHEAD_PER_THREAD = 4
# Limit for full-size images that are processed together: three images of 12 megapixels.
MAX_GROUP_BYTES = 1 << 27


def prefetch(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    n_threads: int,
    *,
    per_thread: int = _AHEAD_PER_THREAD,
) -> Iterator[Result]:
    """Yield ``work(item)`` for each item in order, computed ahead by threads.

    An error is raised when its item is reached. If the iterator is closed, or its consumer fails or
    is interrupted, pending work is cancelled and running work is awaited.

    >>> list(prefetch(abs, [-3, 2, -1], n_threads=2))
    [3, 2, 1]
    """
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="evergrow-prefetch")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= n_threads * per_thread:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def group_by_size(
    items: Iterable[Item], size_of: Callable[[Item], int], *, max_items: int, max_bytes: int
) -> Iterator[list[Item]]:
    """Yield groups of consecutive items within the limits; an oversized item is a group of its own.

    >>> list(group_by_size([3, 4, 5, 1, 1, 1], int, max_items=3, max_bytes=8))
    [[3, 4], [5, 1, 1], [1]]
    """
    group: list[Item] = []
    n_bytes = 0
    for item in items:
        size = size_of(item)
        if group and (len(group) == max_items or n_bytes + size > max_bytes):
            yield group
            group, n_bytes = [], 0
        group.append(item)
        n_bytes += size
    if group:
        yield group
