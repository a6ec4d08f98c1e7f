"""Locks: between threads that change one estimator, and between processes.

``exclusive`` works between the threads of one process. ``lock_or_wait`` uses lock files and
:class:`FolderLock` locks a folder itself; both work between processes.
"""

from __future__ import annotations

import errno
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


# Polling interval where the system cannot wait for a lock.
_POLL_SECONDS = 0.1
# A link in place of a lock file would create a file elsewhere.
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)

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
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o666)
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
    except OSError:
        # Missing, or not reachable any more: a folder on the way is a file or a loop of links now.
        return False


# What flock reports for a folder on file systems that lock only files open for writing, or none.
_CANNOT_LOCK = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}
# :func:`is_locked` holds the lock for a moment, which must not look like another holder.
_ATTEMPTS, _ATTEMPT_SECONDS = 5, 0.02


class FolderLock:
    """An exclusive lock on a folder, held until it is released; others fail instead of waiting.

    The folder itself is locked: its inode is the same through every link and mount, and no file in
    it can be removed to get around the lock. The file ``name`` in the folder, which is created if
    missing and never removed, is locked too: it is all there is to lock where the system cannot
    lock folders. The holder may write a note into it: it is the text of the ``BlockingIOError``
    that other processes get.

    The lock is on the folder that was at the path when it was locked. :meth:`is_current` says
    whether it still is there.
    """

    def __init__(self, folder: str | os.PathLike[str], name: str) -> None:
        self._folder = Path(folder)
        self._file = self._folder / name
        self._descriptors: list[int] = []
        # What the previous holder wrote, which it leaves behind when it is killed.
        self.last_note = ""
        try:
            self._locks_folder = self._lock_folder()
            self._lock_file()
        except BaseException:
            self.release()
            raise

    def _lock_folder(self) -> bool:
        """Lock the folder; False if the system cannot."""
        # Windows cannot open folders. Nor can it remove or rename a file that is open.
        if sys.platform == "win32":
            return False
        self._descriptors.append(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY))
        try:
            locked = _try_lock_briefly(self._descriptors[0])
        except OSError as error:
            if error.errno in _CANNOT_LOCK:
                return False
            raise
        if not locked:
            raise BlockingIOError(read_note(self._file))
        return True

    def _lock_file(self) -> None:
        self.last_note = read_note(self._file)
        self._descriptors.append(os.open(self._file, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o600))
        if not _try_lock_briefly(self._descriptors[-1]):
            raise BlockingIOError(self.last_note)

    def write_note(self, note: str, *, sync: bool = False) -> bool:
        """Replace the note, with ``sync`` durably; False if the disk is full, for instance."""
        file, content = self._descriptors[-1], note.encode()
        try:
            os.lseek(file, 0, os.SEEK_SET)
            # Others may read it at any time, so it is never empty in between.
            os.write(file, content)
            os.ftruncate(file, len(content))
            if sync:
                os.fsync(file)
        except OSError:
            # Half a note would be wrong. A full disk must not prevent locking.
            with suppress(OSError):
                os.ftruncate(file, 0)
            return False
        return True

    def is_current(self) -> bool:
        """Whether what was locked is still what the path names."""
        if not self._descriptors:
            return False
        if self._locks_folder:
            return _is_same_file(self._folder, self._descriptors[0])
        return _is_same_file(self._file, self._descriptors[-1])

    def release(self) -> None:
        """Release the lock."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def is_locked(folder: str | os.PathLike[str], name: str) -> bool:
    """Whether a process holds the :class:`FolderLock` of a folder."""
    return any(_is_locked(path) for path in (folder, Path(folder, name)))


def _is_locked(path: str | os.PathLike[str]) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | _NOFOLLOW)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _try_lock_briefly(descriptor: int) -> bool:
    for _ in range(_ATTEMPTS):
        if _try_lock(descriptor):
            return True
        time.sleep(_ATTEMPT_SECONDS)
    return False


def read_note(file: Path) -> str:
    """The note in the lock file of a folder; empty if there is none or it cannot be read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return ""
    try:
        return os.read(descriptor, 1000).decode(errors="replace").strip()
    except OSError:
        # Windows does not allow reading a locked file.
        return ""
    finally:
        os.close(descriptor)
