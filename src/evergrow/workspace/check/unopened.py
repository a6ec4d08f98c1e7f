"""Checking a folder that may be too damaged to be opened."""

from __future__ import annotations

import os
from pathlib import Path

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.check.integrity import MendableWorkspace
from evergrow.workspace.errors import NewerWorkspaceError, WorkspaceLockedError
from evergrow.workspace.records import Finding
from evergrow.workspace.store.creation import hold
from evergrow.workspace.store.database import Store
from evergrow.workspace.store.layout import Layout, is_workspace, read_manifest
from evergrow.workspace.store.migrations import check_newest, migrate

__all__ = ["check_workspace"]


def check_workspace(path: str | os.PathLike[str], *, mend: bool = False) -> list[Finding]:
    """Verify every hash and count of a workspace, also of one that cannot be opened any more.

    Parameters
    ----------
    path : path
        The folder.
    mend : bool, default=False
        Also mend what can be; nobody else may have it open then.

    Returns
    -------
    findings : list of Finding
        What is not as it should be; empty if all is well.

    Raises
    ------
    evergrow.WorkspaceError
        If the folder is no workspace, is of a newer version, or is in use by another process that
        writes while it is to be mended.
    """
    layout = Layout(Path(path))
    if not is_workspace(layout.folder):
        raise WorkspaceError(f"{str(layout.folder)!r} is no workspace")
    lock = hold(layout) if mend else None
    try:
        return _findings(layout, mend=mend)
    except (NewerWorkspaceError, WorkspaceLockedError):
        raise
    except WorkspaceError as error:
        # What keeps it from being opened is what is found.
        return [Finding("damage", str(error), "put a backup of the workspace in its place")]
    finally:
        if lock is not None:
            lock.release()


def _findings(layout: Layout, *, mend: bool) -> list[Finding]:
    store = Store(layout.database, read_only=not mend)
    try:
        (migrate if mend else check_newest)(layout, store)
        workspace = MendableWorkspace(layout, store, read_manifest(layout))
        return workspace.check(mend=mend)
    finally:
        store.close()
