"""Embeddings on disk, by the content of images: one SQLite file per network."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import CacheWarning
from evergrow.storage.cache_folder import warn_once

__all__ = ["EmbeddingCache"]

Vector = npt.NDArray[np.float32]

# "Evgr": tells our files from others.
_APPLICATION = 0x45766772
_SCHEMA = 1
# Another process may be writing.
_WAIT_SECONDS = 30.0
_STORED = np.dtype("<f4")


class EmbeddingCache:
    """Vectors of one length, found by the hash of what they were computed from.

    A file that is damaged or not ours is renamed and a new one begun; an entry of the wrong length
    or with values that are not finite counts as absent. Where nothing can be kept the cache is
    empty and a warning says so: work goes on.

    Parameters
    ----------
    path : Path
        The SQLite file.
    n_features : int
        Length of the vectors.
    """

    def __init__(self, path: Path, n_features: int) -> None:
        self.path = path
        self.n_features = n_features
        self._connection: sqlite3.Connection | None = None
        # Threads that decode ask, the one that computes writes.
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Open or begin the file."""
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                try:
                    self._connection = _connect(self.path)
                except sqlite3.OperationalError:
                    raise
                except sqlite3.DatabaseError as error:
                    self._start_again(str(error))
            except (OSError, sqlite3.Error) as error:
                self._give_up(error)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def get(self, key: bytes) -> Vector | None:
        """The vector kept under a key, or None."""
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
        """Keep vectors, all of them or none."""
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
                # Locked for too long, or the disk is full: not the file's fault.
                self._give_up(error)
            except sqlite3.DatabaseError as error:
                try:
                    self._start_again(str(error))
                except (OSError, sqlite3.Error) as second:
                    self._give_up(second)
            return []

    def _start_again(self, reason: str) -> None:
        self._close()
        aside = self.path.with_name(f"{self.path.name}.damaged-{secrets.token_hex(4)}")
        self.path.rename(aside)
        for ending in ("-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        warnings.warn(
            f"the cache {str(self.path)!r} is damaged or not Evergrow's ({reason}): it was renamed "
            f"to {aside.name!r} and embeddings are computed again",
            CacheWarning,
            stacklevel=3,
        )
        self._connection = _connect(self.path)

    def _give_up(self, error: Exception) -> None:
        self._close()
        reason = f"nothing is kept there: {error}"
        warn_once(self.path.parent, f"{reason}; set EVERGROW_CACHE to a folder that can be written")

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


def _connect(path: Path) -> sqlite3.Connection:
    """An open file with our table in it; a ``DatabaseError`` if it is someone else's."""
    connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, check_same_thread=False)
    try:
        # Readers and a writer do not wait for each other. What a crash of the computer could lose
        # is computed again.
        # Two who begin at once may find the file busy; either way of writing is safe.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _claim(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _claim(connection: sqlite3.Connection) -> None:
    # One transaction, so that of several who begin the file one does.
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
