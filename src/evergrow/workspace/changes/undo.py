"""Undoes the newest step, or several.

A step is what a user did at once: the changes of one actor and action that follow each other, or a
single change without an action. Changes are undone strictly newest first: each undo restores a
state that existed before, so nothing can conflict with it. An undone change cannot be redone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.formatting import format_count
from evergrow.workspace.changes.transaction import ChangeTransaction, action_ending
from evergrow.workspace.records import Change, ConflictError, UndoStep
from evergrow.workspace.store.queries import event_by_number


def _restore_name(transaction: ChangeTransaction, seq: int, body: Mapping[str, Any]) -> None:
    transaction.set_name(seq, body["class"], body["from"])


def _reverse_split(transaction: ChangeTransaction, seq: int, body: Mapping[str, Any]) -> None:  # noqa: ARG001
    transaction.set_split(body["class"], not body["split"])


# To add a kind of change: a function in this folder that writes an event and its moves, a line
# here, a method of ``Workspace``, and an entry of ``STEPS`` in tests/workspace/random_changes.py.
# What an undo does besides reversing the moves, by kind of change; None for nothing.
_UNDO: dict[str, Callable[[ChangeTransaction, int, Mapping[str, Any]], None] | None] = {
    "teach": None,
    "relabel": None,
    "confirm": None,
    "remove": None,
    "forget": None,
    "merge": None,
    "rename": _restore_name,
    "split": _reverse_split,
    "unsplit": _reverse_split,
}

_KINDS = ", ".join(repr(kind) for kind in _UNDO)
_STANDING = f"FROM event INDEXED BY event_standing WHERE undone_by IS NULL AND kind IN ({_KINDS})"
_NEWEST = f"SELECT seq, actor, body {_STANDING} AND seq < ? ORDER BY seq DESC LIMIT 1"
# The newest change before an event that does not belong to an action. Its name is the last member
# of a body: comparing the end is much faster than parsing the bodies of a long step.
_BEFORE_ACTION = (
    f"SELECT seq {_STANDING} AND seq < ? AND NOT (actor = ? AND substr(body, ?) = ?)"
    " ORDER BY seq DESC LIMIT 1"
)
_IN_STEP = f"{_STANDING} AND seq >= ? AND seq <= ?"
# The classes that examples were taken out of, or were taught to.
_MOVED_CLASSES = "FROM move m JOIN class c ON c.id = coalesce(m.from_class, m.to_class)"
_LAST = (1 << 63) - 1
_MOST_LABELS = 3


def newest_step(connection: sqlite3.Connection) -> UndoStep:
    """What an undo would take back; its ``event`` is None if there is nothing."""
    bounds = _step_before(connection, _LAST)
    newest = None if bounds is None else event_by_number(connection, bounds[1])
    if bounds is None or newest is None or newest.body.get("erase"):
        return UndoStep()
    kinds = connection.execute(f"SELECT kind, count(*) {_IN_STEP} GROUP BY kind", bounds).fetchall()
    moved = f"{_MOVED_CLASSES} WHERE m.event IN (SELECT seq {_IN_STEP})"
    n_examples, n_labels = connection.execute(
        f"SELECT count(*), count(DISTINCT c.id) {moved}", bounds
    ).fetchone()
    labels = connection.execute(
        f"SELECT DISTINCT c.name {moved} ORDER BY c.id LIMIT {_MOST_LABELS}", bounds
    ).fetchall()
    return UndoStep(
        event=newest.seq,
        kind=newest.kind,
        body=newest.body,
        n_changes=sum(n for _, n in kinds),
        n_examples=n_examples,
        kinds=dict(kinds),
        labels=tuple(name for (name,) in labels),
        n_labels=n_labels,
    )


def _parse(seq: int, body: str) -> dict[str, Any]:
    """The content of an event; a ``WorkspaceError`` if a damaged log holds something else."""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise WorkspaceError(f"event {seq} is damaged: run 'evergrow check' on the workspace")
    return content


def _step_before(connection: sqlite3.Connection, end: int) -> tuple[int, int] | None:
    """First and last event of the newest step before an event; None if there is none."""
    found = connection.execute(_NEWEST, (end,)).fetchone()
    if found is None:
        return None
    seq, actor, body = found
    action = _parse(seq, body).get("action")
    if action is None:
        return seq, seq
    ending = action_ending(action)
    other = connection.execute(_BEFORE_ACTION, (seq, actor, -len(ending), ending)).fetchone()
    return (0 if other is None else other[0]) + 1, seq


@dataclass(frozen=True)
class _Change:
    """A change to undo."""

    seq: int
    kind: str
    body: Mapping[str, Any]


def undo(
    transaction: ChangeTransaction, event: int | None, since: int | None, count: int
) -> Change:
    """Undo the newest step, whose newest change must be ``event`` if that is given; or several."""
    if (event is not None) + (since is not None) + (count != 1) > 1 or count < 1:
        raise WorkspaceError("undo takes one of event, since and a count of at least 1")
    connection = transaction.connection
    if event is not None:
        _require_newest(connection, event)
    first = _first_of(connection, count) if since is None else since
    changes = _changes_since(connection, first, since)
    before = transaction.last_event()
    # Changes of examples are undone together, in the order of the others: a name may become free.
    for is_plain, run in groupby(changes, key=lambda change: _UNDO[change.kind] is None):
        if is_plain:
            _undo_plain(transaction, list(run))
        else:
            for change in run:
                _undo_special(transaction, change)
    last = transaction.last_event()
    summary, n_examples = _summarise(connection, changes, before + 1, last)
    return Change(last, "undo", summary, n_examples, len(changes))


def _first_of(connection: sqlite3.Connection, count: int) -> int:
    """The first event of the newest steps."""
    first = _LAST
    for done in range(count):
        bounds = _step_before(connection, first)
        if bounds is None:
            found = f"only {format_count(done, 'step')} can be undone, not {count}"
            raise ConflictError(found if done else "there is nothing to undo")
        first = bounds[0]
    return first


def _changes_since(connection: sqlite3.Connection, first: int, since: int | None) -> list[_Change]:
    """The changes to undo, the newest first."""
    found = connection.execute(
        f"SELECT seq, kind, body {_IN_STEP} ORDER BY seq DESC", (first, _LAST)
    )
    changes = [_Change(seq, kind, _parse(seq, body)) for seq, kind, body in found]
    if not changes:
        raise ConflictError("there is nothing to undo" + f" since event {since}" * bool(since))
    for change in changes:
        if change.body.get("erase"):
            raise ConflictError(
                f"event {change.seq} ({change.kind}) erased examples: neither it nor any change "
                "before it can be undone"
            )
    return changes


def _undo_plain(transaction: ChangeTransaction, changes: Sequence[_Change]) -> None:
    """Undo changes that only move examples, the newest first."""
    connection = transaction.connection
    pairs = [(_add_undo(transaction, change), change.seq) for change in changes]
    connection.executemany(
        "INSERT INTO move (event, example, from_class, from_fine, to_class, to_fine)"
        " SELECT ?, example, to_class, to_fine, from_class, from_fine FROM move WHERE event = ?",
        pairs,
    )
    transaction.apply_moves(pairs[0][0], pairs[-1][0])


def _undo_special(transaction: ChangeTransaction, change: _Change) -> None:
    """Undo a change that moves no examples."""
    reverse = _UNDO[change.kind]
    seq = _add_undo(transaction, change)
    if reverse is not None:
        reverse(transaction, seq, change.body)


def _add_undo(transaction: ChangeTransaction, change: _Change) -> int:
    body: dict[str, Any] = {"event": change.seq, "kind": change.kind}
    if "split" in change.body:
        # A replay reads from it whether the class is split.
        body |= {"class": change.body["class"], "split": not change.body["split"]}
    seq = transaction.add_event("undo", body, undoes=change.seq)
    transaction.connection.execute(
        "UPDATE event SET undone_by = ? WHERE seq = ?", (seq, change.seq)
    )
    return seq


# What an undo did to examples, by kind of change.
_OUTCOMES = {
    "teach": "removed",
    "relabel": "moved back",
    "remove": "restored",
    "forget": "restored",
    "merge": "moved back",
}


def _summarise(
    connection: sqlite3.Connection, changes: Sequence[_Change], first: int, last: int
) -> tuple[str, int]:
    """What the undo events between two did, and how many examples they moved."""
    moved = {
        kind: (n, n_classes, name)
        for kind, n, n_classes, name in connection.execute(
            f"SELECT e.kind, count(*), count(DISTINCT c.id), min(c.name) {_MOVED_CLASSES}"
            " JOIN event e ON e.seq = m.event WHERE e.undone_by >= ? AND e.undone_by <= ?"
            " GROUP BY e.kind",
            (first, last),
        )
    }
    parts = []
    for kind in dict.fromkeys(change.kind for change in changes):
        bodies = [change.body for change in changes if change.kind == kind]
        if kind in _OUTCOMES:
            n, n_classes, name = moved[kind]
            classes = repr(name) if n_classes == 1 else f"{n_classes} classes"
            parts.append(f"{format_count(n, 'example')} of {classes} {_OUTCOMES[kind]}")
        elif kind == "confirm":
            n = sum(len(body["examples"]) for body in bodies)
            parts.append(f"{format_count(n, 'example')} may be listed for review again")
        else:
            parts += _describe_classes(kind, bodies)
    return "Undone: " + "; ".join(parts), sum(n for n, *_ in moved.values())


def _describe_classes(kind: str, bodies: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the undo of renames or splits did to each class; the newest body comes first."""
    newest: dict[int, Mapping[str, Any]] = {}
    oldest: dict[int, Mapping[str, Any]] = {}
    for body in bodies:
        newest.setdefault(body["class"], body)
        oldest[body["class"]] = body
    if kind == "rename":
        return [f"{newest[k]['to']!r} is {oldest[k]['from']!r} again" for k in newest]
    state = "one class" if kind == "split" else "split"
    return [f"{newest[k]['label']!r} is {state} again" for k in newest]


def _require_newest(connection: sqlite3.Connection, event: int) -> None:
    """Raise a ``ConflictError`` unless a change is the newest that can be undone."""
    newest = newest_step(connection)
    if newest.event == event:
        return
    asked = event_by_number(connection, event) if 0 < event < 1 << 63 else None
    if asked is None:
        raise ConflictError(f"event {event} cannot be undone: it does not exist")
    if asked.undone_by is not None:
        raise ConflictError(f"event {event} was undone already, by event {asked.undone_by}")
    if asked.kind not in _UNDO or asked.body.get("erase") or newest.event is None:
        raise ConflictError(f"event {event} ({asked.kind}) cannot be undone")
    raise ConflictError(
        f"only the newest change can be undone, event {newest.event} ({newest.kind}), not {event}"
    )
