"""Opens regular files only: a pipe or device at a path from outside must not block the reader."""

from __future__ import annotations

import os
import stat
from io import BufferedReader

from evergrow.foundation.errors import InvalidInputError


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
