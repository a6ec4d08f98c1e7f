"""Files are replaced completely or not at all, and only regular ones are opened.

A full disk is named, and a pipe or device at a path from outside must not block the reader.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from evergrow.foundation.errors import DiskFullError, InvalidInputError

_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces the target when the block ends without an error.

    The content goes to a temporary file in the same folder, is synced to disk and renamed. If
    anything fails, the temporary file is removed and the target stays as it was. A full disk is a
    ``DiskFullError`` that names the target.

    A link stays a link, and the file it points to is replaced, with the permissions that it had. A
    ``private`` file can be read by its owner only, and replaces a link.
    """
    target = Path(path) if private else Path(os.path.realpath(path))
    if private and target.is_symlink():
        target.unlink()
    if target.is_dir():
        raise IsADirectoryError(f"cannot save to {str(path)!r}: it is a directory, name a file")
    if target.exists() and not target.is_file():
        raise OSError(f"cannot save to {str(path)!r}: it is not a regular file")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {str(path)!r}: the folder {str(target.parent)!r} does not exist"
        )
    temporary = target.with_name(f".evergrow-{secrets.token_hex(8)}.tmp")
    with name_full_disk(target):
        try:
            with _open_temporary(temporary, str(path), private=private) as file:
                if target.exists() and not private:
                    os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder to fill, which gets its name when the block ends without an error.

    The target must be new or an empty folder. If anything fails, nothing of the new folder remains.
    """
    target = Path(path)
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInputError(f"{str(target)!r} is not empty: choose a new folder")
    temporary = target.with_name(f".evergrow-{secrets.token_hex(8)}.tmp")
    with name_full_disk(target):
        try:
            temporary.mkdir(parents=True)
            yield temporary
            if target.is_dir():
                target.rmdir()
            temporary.rename(target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _open_temporary(temporary: Path, target: str, *, private: bool) -> BinaryIO:
    """Create the temporary file; an error names the target, which the caller knows."""
    try:
        return open(temporary, "xb", opener=_open_private if private else None)
    except PermissionError as error:
        raise PermissionError(
            f"cannot write {target!r}: permission to create files in its folder is missing"
        ) from error


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def name_full_disk(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise a ``DiskFullError`` that names the file, where the system only says "no space"."""
    try:
        yield
    except DiskFullError:
        # The file that was written inside of the block is on another disk perhaps.
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(path) from error
        raise


def disk_full(path: str | os.PathLike[str]) -> DiskFullError:
    """The error for a file or folder whose disk is full."""
    place = Path(os.path.abspath(path))
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return DiskFullError(str(path), str(place))


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that renames in it survive a power failure."""
    # Windows cannot open folders.
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: str | os.PathLike[str], *, follow_links: bool = True) -> BufferedReader:
    """Open a regular file to read; an ``InvalidInputError`` for a folder, pipe or device."""
    # Windows cannot open a folder, so this is checked first.
    if os.path.isdir(path):
        raise InvalidInputError("it is a directory, name a file")
    flags = os.O_RDONLY if follow_links else os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    for name in ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC"):
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidInputError("it is not a regular file")
    return os.fdopen(descriptor, "rb")
