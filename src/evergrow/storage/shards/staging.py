"""Staged files: how new shards become visible at once, and how a crash is cleaned up.

New files are written under temporary names. A journal lists the final names before the files are
renamed and the manifest is replaced; after a crash, journalled files that no manifest lists are
removed.
"""

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

from evergrow.foundation.errors import ShardError
from evergrow.foundation.files import atomic_write
from evergrow.foundation.locks import lock_or_wait, lock_path
from evergrow.storage.shards.array_files import TEMPORARY_NAME, write_temporary
from evergrow.storage.shards.batches import RowBatch
from evergrow.storage.shards.manifest import MANIFEST, ORIGIN_BYTES, Manifest, Shard

# File names have six digits.
MAX_FILES = 10**6
# The names of shard files.
SHARD_FILE_NAME = re.compile(r"[0-9]{6}(\.(labels|offsets|origins))?\.npy")

# Lists the files that the next manifest will list. Only these are removed after a crash: a user's
# own file may have the name 000001.npy.
_JOURNAL = ".shards.journal"
_MAX_JOURNAL_BYTES = 64 << 20


@dataclass(frozen=True)
class StagedFiles:
    """The files of one shard under temporary names: (name, SHA-256) each, by kind.

    The kind of the features is empty.
    """

    n_rows: int
    n_items: int
    files: dict[str, tuple[str, str]]

    def __post_init__(self) -> None:
        """Reject names that are not temporary names: the files will be renamed."""
        for name, _ in self.files.values():
            if not TEMPORARY_NAME.fullmatch(name):
                raise ShardError(f"{name!r:.80} is not the name of a temporary file")

    def as_shard(self, number: int) -> Shard:
        """Return their entry in the manifest."""
        hashes = {kind: sha256 for kind, (_, sha256) in self.files.items()}
        return Shard(number, self.n_rows, hashes.pop(""), self.n_items, **hashes)

    def move_into_place(self, folder: Path, shard: Shard) -> None:
        """Rename the files to their final names."""
        for kind, (name, _) in self.files.items():
            os.replace(folder / name, folder / (shard.sidecar_name(kind) if kind else shard.name))


def stage_files(folder: Path, dtype: np.dtype[Any], pieces: Sequence[RowBatch]) -> StagedFiles:
    """Write the files of one shard under temporary names, synced to disk."""
    n_rows = sum(len(piece.rows) for piece in pieces)
    n_items = sum(piece.n_items for piece in pieces)
    written: list[Path] = []

    def write(kind: Any, shape: tuple[int, ...], parts: list[Any]) -> tuple[str, str]:
        path, sha256 = write_temporary(folder, np.dtype(kind), shape, parts)
        written.append(path)
        return path.name, sha256

    try:
        rows = [piece.rows for piece in pieces]
        found = {"": write(dtype, (n_rows, rows[0].shape[1]), rows)}
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
    return StagedFiles(n_rows, n_items, found)


@contextmanager
def journal(folder: Path, names: list[str]) -> Iterator[None]:
    """Record final names before files are renamed, until the manifest lists them."""
    # Leftovers of another process still have to be removed.
    left = [name for name in _journalled(folder) if name not in names]
    with atomic_write(folder / _JOURNAL) as file:
        file.write(json.dumps([*left, *names]).encode())
    # If the block fails, the journal stays and says what to remove.
    yield
    if left:
        _remove_unlisted(folder)
    (folder / _JOURNAL).unlink(missing_ok=True)


def clean_up(folder: Path) -> None:
    """Remove leftovers of a killed process: temporary files, and journalled unlisted ones.

    The caller holds the lock of the folder.
    """
    try:
        _remove_unlisted(folder)
    except ShardError:
        # With a damaged manifest nothing is known to be unused; the journal stays.
        return
    for name in os.listdir(folder):
        if TEMPORARY_NAME.fullmatch(name):
            (folder / name).unlink(missing_ok=True)


def _remove_unlisted(folder: Path) -> None:
    """Remove journalled files that the manifest on disk does not list.

    An interruption may come at any moment, so only the manifest on disk counts.
    """
    names = _journalled(folder)
    if names:
        manifest = Manifest.read_if_present(folder)
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
    return [name for name in names if isinstance(name, str) and SHARD_FILE_NAME.fullmatch(name)]


class _Held(threading.local):
    """The folders that this thread appends to."""

    def __init__(self) -> None:
        self.folders: set[Path] = set()


_HELD = _Held()


@contextmanager
def append_lock(folder: Path, on_wait: Callable[[], None] | None) -> Iterator[None]:
    """Hold the lock for appending to a folder; ``on_wait`` is called before waiting.

    Raises a ``ShardError`` if this thread already holds it, because it would wait for itself.
    """
    lock = lock_path(folder / MANIFEST)
    if lock in _HELD.folders:
        raise ShardError(
            f"{str(folder)!r} is already being appended to by this thread, and its batches try to "
            "do the same: append one after the other, or to another folder"
        )
    with lock_or_wait(folder / MANIFEST, on_wait or (lambda: None)):
        _HELD.folders.add(lock)
        try:
            yield
        finally:
            _HELD.folders.discard(lock)
