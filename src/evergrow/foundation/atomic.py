"""Atomic writes: a file is replaced completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces the target when the block ends without an error.

    The content goes to a temporary file in the same folder, is synced to disk and renamed. If
    anything fails, the temporary file is removed and the target stays as it was.
    """
    # A link stays a link; the file it points to is replaced.
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"cannot save to {str(path)!r}: it is a directory, name a file")
    if target.exists() and not target.is_file():
        raise OSError(f"cannot save to {str(path)!r}: it is not a regular file")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {str(path)!r}: the folder {str(target.parent)!r} does not exist"
        )
    temporary = target.with_name(f".evergrow-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


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
