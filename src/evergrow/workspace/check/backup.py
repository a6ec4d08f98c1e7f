"""Backs up a workspace, even while another process writes to it.

The database is copied first, as of one moment; then the files that this copy refers to. They never
change, except that they can be erased, or replaced if the pictures are embedded again: if that
happened meanwhile, the backup starts again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.files import atomic_write, open_regular, sync_folder
from evergrow.workspace.store.creation import create_subfolders
from evergrow.workspace.store.database import Database, translate_disk_errors
from evergrow.workspace.store.files import ImageStore, VectorStore
from evergrow.workspace.store.layout import Layout, Manifest, read_manifest, write_manifest
from evergrow.workspace.store.staging import is_settled
from evergrow.workspace.store.store import Store

# Erasures are rare; a backup gives up if they keep happening.
_MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class Backup:
    """The result of a backup."""

    path: Path
    # The newest event in the copy.
    event: int
    n_examples: int
    n_images: int
    # Image files that were missing or damaged already in the workspace.
    lacking: tuple[str, ...]


def back_up(store: Store, target: str | os.PathLike[str]) -> Backup:
    """Copy a workspace to a new or empty folder, which is a complete workspace afterwards."""
    layout, copy = store.layout, Layout(target)
    source = layout.folder.resolve()
    if source in (copy.folder.resolve(), *copy.folder.resolve().parents):
        raise WorkspaceError(
            f"{str(copy.folder)!r} is inside the workspace itself: choose a folder elsewhere"
        )
    if copy.folder.exists() and (not copy.folder.is_dir() or any(copy.folder.iterdir())):
        raise WorkspaceError(f"{str(copy.folder)!r} is not empty: choose a new folder")
    with translate_disk_errors(copy.folder):
        for _ in range(_MOST_ATTEMPTS):
            erased, was_settled = _state(store)
            made = _copy(layout, store.database, copy)
            if was_settled and _state(store) == (erased, True):
                write_manifest(copy, read_manifest(layout))
                sync_folder(copy.folder)
                return made
            _clear(copy.folder)
    raise WorkspaceError("embeddings were erased repeatedly during the backup: try again later")


def _state(store: Store) -> tuple[int, bool]:
    """What erased or replaced embeddings last, and whether all files are in place."""
    with store.database.read_transaction() as connection:
        return store.log.last_erasure, is_settled(store.layout, connection)


def _copy(layout: Layout, database: Database, copy: Layout) -> Backup:
    """Copy everything but the manifest, which is written last; clean up on failure."""
    existed = copy.folder.exists()
    copy.folder.mkdir(0o700, parents=True, exist_ok=True)
    try:
        create_subfolders(copy)
        _copy_database(database, copy)
        with closing(sqlite3.connect(copy.database)) as connection:
            event, n_examples = (
                connection.execute(f"SELECT coalesce(max({column}), 0) FROM {table}").fetchone()[0]
                for table, column in (("event", "seq"), ("example", "id"))
            )
            images = [
                image
                for (image,) in connection.execute(
                    "SELECT DISTINCT image FROM example WHERE image IS NOT NULL"
                )
            ]
        # The writer may have fixed the length of embeddings since this was opened for reading.
        manifest = read_manifest(layout)
        _copy_embeddings(layout, copy, manifest, n_examples)
        lacking = [image for image in images if not _copy_image(layout, copy, image)]
        for path in (layout.features, layout.tokens):
            if path.exists():
                _copy_file(path, copy.folder / path.name)
        _copy_snapshots(layout, copy, event)
    except BaseException:
        _clear(copy.folder)
        if not existed:
            copy.folder.rmdir()
        raise
    return Backup(copy.folder, event, n_examples, len(images) - len(lacking), tuple(lacking))


def _copy_database(database: Database, copy: Layout) -> None:
    target = copy.database
    os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))
    with (
        database.read_transaction() as source,
        # The errors of the copy, such as a full disk, are not those of the source.
        translate_disk_errors(copy.folder),
        closing(sqlite3.connect(target)) as connection,
    ):
        source.backup(connection)
        # A file of its own: put in the place of the source's, it is not taken for that.
        connection.execute(f"PRAGMA application_id = {secrets.randbits(31)}")
        # A single file without a write-ahead log.
        connection.execute("PRAGMA journal_mode = DELETE")
    with open(target, "rb+") as file:
        os.fsync(file.fileno())


def _copy_embeddings(layout: Layout, copy: Layout, manifest: Manifest, n_examples: int) -> None:
    """Copy the rows of the first examples, and none that were written since."""
    if manifest.n_features is None:
        return
    there = VectorStore(layout.embeddings, manifest.rows_per_shard, manifest.n_features)
    shards = VectorStore(copy.embeddings, manifest.rows_per_shard, manifest.n_features)
    n_shards = -(-n_examples // manifest.rows_per_shard)
    for shard in range(n_shards):
        there.require_intact(shard)
        _copy_file(there.path(shard), shards.path(shard))
    n_more = n_shards * manifest.rows_per_shard - n_examples
    shards.write(n_examples, np.zeros((n_more, manifest.n_features), dtype=np.float32))


def _copy_file(source: Path, target: Path) -> str:
    """Copy a file, for its owner only; return the hash of its content."""
    digest = hashlib.sha256()
    with (
        open_regular(source, follow_links=False) as file,
        atomic_write(target, private=True) as copy,
    ):
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            copy.write(chunk)
    return digest.hexdigest()


def _copy_image(layout: Layout, copy: Layout, image: str) -> bool:
    """Copy an image and its thumbnail; False if it was missing or damaged already."""
    sources, targets = ImageStore(layout.folder), ImageStore(copy.folder)
    source, target = sources.path(image), targets.path(image)
    if not source.is_file():
        return False
    target.parent.mkdir(0o700, exist_ok=True)
    whole = _copy_file(source, target) == image
    small, small_target = sources.thumbnail_path(image), targets.thumbnail_path(image)
    if small.is_file():
        small_target.parent.mkdir(0o700, exist_ok=True)
        _copy_file(small, small_target)
    return whole


def _copy_snapshots(layout: Layout, copy: Layout, event: int) -> None:
    """Copy snapshots of the model up to an event; they are optional."""
    for folder in sorted(layout.models.glob("*")):
        if not (folder.name.isdigit() and int(folder.name) <= event) or folder.is_symlink():
            continue
        target = copy.models / folder.name
        try:
            target.mkdir(0o700)
            for path in folder.iterdir():
                _copy_file(path, target / path.name)
        except (OSError, InvalidInputError):
            # The service may have deleted it meanwhile for a newer one.
            shutil.rmtree(target, ignore_errors=True)


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
