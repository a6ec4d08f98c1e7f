"""Creates the folder of a new workspace."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.files import sync_folder
from evergrow.vision.classifier.components import DEFAULT_STAGES
from evergrow.vision.embedding import Embedder
from evergrow.workspace.store.database import translate_disk_errors
from evergrow.workspace.store.event_log import format_time, now
from evergrow.workspace.store.files import sha256_of_file
from evergrow.workspace.store.layout import FORMAT, Layout, Manifest, new_id, write_manifest
from evergrow.workspace.store.schema import SCHEMA

# Files that an interrupted creation may leave; they mean nothing without a manifest.
_OURS = ("examples.sqlite", "features.evergrow", "lock", "tokens.json", ".evergrow-", ".lock")


def create_folder(
    layout: Layout,
    *,
    features: str | os.PathLike[str] | Embedder | None,
    n_features: int | None,
    options: dict[str, Any],
) -> None:
    """Create an empty workspace; the manifest is written last and makes the folder a workspace."""
    manifest = Manifest(
        format=FORMAT,
        id=new_id(),
        created=format_time(now()),
        features=None,
        features_sha256=None,
        n_features=n_features,
        n_features_given=n_features is not None,
        blocks=(),
        embedded_by=0,
        **options,
    )
    embedder = None if features is None else make_embedder(features)
    if embedder is not None:
        manifest = describe_embedder(manifest, embedder)
        if n_features not in (None, manifest.n_features):
            raise WorkspaceError(
                f"n_features must be None or {manifest.n_features}, the output length of the "
                f"embedder, got {n_features}"
            )
    try:
        manifest.check()
    except InvalidInputError as error:
        raise WorkspaceError(str(error)) from error
    with translate_disk_errors(layout.folder):
        _prepare(layout)
        _create_database(layout)
        if embedder is not None:
            embedder.save(layout.features)
            os.chmod(layout.features, 0o600)
            manifest = replace(manifest, features_sha256=sha256_of_file(layout.features))
        create_subfolders(layout)
        sync_folder(layout.folder)
        write_manifest(layout, manifest)
        sync_folder(layout.folder.parent)


def _create_database(layout: Layout) -> None:
    """Create the empty database of a new workspace."""
    # SQLite gives its other files the permissions of the database.
    flags = os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(layout.database, flags, 0o600))
    with closing(sqlite3.connect(layout.database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(f"BEGIN;{SCHEMA}PRAGMA user_version = {FORMAT};COMMIT;")


def create_subfolders(layout: Layout) -> None:
    """Create the missing sub-folders of a workspace."""
    for folder in (layout.images, layout.thumbnails, layout.embeddings, layout.models):
        folder.mkdir(0o700, exist_ok=True)


def make_embedder(features: str | os.PathLike[str] | Embedder) -> Embedder:
    """The embedder for the parameter ``features``; "auto" is that of ``ImageClassifier``."""
    if isinstance(features, Embedder):
        return features
    return Embedder(stages=DEFAULT_STAGES) if features == "auto" else Embedder(features)


def describe_embedder(manifest: Manifest, embedder: Embedder) -> Manifest:
    """A copy of a manifest with the name and the blocks of an embedder; loads its network."""
    model, blocks = embedder.model, embedder.blocks_
    return replace(
        manifest,
        features=os.path.basename(model) if isinstance(model, (str, os.PathLike)) else "a network",
        n_features=sum(blocks.values()),
        n_features_given=True,
        blocks=tuple(blocks.items()),
    )


def _prepare(layout: Layout) -> None:
    folder = layout.folder
    if layout.manifest.exists():
        raise WorkspaceError(f"{str(folder)!r} is already a workspace")
    if folder.exists() and not folder.is_dir():
        raise WorkspaceError(f"{str(folder)!r} is a file: choose a folder")
    folder.mkdir(0o700, parents=True, exist_ok=True)
    for entry in sorted(folder.iterdir()):
        ours = entry.is_file() and entry.name.startswith(_OURS)
        empty = entry.is_dir() and entry.name in ("images", "thumbnails", "embeddings", "models")
        # The system creates this in the root of a file system.
        if entry.name == "lost+found":
            continue
        if not ours and not (empty and not any(entry.iterdir())):
            raise WorkspaceError(
                f"{str(folder)!r} is not empty, it contains {entry.name!r}: choose a new folder"
            )
        if empty:
            entry.rmdir()
        elif entry.name != "tokens.json":
            entry.unlink()


def folder_size(folder: str | os.PathLike[str]) -> int:
    """Total size of the files in a folder, in bytes.

    Other threads may write and delete files meanwhile; those that disappear are not counted.
    """
    n_bytes = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                n_bytes += folder_size(entry.path)
                continue
            with contextlib.suppress(FileNotFoundError):
                n_bytes += entry.stat(follow_symlinks=False).st_size
    return n_bytes
