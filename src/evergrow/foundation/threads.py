"""Limits on the threads of numerical libraries."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from threadpoolctl import ThreadpoolController


@functools.lru_cache(maxsize=1)
def _libraries_among(n_modules: int) -> ThreadpoolController:  # noqa: ARG001
    return ThreadpoolController()


def _libraries() -> ThreadpoolController:
    # Finding the libraries takes longer than limiting them. A module that was imported since may
    # have brought another one.
    return _libraries_among(len(sys.modules))


class _SharedLimit:
    """A process-wide limit that is active while at least one block needs it.

    Two independent limits would each restore what they found, and the second could restore the
    limit of the first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_users = 0
        self._before: list[tuple[Any, int]] = []

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the limit: the first block sets it, the last one lifts it."""
        with self._lock:
            if not self._n_users:
                self._before = [(library, library.num_threads) for library in _blas_libraries()]
                for library, _ in self._before:
                    _set_threads(library, 1)
            self._n_users += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                if not self._n_users:
                    for library, n_threads in self._before:
                        _set_threads(library, n_threads)


def _blas_libraries() -> list[Any]:
    return [one for one in _libraries().lib_controllers if one.user_api == "blas"]


def _set_threads(library: Any, n_threads: int) -> None:
    # threadpoolctl lets one thread set limits, the first that did, and ignores all others.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


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
    return max((library.num_threads for library in _blas_libraries()), default=1)


def one_openmp_thread() -> AbstractContextManager[object]:
    """Limit OpenMP loops that this thread starts to one thread."""
    return cast(AbstractContextManager[object], _libraries().limit(limits=1, user_api="openmp"))
