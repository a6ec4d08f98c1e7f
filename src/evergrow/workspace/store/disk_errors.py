"""Translates errors of the disk and of SQLite into errors of the workspace."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.errors import WorkspaceFullError

_FULL = {errno.ENOSPC, errno.EDQUOT}
# SQLite does not always report a full disk as such. With less free space than this, its I/O errors
# are reported as a full disk.
_LITTLE_SPACE = 1 << 20
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@contextmanager
def translate_disk_errors(folder: Path) -> Iterator[None]:
    """Raise a ``WorkspaceFullError`` for a full disk and a ``WorkspaceError`` for SQLite errors."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _full(folder) from error
        raise
    except sqlite3.Error as error:
        # The low byte is the kind of the error, the rest its detail.
        kind = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
        if kind == sqlite3.SQLITE_FULL or (
            kind in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_nearly_full(folder)
        ):
            raise _full(folder) from error
        if kind in _DAMAGED or isinstance(error, sqlite3.DataError):
            raise WorkspaceError(
                f"the database of the workspace {str(folder)!r} is damaged ({error}): "
                "stop everything that uses it and restore a backup; "
                "'evergrow check' lists what else is wrong"
            ) from error
        raise WorkspaceError(
            f"the database of the workspace {str(folder)!r} cannot be used: {error}"
        ) from error


def _is_nearly_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _LITTLE_SPACE
    except OSError:
        return False


def _full(folder: Path) -> WorkspaceFullError:
    return WorkspaceFullError(
        f"the disk of {str(folder)!r} is full: nothing was changed; free some space and try again"
    )
