"""Undoes the newest change, or several.

Changes are undone strictly newest first: each undo restores a state that existed before, so nothing
can conflict with it. An undone change cannot be redone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.formatting import format_count
from evergrow.workspace.changes.transaction import ChangeTransaction
from evergrow.workspace.records import Change, ConflictError, Event
from evergrow.workspace.store.queries import event_by_number


def _restore_name(transaction: ChangeTransaction, seq: int, body: Mapping[str, Any]) -> str:
    transaction.set_name(seq, body["class"], body["from"])
    return f"{body['to']!r} is {body['from']!r} again"


def _reverse_split(transaction: ChangeTransaction, seq: int, body: Mapping[str, Any]) -> str:  # noqa: ARG001
    transaction.set_split(body["class"], not body["split"])
    return f"{body['label']!r} is {'one class' if body['split'] else 'split'} again"


def _withdraw_confirmation(
    transaction: ChangeTransaction,  # noqa: ARG001
    seq: int,  # noqa: ARG001
    body: Mapping[str, Any],
) -> str:
    return f"{format_count(len(body['examples']), 'example')} may be listed for review again"


# What an undo does besides reversing the moves, by kind of change; None for nothing. It returns a
# summary.
_UNDO: dict[str, Callable[[ChangeTransaction, int, Mapping[str, Any]], str] | None] = {
    "teach": None,
    "relabel": None,
    "confirm": _withdraw_confirmation,
    "remove": None,
    "forget": None,
    "merge": None,
    "rename": _restore_name,
    "split": _reverse_split,
    "unsplit": _reverse_split,
}

# Changes from an event on that were not undone, the newest first.
_UNDOABLE = (
    "SELECT seq FROM event INDEXED BY event_standing WHERE undone_by IS NULL AND seq >= ?"
    f" AND kind IN ({', '.join(repr(kind) for kind in _UNDO)}) ORDER BY seq DESC LIMIT ?"
)
_ALL = -1


def newest_change(connection: sqlite3.Connection) -> Event | None:
    """The change that an undo would undo; None if there is none."""
    found = connection.execute(_UNDOABLE, (0, 1)).fetchone()
    event = None if found is None else event_by_number(connection, found[0])
    return None if event is None or event.body.get("erase") else event


def undo(
    transaction: ChangeTransaction, event: int | None, since: int | None, count: int
) -> Change:
    """Undo the newest change, which must be ``event`` if that is given; or several changes."""
    if since is None and count == 1:
        return _undo_one(transaction, _require_newest(transaction.connection, event))
    if event is not None or (since is not None and count != 1) or count < 1:
        raise WorkspaceError("undo takes one of event, since and a count of at least 1")
    changes = _newest_changes(transaction.connection, since, count)
    done = [_undo_one(transaction, change) for change in changes]
    n_examples = sum(one.n_examples for one in done)
    restored = f"{format_count(n_examples, 'example')} moved back"
    summary = f"undid {format_count(len(done), 'change')}: {restored}"
    return Change(done[-1].event, "undo", summary, n_examples)


def _newest_changes(connection: sqlite3.Connection, since: int | None, count: int) -> list[Event]:
    """The changes to undo, the newest first."""
    first, most = (0, count) if since is None else (since, _ALL)
    numbers = [seq for (seq,) in connection.execute(_UNDOABLE, (first, most))]
    if not numbers:
        raise ConflictError("there is nothing to undo" + f" since event {since}" * bool(since))
    if since is None and len(numbers) < count:
        raise ConflictError(
            f"only {format_count(len(numbers), 'change')} can be undone, not {count}"
        )
    changes = [event_by_number(connection, seq) for seq in numbers]
    found = [change for change in changes if change is not None]
    for change in found:
        if change.body.get("erase"):
            raise ConflictError(
                f"event {change.seq} ({change.kind}) erased examples: neither it nor any change "
                "before it can be undone"
            )
    return found


def _undo_one(transaction: ChangeTransaction, change: Event) -> Change:
    """Undo the newest change that was not undone."""
    connection = transaction.connection
    body: dict[str, Any] = {"event": change.seq, "kind": change.kind}
    if "split" in change.body:
        # A replay reads from it whether the class is split.
        body |= {"class": change.body["class"], "split": not change.body["split"]}
    seq = transaction.add_event("undo", body, undoes=change.seq)
    connection.execute("UPDATE event SET undone_by = ? WHERE seq = ?", (seq, change.seq))
    n_moved = connection.execute(
        "INSERT INTO move (event, example, from_class, from_fine, to_class, to_fine)"
        " SELECT ?, example, to_class, to_fine, from_class, from_fine FROM move WHERE event = ?",
        (seq, change.seq),
    ).rowcount
    transaction.apply_moves(seq)
    special = _UNDO[change.kind]
    detail = f"{format_count(n_moved, 'example')} moved back"
    if special is not None:
        detail = special(transaction, seq, change.body)
    return Change(seq, "undo", f"undid {change.kind} {change.seq}: {detail}", n_moved)


def _require_newest(connection: sqlite3.Connection, event: int | None) -> Event:
    change = newest_change(connection)
    if change is not None and event in (None, change.seq):
        return change
    if event is None:
        raise ConflictError("there is nothing to undo")
    asked = event_by_number(connection, event) if 0 < event < 1 << 63 else None
    if asked is None:
        raise ConflictError(f"there is no event {event} to undo")
    if asked.undone_by is not None:
        raise ConflictError(f"event {event} was undone already, by event {asked.undone_by}")
    if asked.kind not in _UNDO or asked.body.get("erase") or change is None:
        raise ConflictError(f"event {event} ({asked.kind}) cannot be undone")
    raise ConflictError(
        f"only the newest change can be undone, event {change.seq} ({change.kind}), not {event}"
    )
