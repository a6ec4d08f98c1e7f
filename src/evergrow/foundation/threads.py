"""Limits on the threads of numerical libraries, and other settings of the whole process."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeVar, cast

from threadpoolctl import ThreadpoolController

State = TypeVar("State")


@functools.lru_cache(maxsize=1)
def _libraries_among(n_modules: int) -> ThreadpoolController:  # noqa: ARG001
    return ThreadpoolController()


def _libraries() -> ThreadpoolController:
    # Finding the libraries takes longer than limiting them. A module that was imported since may
    # have brought another one.
    return _libraries_among(len(sys.modules))


class SharedSetting(Generic[State]):
    """A process-wide setting that is changed while at least one block needs it.

    Two independent blocks would each restore what they found, and the second could restore the
    setting of the first. ``change`` returns what ``restore`` is called with.
    """

    def __init__(self, change: Callable[[], State], restore: Callable[[State], object]) -> None:
        self._change, self._restore = change, restore
        self._lock = threading.Lock()
        self._n_users = 0
        self._before: list[State] = []

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the setting: the first block changes it, the last one restores it."""
        with self._lock:
            if not self._n_users:
                self._before = [self._change()]
            self._n_users += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                if not self._n_users:
                    self._restore(*self._before)


def _blas_libraries() -> list[Any]:
    return [one for one in _libraries().lib_controllers if one.user_api == "blas"]


def _limit_blas() -> list[tuple[Any, int]]:
    before = [(library, library.num_threads) for library in _blas_libraries()]
    _restore_blas([(library, 1) for library, _ in before])
    return before


def _restore_blas(before: list[tuple[Any, int]]) -> None:
    for library, n_threads in before:
        # threadpoolctl lets one thread set limits, the first that did, and ignores all others.
        getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


_BLAS = SharedSetting(_limit_blas, _restore_blas)


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
