"""The SQLite database: one connection writes, others read; errors of the disk are translated."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.records import WorkspaceFullError

_FULL = {errno.ENOSPC, errno.EDQUOT}
# SQLite does not always report a full disk as such. With less free space than this, its I/O errors
# are reported as a full disk.
_LITTLE_SPACE = 1 << 20
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# A reader only ever waits for a writer that recovers the log or closes; neither takes long.
_BUSY_TIMEOUT_SECONDS = 10.0

_LOG_BYTES = 16 << 20

_READ_ONLY = "mode=ro"
# Needs no permission to write next to the database; safe only while nothing writes to it.
_IMMUTABLE = "mode=ro&immutable=1"


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


class Database:
    """Connections to the database of a workspace; one of them writes, unless it is read-only."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self._path = path
        self._folder = path.parent
        self._idle: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._closed = False
        self.read_only = read_only
        if not path.is_file():
            raise WorkspaceError(
                f"the workspace {str(self._folder)!r} has no {path.name}: restore a backup"
            )
        with translate_disk_errors(self._folder):
            self._read_mode = self._find_read_mode() if read_only else _READ_ONLY
            self._writer = None if read_only else self._connect_writer()

    @property
    def writer(self) -> sqlite3.Connection:
        """The writing connection; only for the holder of the workspace's write lock."""
        if self._writer is None:
            reason = "closed" if self._closed else "open for reading only"
            raise WorkspaceError(f"the workspace {str(self._folder)!r} is {reason}")
        return self._writer

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: on disk when the block ends, rolled back if it fails."""
        connection = self.writer
        with translate_disk_errors(self._folder):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Some errors have ended the transaction already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one committed state, whatever is written meanwhile."""
        with translate_disk_errors(self._folder):
            connection = self._take()
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)

    def close(self) -> None:
        """Close all connections; everything committed is in the database file then."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _take(self) -> sqlite3.Connection:
        with self._guard:
            if self._closed:
                raise WorkspaceError(f"the workspace {str(self._folder)!r} is closed")
            if self._idle:
                return self._idle.pop()
        return self._connect(self._read_mode)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _find_read_mode(self) -> str:
        """How to open a database in a folder that may not be writable."""
        log = self._path.with_name(f"{self._path.name}-wal")
        try:
            with closing(self._connect(_READ_ONLY)) as connection:
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            kind = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
            if kind in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) and not log.exists():
                return _IMMUTABLE
            raise
        return _READ_ONLY

    def _connect(self, mode: str) -> sqlite3.Connection:
        # A connection may pass from thread to thread; it is never used by two at once.
        return sqlite3.connect(
            f"file:{quote(str(self._path.absolute()))}?{mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=_BUSY_TIMEOUT_SECONDS,
        )

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect("mode=rw")
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            connection.execute("PRAGMA synchronous = FULL")
            # Truncates a log that one large change made long.
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        except BaseException:
            connection.close()
            raise
        if mode != "wal":
            connection.close()
            raise WorkspaceError(
                f"SQLite cannot use a write-ahead log in the folder {str(self._folder)!r}, as on "
                "some network drives: move the workspace to a local disk"
            )
        return connection
