"""Calls that change one estimator take turns."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

__all__ = ["one_at_a_time", "turn_of_file"]

# One per estimator that was ever trained: updates of one forest wait for each other.
_update_locks: weakref.WeakKeyDictionary[Any, threading.RLock] = weakref.WeakKeyDictionary()
_locks_lock = threading.Lock()

Method = TypeVar("Method", bound=Callable[..., Any])


def one_at_a_time(method: Method) -> Method:
    """Let calls that change one estimator wait for each other; readers need not wait."""

    @functools.wraps(method)
    def locked(self: Any, *args: Any, **options: Any) -> Any:
        with _locks_lock:
            lock = _update_locks.setdefault(self, threading.RLock())
        with lock:
            return method(self, *args, **options)

    return cast(Method, locked)


_file_locks: dict[str, threading.RLock] = {}


@contextmanager
def turn_of_file(path: str | None) -> Iterator[None]:
    """Let those who share a file wait for each other; nobody waits without one."""
    if path is None:
        yield
        return
    with _locks_lock:
        lock = _file_locks.setdefault(path, threading.RLock())
    with lock:
        yield
