"""Limits on the threads of numerical libraries."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import cast

from threadpoolctl import ThreadpoolController


@functools.cache
def _libraries() -> ThreadpoolController:
    # Finding the libraries takes longer than limiting them.
    return ThreadpoolController()


class _SharedLimit:
    """A process-wide limit that is active while at least one block needs it.

    Two independent limits would each restore what they found, and the second could restore the
    limit of the first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_users = 0
        self._end = threading.Event()
        self._thread = threading.Thread()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the limit: the first block sets it, the last one lifts it."""
        with self._lock:
            if not self._n_users:
                self._set()
            self._n_users += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                if not self._n_users:
                    self._lift()

    def _set(self) -> None:
        # In a thread of its own: the thread that sets a limit must lift it, and the last block to
        # end may not be the first that began.
        is_set = threading.Event()
        self._end = threading.Event()
        self._thread = threading.Thread(target=_hold_limit, args=(is_set, self._end), daemon=True)
        self._thread.start()
        is_set.wait()

    def _lift(self) -> None:
        self._end.set()
        self._thread.join()


def _hold_limit(is_set: threading.Event, end: threading.Event) -> None:
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            is_set.set()
            end.wait()
    finally:
        # The waiting thread goes on even if the limit cannot be set.
        is_set.set()


_BLAS = _SharedLimit()


def one_blas_thread() -> AbstractContextManager[None]:
    """Limit BLAS to one thread per call, in the whole process.

    >>> with one_blas_thread():
    ...     pass
    """
    return _BLAS.hold()


def blas_threads() -> int:
    """Return how many threads BLAS may use now, by the environment or by a limit.

    >>> with one_blas_thread():
    ...     blas_threads()
    1
    """
    libraries = _libraries().lib_controllers
    return max((one.num_threads for one in libraries if one.user_api == "blas"), default=1)


def one_openmp_thread() -> AbstractContextManager[object]:
    """Limit OpenMP loops that this thread starts to one thread."""
    return cast(AbstractContextManager[object], _libraries().limit(limits=1, user_api="openmp"))
