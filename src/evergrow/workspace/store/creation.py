"""Creates the folder of a new workspace, and locks an existing one."""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import Any

from evergrow.foundation.atomic import sync_folder
from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.foundation.locks import FileLock
from evergrow.vision.embedding import Embedder
from evergrow.workspace.errors import WorkspaceLockedError
from evergrow.workspace.store.clock import format_time, now
from evergrow.workspace.store.disk_errors import translate_disk_errors
from evergrow.workspace.store.layout import FORMAT, Layout, Manifest, new_id, write_manifest
from evergrow.workspace.store.migrations import create_database

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
    embedder = features
    if features is not None and not isinstance(features, Embedder):
        embedder = Embedder(features)
    if isinstance(embedder, Embedder):
        if n_features not in (None, embedder.n_features_out_):
            raise WorkspaceError(
                f"n_features must be None or {embedder.n_features_out_}, the output length of the "
                f"embedder, got {n_features}"
            )
        n_features = embedder.n_features_out_
    manifest = Manifest(
        format=FORMAT,
        id=new_id(),
        created=format_time(now()),
        features=None if embedder is None else _name_of(embedder),
        features_sha256=None,
        n_features=n_features,
        n_features_given=n_features is not None,
        **options,
    )
    try:
        manifest.check()
    except InvalidInputError as error:
        raise WorkspaceError(str(error)) from error
    with translate_disk_errors(layout.folder):
        _prepare(layout)
        create_database(layout)
        if isinstance(embedder, Embedder):
            embedder.save(layout.features)
            digest = hashlib.sha256(layout.features.read_bytes()).hexdigest()
            manifest = Manifest(**{**vars(manifest), "features_sha256": digest})
        create_subfolders(layout)
        sync_folder(layout.folder)
        write_manifest(layout, manifest)
        sync_folder(layout.folder.parent)


def create_subfolders(layout: Layout) -> None:
    """Create the missing sub-folders of a workspace."""
    for folder in (layout.images, layout.thumbnails, layout.embeddings, layout.models):
        folder.mkdir(exist_ok=True)


def _name_of(embedder: Any) -> str:
    model = embedder.model
    return os.path.basename(model) if isinstance(model, (str, os.PathLike)) else "a network"


def _prepare(layout: Layout) -> None:
    folder = layout.folder
    if layout.manifest.exists():
        raise WorkspaceError(f"{str(folder)!r} is already a workspace")
    if folder.exists() and not folder.is_dir():
        raise WorkspaceError(f"{str(folder)!r} is a file: choose a folder")
    folder.mkdir(parents=True, exist_ok=True)
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


def acquire_lock(layout: Layout) -> FileLock:
    """Lock a workspace for writing; a ``WorkspaceLockedError`` if it is locked already."""
    try:
        return FileLock(layout.lock, f"process {os.getpid()} since {format_time(now())}\n")
    except BlockingIOError as error:
        who = f" by {error}" if str(error) else ""
        raise WorkspaceLockedError(
            f"the workspace {str(layout.folder)!r} is in use{who}: "
            "use its service, or stop that process first"
        ) from error


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
