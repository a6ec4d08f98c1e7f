"""The SQLite database: one connection writes, others read; errors of the disk are translated."""

from __future__ import annotations

import errno
import secrets
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from evergrow.foundation.errors import DiskFullError, WorkspaceError
from evergrow.foundation.files import disk_full
from evergrow.workspace.records import WorkspaceFullError, WorkspaceLostError
from evergrow.workspace.store.header import DatabaseHeader
from evergrow.workspace.store.layout import Layout
from evergrow.workspace.store.ownership import Ownership, require_same_database, taken_over
from evergrow.workspace.store.trust import verify_database

_FULL = {errno.ENOSPC, errno.EDQUOT}
# SQLite does not always report a full disk as such. With less free space than this, its I/O errors
# are reported as a full disk.
_LITTLE_SPACE = 1 << 20
_PERHAPS_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# A reader only ever waits for a writer that recovers the log or closes; neither takes long.
_BUSY_TIMEOUT_SECONDS = 10.0

_LOG_BYTES = 16 << 20

_READ_ONLY = "mode=ro"
# Needs no permission to write next to the database; safe only while nothing writes to it.
_IMMUTABLE = "mode=ro&immutable=1"


@contextmanager
def translate_disk_errors(folder: Path) -> Iterator[None]:
    """Raise a ``WorkspaceFullError`` for a full disk and a ``WorkspaceError`` for SQLite errors.

    The message names the file and the disk that are full, as far as they are known; else those of
    the folder.
    """
    try:
        yield
    except DiskFullError as error:
        raise _full(error) from error
    except OSError as error:
        if error.errno in _FULL:
            raise _full(disk_full(error.filename or folder)) from error
        raise
    except sqlite3.Error as error:
        # The low byte is the kind of the error, the rest its detail.
        kind = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
        if kind in _PERHAPS_FULL:
            # SQLite sorts large results in temporary files, which may be on another disk.
            for place in (folder, Path(tempfile.gettempdir())):
                if _is_nearly_full(place):
                    raise _full(disk_full(place)) from error
        if kind == sqlite3.SQLITE_FULL:
            raise _full(disk_full(folder)) from error
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


def _full(error: DiskFullError) -> WorkspaceFullError:
    return WorkspaceFullError(
        f"{error.strerror}: nothing was changed; free some space and try again"
    )


class Database:
    """Connections to the database of a workspace; one of them writes, if it has an owner.

    With ``accept`` the owner takes a database that was put in place of the one written to last.
    """

    def __init__(
        self, layout: Layout, ownership: Ownership | None, *, accept: bool = False
    ) -> None:
        path = layout.database
        self._layout = layout
        self._path = path
        self._folder = path.parent
        self._ownership = ownership
        # Random, and written to the database before the first transaction after :meth:`take_over`.
        self._token: str | None = None
        self._token_written = False
        self._idle: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._closed = False
        self.read_only = ownership is None
        if not path.is_file():
            raise WorkspaceError(
                f"the workspace {str(self._folder)!r} has no {path.name}: restore a backup"
            )
        self._read_mode = _READ_ONLY
        self._writer: sqlite3.Connection | None = None
        self._header = DatabaseHeader(path)
        try:
            with translate_disk_errors(self._folder):
                if ownership is None:
                    require_same_database(layout, self._header)
                    self._read_mode = self._find_read_mode()
                else:
                    self._open_writer(ownership, accept)
        except BaseException:
            self.close()
            raise

    def _open_writer(self, ownership: Ownership, accept: bool) -> None:
        # Before SQLite opens it, which reads the log too.
        if accept:
            ownership.accept_database(self._header)
        else:
            ownership.require_same_database(self._header)
        # Should it be replaced right now, no write follows.
        ownership.watch_database(self._header)
        self._writer = self._connect_writer()
        ownership.watch_log()

    @property
    def writer(self) -> sqlite3.Connection:
        """The writing connection; only for the holder of the workspace's write lock."""
        if self._writer is None:
            reason = "closed" if self._closed else "open for reading only"
            raise WorkspaceError(f"the workspace {str(self._folder)!r} is {reason}")
        return self._writer

    def verify(self) -> None:
        """Raise a ``WorkspaceError`` if the database is damaged or has tables of others."""
        with self.read_transaction() as connection:
            verify_database(connection, self._path)

    def take_over(self) -> None:
        """Become the only writer: after its next transaction those of any earlier one fail."""
        self._token = secrets.token_hex(16)

    def drop_log(self) -> None:
        """Empty the write-ahead log, which still holds what was erased.

        While a reader needs the log this is not possible; later changes overwrite it then.
        """
        with suppress(sqlite3.Error):
            self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def prove(self) -> None:
        """Raise a ``WorkspaceLostError`` if this process may not write to the folder any more."""
        if self._ownership is not None:
            self._ownership.prove()

    def _prove_token(self, connection: sqlite3.Connection) -> None:
        """Compare the token in the database with that of this process."""
        if self._token is None:
            return
        if connection.execute("SELECT token FROM writer").fetchall() != [(self._token,)]:
            raise taken_over(self._layout)

    def _write_token(self, connection: sqlite3.Connection) -> None:
        """Write the token of this process, in a transaction of its own.

        The generation changes with it: the file then differs from all copies that were made before,
        and none of them is taken for it after a crash.
        """
        connection.execute("DELETE FROM writer")
        connection.execute("INSERT INTO writer (token) VALUES (?)", (self._token,))
        if self._ownership is None:
            return
        (current,) = connection.execute("PRAGMA application_id").fetchone()
        generation = self._ownership.announce_generation(self._header, current)
        if generation is not None:
            connection.execute(f"PRAGMA application_id = {generation}")

    def _confirm_generation(self, connection: sqlite3.Connection) -> None:
        """Copy the log to the file, which has the new generation then."""
        # On a full disk the log stays as it is, and both generations are accepted.
        with suppress(sqlite3.Error):
            busy, n_frames, n_copied = connection.execute(
                "PRAGMA wal_checkpoint(PASSIVE)"
            ).fetchone()
            if self._ownership is not None and not busy and n_frames == n_copied:
                self._ownership.confirm_generation(self._header)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: on disk when the block ends, rolled back if it fails.

        A ``WorkspaceLostError`` if this process is not the writer, or not any more at the end.
        """
        connection = self.writer
        with translate_disk_errors(self._folder):
            if self._token is not None and not self._token_written:
                with self._proven_transaction(connection):
                    self._write_token(connection)
                self._token_written = True
                self._confirm_generation(connection)
            with self._proven_transaction(connection):
                self._prove_token(connection)
                yield connection

    @contextmanager
    def _proven_transaction(self, connection: sqlite3.Connection) -> Iterator[None]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            self.prove()
            yield
            # Files that were written meanwhile must be in the same folder.
            self.prove()
            connection.execute("COMMIT")
        except BaseException as error:
            # Some errors have ended the transaction already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, WorkspaceLostError):
                # If the log was removed, what is in it can still be written to the database.
                with suppress(sqlite3.Error):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
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
            # SQLite deletes the log here, but not if the database was moved or replaced: the log
            # at the path may be that of another.
            self._writer.close()
            self._writer = None
        # Closing the file drops the locks that SQLite has on it.
        self._header.close()

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
        connection = sqlite3.connect(
            f"file:{quote(str(self._path.absolute()))}?{mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=_BUSY_TIMEOUT_SECONDS,
        )
        try:
            # The file may come from a stranger.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect("mode=rw")
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            connection.execute("PRAGMA synchronous = FULL")
            # What is deleted is overwritten with zeros: an erasure leaves nothing behind.
            connection.execute("PRAGMA secure_delete = ON")
            # Truncates a log that one large change made long.
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
            # Reading opens the log.
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
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
