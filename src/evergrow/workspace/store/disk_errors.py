"""A full disk and a damaged database, told apart from all else that can go wrong."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.errors import WorkspaceFullError

__all__ = ["telling_problems"]

_FULL = {errno.ENOSPC, errno.EDQUOT}
# With less than this left, an error of the disk within the database is taken for a full one: the
# database cannot always tell.
_LITTLE_ROOM = 1 << 20
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@contextmanager
def telling_problems(folder: Path) -> Iterator[None]:
    """Turn errors of the disk and the database into those of the workspace."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _full(folder) from error
        raise
    except sqlite3.Error as error:
        # The low byte is the kind of the error, the rest its detail.
        code = getattr(error, "sqlite_errorcode", 0) or 0
        if code & 0xFF == sqlite3.SQLITE_FULL or (
            code & 0xFF in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
            and _is_nearly_full(folder)
        ):
            raise _full(folder) from error
        if code & 0xFF in _DAMAGED or isinstance(error, sqlite3.DataError):
            raise WorkspaceError(
                f"the database of the workspace {str(folder)!r} is damaged ({error}): "
                "stop everything that uses it and put a backup in its place; "
                "'evergrow check' says what else is wrong"
            ) from error
        raise WorkspaceError(
            f"the database of the workspace {str(folder)!r} cannot be used: {error}"
        ) from error


def _is_nearly_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _LITTLE_ROOM
    except OSError:
        return False


def _full(folder: Path) -> WorkspaceFullError:
    return WorkspaceFullError(
        f"the disk of {str(folder)!r} is full: nothing was changed; make room and try again"
    )
