"""The folder in which pictures are embedded again, and how its files take the place of the old.

Embedder, embeddings and manifest are complete in the folder before one transaction of the database
decides: it records the event that the new manifest names. Before it the workspace is the old one,
and the folder is a leftover. After it the workspace is the new one; its files are then moved into
place, by the next opening if a crash comes in between.
"""

from __future__ import annotations

import os
import shutil
import sqlite3

from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.files import sync_folder
from evergrow.workspace.store.database import translate_disk_errors
from evergrow.workspace.store.event_log import last_embedding
from evergrow.workspace.store.layout import Layout, read_manifest


def is_settled(layout: Layout, connection: sqlite3.Connection) -> bool:
    """Whether the files are those that the database knows, rather than about to be replaced."""
    return bool(last_embedding(connection) == _embedded_by(layout))


def require_settled(layout: Layout, connection: sqlite3.Connection) -> None:
    """Raise a ``WorkspaceError`` if files are about to be replaced."""
    if not is_settled(layout, connection):
        raise WorkspaceError(
            f"the pictures of the workspace {str(layout.folder)!r} were embedded again and its "
            "files are not in place yet: try again, or open it once for writing, such as with "
            "'evergrow check --mend'"
        )


def settle(layout: Layout, connection: sqlite3.Connection) -> None:
    """Move the new files into place if the database has decided for them, else delete them."""
    with translate_disk_errors(layout.folder):
        if not is_settled(layout, connection):
            _move(layout, last_embedding(connection))
        shutil.rmtree(layout.staging, ignore_errors=True)


def _move(layout: Layout, event: int) -> None:
    """Put the files of an event in place; each step can be repeated, the manifest is the last."""
    new = Layout(layout.staging)
    if not new.manifest.is_file() or _embedded_by(new) != event:
        raise WorkspaceError(
            f"the files of event {event}, which embedded all pictures of the workspace "
            f"{str(layout.folder)!r} again, are missing: restore a backup"
        )
    if new.embeddings.exists():
        if layout.embeddings.exists():
            old = layout.staging / "old"
            shutil.rmtree(old, ignore_errors=True)
            os.replace(layout.embeddings, old)
        os.replace(new.embeddings, layout.embeddings)
    if new.features.exists():
        os.replace(new.features, layout.features)
    sync_folder(layout.folder)
    os.replace(new.manifest, layout.manifest)
    sync_folder(layout.folder)


def _embedded_by(layout: Layout) -> int:
    return read_manifest(layout).embedded_by
