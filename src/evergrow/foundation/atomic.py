"""Files that are replaced whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["sync_folder", "written_whole"]


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes its place only when all of it is written.

    The content goes to a new file beside the target, is synced to disk and renamed over it; if
    anything fails the new file is removed and the old one stays.
    """
    # A link stays a link: the file it names is the one replaced.
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"cannot save to {str(path)!r}: it is a directory, name a file")
    if target.exists() and not target.is_file():
        raise OSError(f"cannot save to {str(path)!r}: it is not a regular file")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"cannot save to {str(path)!r}: the folder {str(target.parent)!r} does not exist"
        )
    aside = target.with_name(f".evergrow-{secrets.token_hex(8)}.tmp")
    try:
        with open(aside, "xb") as file:
            if target.exists():
                os.chmod(aside, stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that what was renamed in a folder stays so after a power failure."""
    # Windows cannot open folders; there the rename itself is the best there is.
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
