"""A copy of a workspace, also while a service writes to it.

The database is copied first, as of one moment; then the files that this copy names. Those never
change once they are named, but for erasing: if something was erased meanwhile it begins again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evergrow.foundation.atomic import sync_folder, written_whole
from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.store.database import Store
from evergrow.workspace.store.disk_errors import telling_problems
from evergrow.workspace.store.event_log import StoredHistory
from evergrow.workspace.store.images import Images
from evergrow.workspace.store.layout import Layout, Manifest, read_manifest, write_manifest
from evergrow.workspace.store.vectors import Shards

__all__ = ["Backup", "back_up"]

# Erasing is rare: whoever erases all the time must stop for a backup.
_MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class Backup:
    """What was copied."""

    path: Path
    # The newest event in the copy.
    event: int
    n_examples: int
    n_images: int
    # Image files that were missing or damaged already.
    lacking: tuple[str, ...]


def back_up(layout: Layout, store: Store, target: str | os.PathLike[str]) -> Backup:
    """Copy a workspace to a new or empty folder.

    Parameters
    ----------
    layout : Layout
        The workspace.
    store : Store
        Its database, open for reading at least.
    target : path
        Where the copy goes.

    Returns
    -------
    backup : Backup
        What was copied; the folder is a workspace of its own.
    """
    copy = Layout(Path(target))
    source = layout.folder.resolve()
    if source in (copy.folder.resolve(), *copy.folder.resolve().parents):
        raise WorkspaceError(
            f"{str(copy.folder)!r} lies in the workspace itself: name a folder elsewhere"
        )
    if copy.folder.exists() and (not copy.folder.is_dir() or any(copy.folder.iterdir())):
        raise WorkspaceError(f"{str(copy.folder)!r} is not empty: name a new folder")
    history = StoredHistory(store, lambda: None, seed=0)
    with telling_problems(copy.folder):
        for _ in range(_MOST_ATTEMPTS):
            erased = history.usable_from
            made = _copied(layout, store, copy)
            if history.usable_from == erased:
                write_manifest(copy, read_manifest(layout))
                sync_folder(copy.folder)
                return made
            _clear(copy.folder)
    raise WorkspaceError("classes were erased again and again during the backup: try later")


def _copied(layout: Layout, store: Store, copy: Layout) -> Backup:
    """Copy all but the manifest, which makes a folder a workspace; nothing stays if it fails."""
    existed = copy.folder.exists()
    copy.folder.mkdir(parents=True, exist_ok=True)
    try:
        for folder in (copy.images, copy.thumbnails, copy.embeddings, copy.models):
            folder.mkdir()
        _copy_database(store, copy.database)
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
        # Who writes may have fixed the length of embeddings since this was opened for reading.
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


def _copy_database(store: Store, target: Path) -> None:
    with store.reading() as source, closing(sqlite3.connect(target)) as connection:
        source.backup(connection)
        # One file, which needs no log beside it.
        connection.execute("PRAGMA journal_mode = DELETE")
    with open(target, "rb+") as file:
        os.fsync(file.fileno())


def _copy_embeddings(layout: Layout, copy: Layout, manifest: Manifest, n_examples: int) -> None:
    """Copy the rows of so many examples, and none that were written since."""
    if manifest.n_features is None:
        return
    there = Shards(layout.embeddings, manifest.rows_per_shard, manifest.n_features)
    shards = Shards(copy.embeddings, manifest.rows_per_shard, manifest.n_features)
    n_shards = -(-n_examples // manifest.rows_per_shard)
    for shard in range(n_shards):
        there.require_whole(shard)
        _copy_file(there.path(shard), shards.path(shard))
    n_more = n_shards * manifest.rows_per_shard - n_examples
    shards.write(n_examples, np.zeros((n_more, manifest.n_features), dtype=np.float32))


def _copy_file(source: Path, target: Path) -> str:
    """Copy a file to disk with its mode; return the hash of what was copied."""
    digest = hashlib.sha256()
    with open(source, "rb") as file, written_whole(target) as copy:
        os.chmod(copy.name, source.stat().st_mode & 0o777)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            copy.write(chunk)
    return digest.hexdigest()


def _copy_image(layout: Layout, copy: Layout, image: str) -> bool:
    """Copy an image and its thumbnail; False if it was missing or damaged already."""
    sources, targets = Images(layout.folder), Images(copy.folder)
    source, target = sources.path(image), targets.path(image)
    if not source.is_file():
        return False
    target.parent.mkdir(exist_ok=True)
    whole = _copy_file(source, target) == image
    small, small_target = sources.thumbnail_path(image), targets.thumbnail_path(image)
    if small.is_file():
        small_target.parent.mkdir(exist_ok=True)
        shutil.copyfile(small, small_target)
    return whole


def _copy_snapshots(layout: Layout, copy: Layout, event: int) -> None:
    """Copy the model's snapshots up to an event, as far as they stay; they can be made again."""
    for folder in sorted(layout.models.glob("*")):
        if not (folder.name.isdigit() and int(folder.name) <= event):
            continue
        target = copy.models / folder.name
        try:
            shutil.copytree(folder, target)
        except (OSError, shutil.Error):
            # The service keeps only the newest ones and may have removed it meanwhile.
            shutil.rmtree(target, ignore_errors=True)


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
