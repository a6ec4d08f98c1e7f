"""How many threads the libraries of linear algebra use by themselves."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread", "one_openmp_thread"]


@functools.cache
def _libraries() -> ThreadpoolController:
    # Looking for the libraries takes longer than limiting them.
    return ThreadpoolController()


class _Shared:
    """A limit on the whole process for as long as anybody needs it.

    Whoever limits twice at once takes the limit of the other for what was there before, and the
    last one to leave would put that back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_users = 0
        self._over = threading.Event()
        self._keeper = threading.Thread()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the limit; the first one in sets it and the last one out lifts it."""
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
        # By a thread of its own: one that limits must be the one that lifts, and the last one out
        # need not be the first one in.
        is_set = threading.Event()
        self._over = threading.Event()
        self._keeper = threading.Thread(target=_keep, args=(is_set, self._over), daemon=True)
        self._keeper.start()
        is_set.wait()

    def _lift(self) -> None:
        self._over.set()
        self._keeper.join()


def _keep(is_set: threading.Event, over: threading.Event) -> None:
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            is_set.set()
            over.wait()
    finally:
        # Nobody waits for a limit that cannot be set.
        is_set.set()


_BLAS = _Shared()


def one_blas_thread() -> AbstractContextManager[None]:
    """Let products of matrices use one thread each, in the whole process.

    >>> with one_blas_thread():
    ...     pass
    """
    return _BLAS.hold()


def one_openmp_thread() -> AbstractContextManager[object]:
    """Let loops of OpenMP use one thread, those that this thread starts."""
    limit: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="openmp")
    return limit
