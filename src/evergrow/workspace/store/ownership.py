"""The right of one process to write to a workspace: the lock, and proof of it before each write.

The folder itself is locked. A lock alone does not say that the folder is still at its path: it may
have been moved, or another put in its place. Then this process would commit to the database that it
has open and write files into the folder of another. So folder and database files are compared with
those that were opened, before and after each write.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evergrow.foundation.errors import WorkspaceError, WorkspaceWarning, warn_user
from evergrow.foundation.locks import FolderLock, is_locked, read_note
from evergrow.workspace.records import WorkspaceLockedError, WorkspaceLostError
from evergrow.workspace.store.event_log import format_time, now
from evergrow.workspace.store.header import DatabaseHeader, log_files
from evergrow.workspace.store.layout import Layout

# Device and inode of a file.
_Identity = tuple[int, int]

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NOTE = re.compile(
    r"folder (\d+) database (\d+)(?: generations((?: [0-9a-f]{8})+))?$", re.MULTILINE
)
# More are not noted, which takes many crashes in a row: then any generation is accepted.
_MOST_GENERATIONS = 40
# A writer may change header and note between the looks of a reader.
_LOOKS, _LOOK_SECONDS = 5, 0.02


class ReplacedDatabaseError(WorkspaceError):
    """The database is not the file that was written to last."""


@dataclass(frozen=True)
class _Note:
    """What the lock file says about the database that was written to last.

    Each writer changes the generation, a random number in the header of the database. The header on
    disk has one of those noted here, however the writer was stopped.
    """

    folder: int
    database: int
    generations: frozenset[int] = frozenset()

    def __str__(self) -> str:
        known = sorted(self.generations)
        numbers = "".join(f" {number:08x}" for number in known)
        text = f"folder {self.folder} database {self.database}"
        return f"{text} generations{numbers}" if 0 < len(known) <= _MOST_GENERATIONS else text


def _parse_note(text: str) -> _Note | None:
    found = _NOTE.search(text)
    if found is None:
        return None
    numbers = (found[3] or "").split()
    return _Note(int(found[1]), int(found[2]), frozenset(int(number, 16) for number in numbers))


class Ownership:
    """Holds the lock of a workspace until it is released."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        _restrict(layout.folder)
        self._since = f"process {os.getpid()} since {format_time(now())}"
        try:
            self._lock = FolderLock(layout.folder, layout.lock.name)
        except BlockingIOError as error:
            who = str(error).partition("\n")[0]
            raise WorkspaceLockedError(
                f"the workspace {str(layout.folder)!r} is in use{f' by {who}' if who else ''}: "
                "use its service, or stop that process first"
            ) from error
        # Replaced as a whole, because other threads read it meanwhile.
        self._files: dict[Path, _Identity] = {}
        # Which database was written to last.
        self._note = _parse_note(self._lock.last_note)
        self._new_generation = secrets.randbits(31)
        self._write_note()

    def _write_note(self, *, sync: bool = False) -> bool:
        return self._lock.write_note(
            f"{self._since}\n{'' if self._note is None else self._note}\n", sync=sync
        )

    def require_same_database(self, header: DatabaseHeader) -> None:
        """Refuse a database that was put in the place of the one that was written to last."""
        if _is_replaced(self._layout, header, self._note):
            raise _replaced(self._layout)

    def accept_database(self, header: DatabaseHeader) -> None:
        """Accept a database that was put in place of another, without the log of the other."""
        if _is_replaced(self._layout, header, self._note):
            log, index = log_files(self._layout.database)
            with suppress(FileNotFoundError):
                os.replace(log, log.with_name(f"{log.name}.unmatched"))
            index.unlink(missing_ok=True)
            self._note = None

    def watch_database(self, header: DatabaseHeader) -> None:
        """From now on, prove that the database is the file that is there now."""
        self._watch(self._layout.database)
        folder = os.stat(self._layout.folder).st_ino
        # A copied folder brings the note of another.
        known = self._note is not None and self._note.folder == folder
        generations = self._note.generations if self._note and known else frozenset()
        self._note = _Note(folder, header.inode, generations)
        self._write_note()

    def announce_generation(self, header: DatabaseHeader, current: int) -> int | None:
        """The generation that this writer may give the database, instead of the current one.

        Until :meth:`confirm_generation` the file may have any of them: parts of the log are copied
        to it at any time. None if they cannot be noted; then the generation must stay.
        """
        if self._note is None:
            return None
        found = {current & 0xFFFFFFFF, self._new_generation}
        on_disk = header.generation()
        if on_disk is not None:
            found.add(on_disk)
        self._note = _Note(
            self._note.folder, self._note.database, self._note.generations | frozenset(found)
        )
        # On disk before the transaction is: after a power failure the note must not be older.
        return self._new_generation if self._write_note(sync=True) else None

    def confirm_generation(self, header: DatabaseHeader) -> None:
        """The whole log is in the file: forget all generations but the one it has."""
        found = header.generation()
        if self._note is not None and found == self._new_generation:
            self._note = _Note(self._note.folder, self._note.database, frozenset({found}))
            self._write_note()

    def watch_log(self) -> None:
        """The same for the write-ahead log, which SQLite has opened, and its index."""
        for path in log_files(self._layout.database):
            self._watch(path)

    def _watch(self, path: Path) -> None:
        identity = _identity(path)
        if identity is not None:
            self._files = {**self._files, path: identity}

    def prove(self) -> None:
        """Raise a ``WorkspaceLostError`` unless the files at the path are those that are open."""
        if not self._lock.is_current():
            raise _lost(self._layout, "the folder was moved, removed or replaced while it was open")
        for path, identity in self._files.items():
            if _identity(path) != identity:
                raise _lost(
                    self._layout,
                    f"its file {path.name} was moved, removed or replaced while it was open",
                )
        if _n_names(self._layout.database) > 1:
            # SQLite locks by the name of the log: through two names two processes would write.
            raise WorkspaceLostError(
                f"the workspace {str(self._layout.folder)!r} cannot be written to: its database "
                f"{self._layout.database.name} has a second name, by a hard link. Nothing was "
                "changed: remove the other name, or copy the folder and use the copy"
            )

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()


def is_written_to(layout: Layout) -> bool:
    """Whether a process has the workspace open for writing right now."""
    return is_locked(layout.folder, layout.lock.name)


def taken_over(layout: Layout) -> WorkspaceLostError:
    """The error of a process that was replaced as the owner of a database."""
    return _lost(layout, "another process has opened it for writing since")


def _lost(layout: Layout, why: str) -> WorkspaceLostError:
    return WorkspaceLostError(
        f"the workspace {str(layout.folder)!r} cannot be written to: {why}. Nothing was changed, "
        "and all earlier changes are in the files that were opened: stop this process and start "
        "it again on the right folder"
    )


def _identity(path: Path) -> _Identity | None:
    """Device and inode of a file; None if it is missing or not reachable any more."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _n_names(path: Path) -> int:
    try:
        return os.stat(path).st_nlink
    except OSError:
        # Moved this very moment, which the next comparison notices.
        return 0


def require_same_database(layout: Layout, header: DatabaseHeader) -> None:
    """The same as the method of the owner, for a process that only reads."""
    for _ in range(_LOOKS):
        if not _is_replaced(layout, header, _parse_note(read_note(layout.lock))):
            return
        time.sleep(_LOOK_SECONDS)
    raise _replaced(layout)


def _is_replaced(layout: Layout, header: DatabaseHeader, note: _Note | None) -> bool:
    """Whether the database is another file or has other content than what was written last.

    The content matters only with a log: it belongs to the other file, and SQLite would mix them.
    Without one, a database with other content is a workspace of its own.
    """
    has_log = header.has_log()
    if has_log and not header.uses_log():
        # Such as a file of a backup: SQLite switches a file to a log before it writes the log.
        return True
    # A folder that was copied or restored as a whole has an inode of its own.
    if note is None or note.folder != os.stat(layout.folder).st_ino:
        return False
    if note.database != header.inode:
        return True
    return has_log and bool(note.generations) and header.generation() not in note.generations


def _replaced(layout: Layout) -> ReplacedDatabaseError:
    return ReplacedDatabaseError(
        f"{str(layout.database)!r} is not the file that was last written to, or has other content; "
        "the write-ahead log and the embeddings belong to that one: put it back, or restore a "
        "whole backup; 'evergrow check --mend' accepts the database as it is, without that log"
    )


def _restrict(folder: Path) -> None:
    """Let only the owner into the folder; a warning if that cannot be changed."""
    if sys.platform == "win32":
        return
    with suppress(FileNotFoundError):
        found = folder.stat()
        mode = stat.S_IMODE(found.st_mode)
        if not mode & _OTHERS:
            return
        try:
            os.chmod(folder, mode & ~_OTHERS)
            why = "the file system ignores a change of its mode"
        except FileNotFoundError:
            raise
        except OSError as error:
            why = f"its mode cannot be changed ({error.strerror or error})"
        # Some file systems without modes report success.
        if not stat.S_IMODE(folder.stat().st_mode) & _OTHERS:
            return
        remedy = (
            "its owner should restrict it with 'chmod 700'"
            if found.st_uid != os.geteuid()
            else "restrict it by the options of the mount, or use a file system with modes"
        )
        warn_user(
            f"other users can read the workspace {str(folder)!r}, and {why}: {remedy}",
            WorkspaceWarning,
        )
