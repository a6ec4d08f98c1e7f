"""The header of the database file, read without SQLite, which would read the write-ahead log too.

When a process closes a file, the system drops all locks that the process has on it, those of SQLite
included. So a file is kept open here for as long as this process uses the database in any way.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

_MAGIC = b"SQLite format 3\0"
_BYTES = 100
# In the header: the mode of the journal, and the number that PRAGMA application_id sets.
_MODE, _GENERATION = 18, slice(68, 72)
_USES_LOG = 2
# A log without any frame has this header only.
_LOG_HEADER_BYTES = 32


@dataclass
class _OpenFile:
    descriptors: list[int] = field(default_factory=list)
    n_users: int = 0


_open_files: dict[tuple[int, int], _OpenFile] = {}
_guard = threading.Lock()


class DatabaseHeader:
    """The header of a database file; to be opened before SQLite opens it, and closed after."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _guard:
            found = os.stat(path)
            if (found.st_dev, found.st_ino) not in _open_files:
                descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
                # The file may have been replaced since.
                found = os.fstat(descriptor)
                entry = _open_files.setdefault((found.st_dev, found.st_ino), _OpenFile())
                entry.descriptors.append(descriptor)
            self._key: tuple[int, int] | None = (found.st_dev, found.st_ino)
            _open_files[self._key].n_users += 1
        self.inode = found.st_ino

    def _read(self) -> bytes:
        if self._key is None:
            return b""
        with _guard:
            descriptor = _open_files[self._key].descriptors[0]
            os.lseek(descriptor, 0, os.SEEK_SET)
            return os.read(descriptor, _BYTES)

    def generation(self) -> int | None:
        """The number that each writer changes, as it is in the file itself; None without one."""
        found = self._read()
        if len(found) < _BYTES or not found.startswith(_MAGIC):
            return None
        return int.from_bytes(found[_GENERATION], "big")

    def uses_log(self) -> bool:
        """Whether the file is one whose changes are in a write-ahead log."""
        found = self._read()
        return found.startswith(_MAGIC) and len(found) == _BYTES and found[_MODE] == _USES_LOG

    def has_log(self) -> bool:
        """Whether there is a write-ahead log with any content at the path of the database."""
        try:
            size = os.stat(log_files(self._path)[0]).st_size
        except FileNotFoundError:
            return False
        return size > _LOG_HEADER_BYTES

    def close(self) -> None:
        """Close the file, unless other connections of this process use it."""
        if self._key is None:
            return
        with _guard:
            entry = _open_files[self._key]
            entry.n_users -= 1
            if entry.n_users == 0:
                del _open_files[self._key]
                for descriptor in entry.descriptors:
                    os.close(descriptor)
        self._key = None


def log_files(database: Path) -> tuple[Path, Path]:
    """What SQLite keeps next to a database while it is open: the log and its index."""
    return database.with_name(f"{database.name}-wal"), database.with_name(f"{database.name}-shm")
