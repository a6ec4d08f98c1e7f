"""Work done ahead in threads, handed out in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["MOST_BYTES", "in_groups", "in_order_ahead"]

Item = TypeVar("Item")
Result = TypeVar("Result")

# Results that wait per thread: enough that no thread waits for a slow reader, few enough that
# large images do not fill the memory.
_AHEAD_PER_THREAD = 4
# Images at full size that are handed over together: three of a camera's 12 million pixels.
MOST_BYTES = 1 << 27


def in_order_ahead(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    n_threads: int,
    *,
    per_thread: int = _AHEAD_PER_THREAD,
) -> Iterator[Result]:
    """Yield the result for each item in order, computed ahead by a bounded number of threads.

    The first error is raised where its item comes. Closing the iterator, or an error or interrupt
    where it is used, drops what has not begun and waits for what has.

    >>> list(in_order_ahead(abs, [-3, 2, -1], n_threads=2))
    [3, 2, 1]
    """
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="evergrow-ahead")
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


def in_groups(
    items: Iterable[Item], size_of: Callable[[Item], int], *, most_items: int, most_bytes: int
) -> Iterator[list[Item]]:
    """Yield items in groups, none larger than allowed but for single items that are.

    >>> list(in_groups([3, 4, 5, 1, 1, 1], int, most_items=3, most_bytes=8))
    [[3, 4], [5, 1, 1], [1]]
    """
    group: list[Item] = []
    n_bytes = 0
    for item in items:
        size = size_of(item)
        if group and (len(group) == most_items or n_bytes + size > most_bytes):
            yield group
            group, n_bytes = [], 0
        group.append(item)
        n_bytes += size
    if group:
        yield group
