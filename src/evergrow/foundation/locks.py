"""Locks: between threads that change one estimator or file, and between processes.

``exclusive`` and ``path_mutex`` work between the threads of one process. ``lock_or_wait`` and
:class:`ProcessLock` use lock files, and work between processes.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

# One lock per estimator that was ever trained.
_estimator_locks: weakref.WeakKeyDictionary[Any, threading.RLock] = weakref.WeakKeyDictionary()
_path_locks: dict[str, threading.RLock] = {}
_registry_lock = threading.Lock()

Method = TypeVar("Method", bound=Callable[..., Any])


def exclusive(method: Method) -> Method:
    """Make calls that change the same estimator wait for each other; readers never wait."""

    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **options: Any) -> Any:
        with _registry_lock:
            lock = _estimator_locks.setdefault(self, threading.RLock())
        with lock:
            return method(self, *args, **options)

    return cast(Method, wrapper)


@contextmanager
def path_mutex(path: str | None) -> Iterator[None]:
    """Hold the mutex of a path between threads; without a path there is nothing to lock."""
    if path is None:
        yield
        return
    with _registry_lock:
        lock = _path_locks.setdefault(path, threading.RLock())
    with lock:
        yield


# Polling interval where the system cannot wait for a lock.
_POLL_SECONDS = 0.1

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_for_lock(descriptor: int) -> None:
        while not _try_lock(descriptor):
            time.sleep(_POLL_SECONDS)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_for_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def lock_path(path: str | os.PathLike[str]) -> Path:
    """Return the lock file of a path."""
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name}.lock")


@contextmanager
def lock_or_wait(path: str | os.PathLike[str], on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file of a path; ``on_wait`` is called first if another process holds it.

    The system releases the lock when the process ends, however it ends.
    """
    file = lock_path(path)
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _try_lock(descriptor):
                on_wait()
                _wait_for_lock(descriptor)
            # The previous holder may have removed the file; then others lock a newer one.
            if _is_same_file(file, descriptor):
                yield from _remove_afterwards(file, descriptor)
                return
        finally:
            os.close(descriptor)


def _remove_afterwards(file: Path, descriptor: int) -> Iterator[None]:
    # Only the holder removes the file: a process interrupted while it waits must not remove the
    # lock of another.
    try:
        yield
    finally:
        # Windows cannot remove open files; an empty file remains.
        with suppress(PermissionError):
            if _is_same_file(file, descriptor):
                file.unlink(missing_ok=True)


def _is_same_file(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False


class ProcessLock:
    """A lock that a process holds until it releases it; others fail instead of waiting.

    The file is created if missing, and never removed. The note is written into it: it is the text
    of the ``BlockingIOError`` that other processes get.
    """

    def __init__(self, file: str | os.PathLike[str], note: str = "") -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        if not _try_lock(self._descriptor):
            found = _read_note(self._descriptor)
            os.close(self._descriptor)
            raise BlockingIOError(found)
        # The note is informative; a full disk must not prevent locking.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, note.encode())

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


def is_held(file: str | os.PathLike[str]) -> bool:
    """Whether a process holds the lock of a file through :class:`ProcessLock`."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def _read_note(descriptor: int) -> str:
    try:
        return os.read(descriptor, 1000).decode(errors="replace").strip()
    except OSError:
        # Windows does not allow reading a locked file.
        return ""
