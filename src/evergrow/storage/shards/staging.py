"""The last step of writing: files get their names, and what a killed process left is removed."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evergrow.foundation.atomic import written_whole
from evergrow.foundation.errors import ShardError
from evergrow.foundation.locks import lock_path, locked
from evergrow.storage.shards.arrayfiles import ASIDE, write_aside
from evergrow.storage.shards.cutting import Piece
from evergrow.storage.shards.manifest import MANIFEST, ORIGIN_BYTES, Manifest, Shard

__all__ = ["MOST_NUMBERS", "OURS", "FilesAside", "journal", "tidy", "write_files_aside"]

# Names have six digits.
MOST_NUMBERS = 10**6
# What files of shards are called.
OURS = re.compile(r"[0-9]{6}(\.(labels|offsets|origins))?\.npy")

# Names the files that a manifest is about to name. Only these are removed after a crash: a file of
# a user's own may well be called 000001.npy.
_JOURNAL = ".shards.journal"
_MAX_JOURNAL_BYTES = 64 << 20


@dataclass(frozen=True)
class FilesAside:
    """The files of one shard, written under names that nobody looks for: (name, SHA-256) each."""

    n_rows: int
    n_items: int
    features: tuple[str, str]
    labels: tuple[str, str] | None = None
    offsets: tuple[str, str] | None = None
    origins: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        """Refuse names that are not of files aside: they are about to be renamed."""
        for name, _ in self._by_kind().values():
            if not ASIDE.fullmatch(name):
                raise ShardError(f"{name!r:.80} is not the name of a file that was written aside")

    @classmethod
    def of(cls, told: dict[str, Any]) -> FilesAside:
        """What ``dataclasses.asdict`` told of them, also by way of JSON, which has no tuples."""
        files: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in told.items()
        }
        return cls(**files)

    def _by_kind(self) -> dict[str, tuple[str, str]]:
        kinds = {"labels": self.labels, "offsets": self.offsets, "origins": self.origins}
        return {"": self.features} | {kind: at for kind, at in kinds.items() if at is not None}

    def as_shard(self, number: int) -> Shard:
        """What the manifest will say of them."""
        beside = {kind: sha256 for kind, (_, sha256) in self._by_kind().items() if kind}
        return Shard(number, self.n_rows, self.features[1], self.n_items, **beside)

    def take_places(self, folder: Path, shard: Shard) -> None:
        """Give the files their names."""
        for kind, (name, _) in self._by_kind().items():
            os.replace(folder / name, folder / (shard.name_beside(kind) if kind else shard.name))


def write_files_aside(folder: Path, dtype: np.dtype[Any], pieces: Sequence[Piece]) -> FilesAside:
    """Write the files of one shard under names of their own; they are on disk when it returns."""
    n_rows = sum(len(piece.rows) for piece in pieces)
    n_items = sum(piece.n_items for piece in pieces)
    written: list[Path] = []

    def write(kind: Any, shape: tuple[int, ...], parts: list[Any]) -> tuple[str, str]:
        path, sha256 = write_aside(folder, np.dtype(kind), shape, parts)
        written.append(path)
        return path.name, sha256

    try:
        rows = [piece.rows for piece in pieces]
        found = {"features": write(dtype, (n_rows, rows[0].shape[1]), rows)}
        if any(piece.codes is not None for piece in pieces):
            codes = [piece.filled_codes for piece in pieces]
            found["labels"] = write("<i4", (n_items,), codes)
        if pieces[0].offsets is not None:
            lengths = [np.diff(p.offsets) for p in pieces if p.offsets is not None]
            offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
            found["offsets"] = write("<i8", (n_items + 1,), [offsets])
        origins = [piece.origins for piece in pieces if piece.origins is not None]
        if len(origins) == len(pieces):
            found["origins"] = write("u1", (n_items, ORIGIN_BYTES), origins)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return FilesAside(n_rows, n_items, **found)


@contextmanager
def journal(folder: Path, names: list[str]) -> Iterator[None]:
    """Note names of files before they are given, until a manifest names them."""
    # What another left there is still to be removed.
    left = [name for name in _journalled(folder) if name not in names]
    with written_whole(folder / _JOURNAL) as file:
        file.write(json.dumps([*left, *names]).encode())
    # Left where it is if the block fails: it says what to remove.
    yield
    if left:
        _remove_unnamed(folder)
    (folder / _JOURNAL).unlink(missing_ok=True)


def tidy(folder: Path) -> None:
    """Remove what a killed process left: files aside, and named ones that no manifest lists.

    Whoever calls it holds the lock of the folder.
    """
    try:
        _remove_unnamed(folder)
    except ShardError:
        # Nobody knows what a damaged manifest needs: the journal waits for one that is whole.
        return
    for name in os.listdir(folder):
        if ASIDE.fullmatch(name):
            (folder / name).unlink(missing_ok=True)


def _remove_unnamed(folder: Path) -> None:
    """Remove the files that are noted in the journal and not named by the manifest on disk.

    An interruption may come at any moment, so what a writer believes to have written says nothing.
    """
    names = _journalled(folder)
    if names:
        manifest = Manifest.found_in(folder)
        listed = set() if manifest is None else {n for s in manifest.shards for n in s.names}
        for name in names:
            if name not in listed:
                (folder / name).unlink(missing_ok=True)
    (folder / _JOURNAL).unlink(missing_ok=True)


def _journalled(folder: Path) -> list[str]:
    path = folder / _JOURNAL
    if not path.is_file() or path.stat().st_size > _MAX_JOURNAL_BYTES:
        return []
    try:
        names = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return []
    if not isinstance(names, list):
        return []
    return [name for name in names if isinstance(name, str) and OURS.fullmatch(name)]


class _Held(threading.local):
    """The folders that this thread is appending to."""

    def __init__(self) -> None:
        self.folders: set[Path] = set()


_HELD = _Held()


@contextmanager
def own_turn(folder: Path, say_waiting: Callable[[], None] | None) -> Iterator[None]:
    """Wait until nobody else appends to a folder, and keep others waiting meanwhile.

    ``say_waiting`` is called before waiting. A ``ShardError`` if this very thread is appending to
    the folder: it would wait for itself.
    """
    lock = lock_path(folder / MANIFEST)
    if lock in _HELD.folders:
        raise ShardError(
            f"{str(folder)!r} is being appended to already, and what makes the batches tries to do "
            "the same: append one after the other, or to another folder"
        )
    with locked(folder / MANIFEST, say_waiting or (lambda: None)):
        _HELD.folders.add(lock)
        try:
            yield
        finally:
            _HELD.folders.discard(lock)
