"""Cache of embeddings on disk, by image content: one SQLite file per network."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import CacheWarning
from evergrow.storage.cache_folder import warn_once

Vector = npt.NDArray[np.float32]

# "Evgr": identifies our files.
_APPLICATION = 0x45766772
_SCHEMA = 1
# Another process may hold the write lock.
_TIMEOUT_SECONDS = 30.0
_STORED = np.dtype("<f4")


class EmbeddingCache:
    """Vectors of one length, by the hash of the image content.

    A damaged file, or one of another application, is renamed and a new one is created. An entry of
    the wrong length or with values that are not finite counts as missing. If the file cannot be
    written, the cache is empty and a warning says so; the caller continues without it.
    """

    def __init__(self, path: Path, n_features: int) -> None:
        self.path = path
        self.n_features = n_features
        self._connection: sqlite3.Connection | None = None
        # Several threads look up vectors, one writes.
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Open or create the file."""
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    self._connection = _connect(self.path)
                except sqlite3.OperationalError:
                    raise
                except sqlite3.DatabaseError as error:
                    self._replace_file(str(error))
            except (OSError, sqlite3.Error) as error:
                self._disable(error)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def get(self, key: bytes) -> Vector | None:
        """Look up a vector; None if it is missing."""
        rows = self._run("SELECT vector FROM embeddings WHERE key = ?", [(key,)])
        if not rows:
            return None
        content = rows[0][0]
        if isinstance(content, bytes) and len(content) == self.n_features * _STORED.itemsize:
            vector = np.frombuffer(content, dtype=_STORED).astype(np.float32)
            if np.isfinite(vector).all():
                return vector
        warn_once(self.path, "it has damaged entries, which are computed again")
        return None

    def put(self, keys: Sequence[bytes], vectors: Vector) -> None:
        """Store vectors, all of them or none."""
        rows = [
            (key, np.ascontiguousarray(vector, dtype=_STORED).tobytes())
            for key, vector in zip(keys, vectors, strict=True)
        ]
        self._run("INSERT OR REPLACE INTO embeddings (key, vector) VALUES (?, ?)", rows)

    def _run(self, statement: str, rows: Sequence[tuple[bytes, ...]]) -> list[tuple[object, ...]]:
        with self._lock:
            if self._connection is None or not rows:
                return []
            try:
                if statement.startswith("SELECT"):
                    return self._connection.execute(statement, rows[0]).fetchall()
                with self._connection:
                    self._connection.executemany(statement, rows)
            except sqlite3.OperationalError as error:
                # Locked for too long, or the disk is full: the file itself is intact.
                self._disable(error)
            except sqlite3.DatabaseError as error:
                try:
                    self._replace_file(str(error))
                except (OSError, sqlite3.Error) as second:
                    self._disable(second)
            return []

    def _replace_file(self, reason: str) -> None:
        self._close()
        damaged = self.path.with_name(f"{self.path.name}.damaged-{secrets.token_hex(4)}")
        self.path.rename(damaged)
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        warnings.warn(
            f"the cache {str(self.path)!r} is damaged or not Evergrow's ({reason}): it was renamed "
            f"to {damaged.name!r} and embeddings are computed again",
            CacheWarning,
            stacklevel=3,
        )
        self._connection = _connect(self.path)

    def _disable(self, error: Exception) -> None:
        self._close()
        advice = "set EVERGROW_CACHE to a folder that can be written"
        warn_once(self.path.parent, f"nothing is cached there: {error}; {advice}")

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file and create our table; a ``DatabaseError`` if it is another application's."""
    connection = sqlite3.connect(path, timeout=_TIMEOUT_SECONDS, check_same_thread=False)
    try:
        # With a write-ahead log, readers and a writer do not block each other. Entries that a power
        # failure loses are computed again. If two processes create the file at once, setting the
        # mode may fail; either mode is safe.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _create_table(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_table(connection: sqlite3.Connection) -> None:
    # One transaction, so that only one of several processes creates the table.
    connection.execute("BEGIN IMMEDIATE")
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    schema = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema")]
    if not tables and (owner, schema) == (0, 0):
        connection.execute("CREATE TABLE embeddings (key BLOB PRIMARY KEY, vector BLOB)")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_SCHEMA}")
    elif (owner, schema) != (_APPLICATION, _SCHEMA) or "embeddings" not in tables:
        raise sqlite3.DatabaseError("it is not a cache of embeddings")
    connection.execute("COMMIT")
