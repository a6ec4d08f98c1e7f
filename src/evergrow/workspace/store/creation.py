"""Making the folder of a new workspace, and taking hold of one that is there."""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import Any

from evergrow.foundation.atomic import sync_folder
from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.locks import HeldLock
from evergrow.vision.embedding import Embedder
from evergrow.workspace.errors import WorkspaceLockedError
from evergrow.workspace.store.clock import now, text_of
from evergrow.workspace.store.disk_errors import telling_problems
from evergrow.workspace.store.layout import FORMAT, Layout, Manifest, new_id, write_manifest
from evergrow.workspace.store.migrations import make_database

__all__ = ["hold", "make_folder", "make_folders", "size_of"]

# What a creation that was interrupted may leave; none of it counts without a manifest.
_OURS = ("examples.sqlite", "features.evergrow", "lock", "tokens.json", ".evergrow-", ".lock")


def make_folder(
    layout: Layout,
    *,
    features: str | os.PathLike[str] | Embedder | None,
    n_features: int | None,
    options: dict[str, Any],
) -> None:
    """Make an empty workspace; its manifest comes last and makes the folder one."""
    embedder = features
    if features is not None and not isinstance(features, Embedder):
        embedder = Embedder(features)
    if isinstance(embedder, Embedder):
        if n_features not in (None, embedder.n_features_out_):
            raise WorkspaceError(
                f"n_features must be None or {embedder.n_features_out_}, which is what the "
                f"embedder gives, got {n_features}"
            )
        n_features = embedder.n_features_out_
    manifest = Manifest(
        format=FORMAT,
        id=new_id(),
        created=text_of(now()),
        features=None if embedder is None else _name_of(embedder),
        features_sha256=None,
        n_features=n_features,
        n_features_given=n_features is not None,
        **options,
    )
    try:
        manifest.check()
    except ValueError as error:
        raise WorkspaceError(str(error)) from error
    with telling_problems(layout.folder):
        _prepare(layout)
        make_database(layout)
        if isinstance(embedder, Embedder):
            embedder.save(layout.features)
            digest = hashlib.sha256(layout.features.read_bytes()).hexdigest()
            manifest = Manifest(**{**vars(manifest), "features_sha256": digest})
        make_folders(layout)
        sync_folder(layout.folder)
        write_manifest(layout, manifest)
        sync_folder(layout.folder.parent)


def make_folders(layout: Layout) -> None:
    """Make the folders within a workspace that are not there."""
    for folder in (layout.images, layout.thumbnails, layout.embeddings, layout.models):
        folder.mkdir(exist_ok=True)


def _name_of(embedder: Any) -> str:
    model = embedder.model
    return os.path.basename(model) if isinstance(model, (str, os.PathLike)) else "a network"


def _prepare(layout: Layout) -> None:
    folder = layout.folder
    if layout.manifest.exists():
        raise WorkspaceError(f"{str(folder)!r} is a workspace already")
    if folder.exists() and not folder.is_dir():
        raise WorkspaceError(f"{str(folder)!r} is a file: name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for entry in sorted(folder.iterdir()):
        ours = entry.is_file() and entry.name.startswith(_OURS)
        empty = entry.is_dir() and entry.name in ("images", "thumbnails", "embeddings", "models")
        # The system puts this into the root of a disk of its own.
        if entry.name == "lost+found":
            continue
        if not ours and not (empty and not any(entry.iterdir())):
            raise WorkspaceError(
                f"{str(folder)!r} is not empty: it has {entry.name!r}; name a new folder"
            )
        if empty:
            entry.rmdir()
        elif entry.name != "tokens.json":
            entry.unlink()


def hold(layout: Layout) -> HeldLock:
    """The lock of the one process that may write; a ``WorkspaceLockedError`` if it is taken."""
    try:
        return HeldLock(layout.lock, f"process {os.getpid()} since {text_of(now())}\n")
    except BlockingIOError as error:
        who = f" by {error}" if str(error) else ""
        raise WorkspaceLockedError(
            f"the workspace {str(layout.folder)!r} is in use{who}: "
            "ask its service, or stop it first"
        ) from error


def size_of(folder: str | os.PathLike[str]) -> int:
    """Bytes of all files in a folder, as far as they are there while it looks.

    Another thread may write and remove snapshots meanwhile.
    """
    n_bytes = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                n_bytes += size_of(entry.path)
                continue
            with contextlib.suppress(FileNotFoundError):
                n_bytes += entry.stat(follow_symlinks=False).st_size
    return n_bytes
