"""Work done ahead in threads, handed out in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order_ahead"]

Item = TypeVar("Item")
Result = TypeVar("Result")

# Results that wait per thread: enough that no thread waits for a slow reader, few enough that
# large images do not fill the memory.
_AHEAD_PER_THREAD = 4


def in_order_ahead(
    work: Callable[[Item], Result], items: Iterable[Item], n_threads: int
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
            if len(waiting) >= n_threads * _AHEAD_PER_THREAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
