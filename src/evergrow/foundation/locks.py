"""A lock beside a file: processes that change it take turns."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["HeldLock", "is_held", "lock_path", "locked"]

# Between two looks where the system cannot wait for a lock by itself.
_PAUSE_SECONDS = 0.1

if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait(descriptor: int) -> None:
        while not _try(descriptor):
            time.sleep(_PAUSE_SECONDS)

else:
    import fcntl

    def _try(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def lock_path(path: str | os.PathLike[str]) -> Path:
    """The file whose lock stands for a model file."""
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name}.lock")


@contextmanager
def locked(path: str | os.PathLike[str], say_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a model file; ``say_waiting`` is called if another process has it.

    The lock belongs to the process and ends with it, however it ends.
    """
    file = lock_path(path)
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _try(descriptor):
                say_waiting()
                _wait(descriptor)
            # The one before may have removed the file: then others lock a newer one.
            if _is_still(file, descriptor):
                yield from _held(file, descriptor)
                return
        finally:
            os.close(descriptor)


def _held(file: Path, descriptor: int) -> Iterator[None]:
    # Only whoever has the lock removes the file: one that was interrupted while it waited would
    # take it from under another.
    try:
        yield
    finally:
        if _is_still(file, descriptor):
            _remove(file)


def _is_still(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(file), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except PermissionError:
        # Windows keeps files that are open; an empty file stays behind.
        return


class HeldLock:
    """A lock that one process holds for as long as it likes, and that others do not wait for.

    Parameters
    ----------
    file : path
        The file whose lock it is; made if missing, and left where it is.
    note : str
        Written into it, for others to read who holds it.

    Raises
    ------
    BlockingIOError
        If another holds it; the error's text is that one's note.
    """

    def __init__(self, file: str | os.PathLike[str], note: str = "") -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        if not _try(self._descriptor):
            found = _noted(self._descriptor)
            os.close(self._descriptor)
            raise BlockingIOError(found)
        try:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, note.encode())
        except OSError:
            # The note only helps people; a full disk must not keep anyone out.
            return

    def release(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)


def is_held(file: str | os.PathLike[str]) -> bool:
    """Whether someone holds the lock of a file right now, through :class:`HeldLock`."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _try(descriptor)
    finally:
        os.close(descriptor)


def _noted(descriptor: int) -> str:
    try:
        return os.read(descriptor, 1000).decode(errors="replace").strip()
    except OSError:
        # Windows lets nobody read what is locked.
        return ""
