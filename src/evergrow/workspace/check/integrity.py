"""Checks every hash and count of a workspace, and repairs what can be repaired."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.changes.writer import ChangeWriter
from evergrow.workspace.check.database import (
    RESTORE,
    Finding,
    Problem,
    check_database,
    repair_and_report,
)
from evergrow.workspace.check.files import REPLACE_LINK, FileCheck
from evergrow.workspace.events import NullProjection
from evergrow.workspace.model.snapshot_files import find_unusable
from evergrow.workspace.records import (
    WorkspaceFormatError,
    WorkspaceLockedError,
    WorkspaceLostError,
)
from evergrow.workspace.store.layout import Layout, is_workspace, no_workspace
from evergrow.workspace.store.ownership import ReplacedDatabaseError
from evergrow.workspace.store.store import Store, open_store
from evergrow.workspace.store.trust import NotPlainError


def check_workspace(path: str | os.PathLike[str], *, repair: bool = False) -> list[Finding]:
    """Verify every hash and count of a workspace, even if it cannot be opened any more.

    Parameters
    ----------
    path : path
        The folder.
    repair : bool, default=False
        Whether to repair what can be repaired. No other process may have the workspace open for
        writing then.

    Returns
    -------
    findings : list of Finding
        The problems; empty if there are none.

    Raises
    ------
    evergrow.WorkspaceError
        If the folder is not a workspace, or has another format. With `repair`, also if
        another process writes to it or its database file has a second name.
    """
    layout = Layout(path)
    if not is_workspace(layout.folder):
        raise no_workspace(layout)
    try:
        return _open_and_check(layout, repair=repair)
    except (WorkspaceFormatError, WorkspaceLockedError, WorkspaceLostError):
        raise
    except NotPlainError as error:
        return [Finding("damage", str(error), REPLACE_LINK)]
    except ReplacedDatabaseError as error:
        mend = "put the former file back, or let 'evergrow check --mend' accept this one"
        return [Finding("damage", str(error), mend)]
    except WorkspaceError as error:
        # What prevents opening it is the finding.
        return [Finding("damage", str(error), RESTORE)]


def check_store(store: Store, writer: ChangeWriter, *, repair: bool) -> list[Finding]:
    """Verify every hash and count of an open workspace."""
    with writer.lock:
        files = FileCheck(
            store,
            embedder=store.embedder if repair else None,
            forget=writer.forget_lost if repair else None,
        )
        problems = itertools.chain(
            check_database(store.database, repairable=repair),
            files.problems(),
            _snapshot_problems(store, repairable=repair),
        )
        findings = repair_and_report(problems, repair=repair)
        if any(finding.mended and finding.severity == "damage" for finding in findings):
            # The model may have been trained on damaged rows: rebuild it without snapshots.
            for snapshot in store.layout.models.glob("*"):
                shutil.rmtree(snapshot)
            writer.publisher.rebuild()
        return findings


def _open_and_check(layout: Layout, *, repair: bool) -> list[Finding]:
    store, ownership = open_store(layout, read_only=not repair, accept_database=repair)
    try:
        return check_store(store, ChangeWriter(store, NullProjection()), repair=repair)
    finally:
        store.database.close()
        if ownership is not None:
            ownership.release()


def _snapshot_problems(store: Store, *, repairable: bool) -> Iterator[Problem]:
    """Snapshots that cannot be used; the model is rebuilt from the log without them."""
    found = _unusable_snapshots(store)
    # Those that are being written or deleted right now are usable or gone at the second look.
    again = _unusable_snapshots(store) if found else {}
    for path, why in again.items():
        if path in found:
            yield Problem(
                "harmless",
                f"the snapshot {path.name} of the model cannot be used: {why}",
                "nothing needs to be done: the model is rebuilt from the examples; "
                "'evergrow check --mend' deletes it",
                partial(shutil.rmtree, path) if repairable else None,
            )


def _unusable_snapshots(store: Store) -> dict[Path, str]:
    return find_unusable(
        store.layout.models,
        store.log.nonce,
        seed=store.manifest.seed,
        first=store.log.last_erasure,
        is_busy=lambda: store.is_written_elsewhere,
    )
