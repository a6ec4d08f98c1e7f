"""Taking back the newest change, or several.

Changes are taken back strictly newest first: each leads to a state that was there before, so that
nothing can contradict it. One that was taken back is not done again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from evergrow.foundation.errors import WorkspaceError
from evergrow.workspace.changes.edits import Editor, counted
from evergrow.workspace.changes.moves import add_event, apply_moves, reverse_moves
from evergrow.workspace.errors import ConflictError
from evergrow.workspace.records import Change, Event
from evergrow.workspace.store.queries import event_by_number

__all__ = ["newest_change", "undo"]


def _rename_back(editor: Editor, seq: int, body: Mapping[str, Any]) -> str:
    editor.set_name(seq, body["class"], body["from"])
    return f"{body['to']!r} is {body['from']!r} again"


def _join_again(editor: Editor, seq: int, body: Mapping[str, Any]) -> str:  # noqa: ARG001
    editor.set_split(body["class"], False)
    return f"{body['label']!r} is one class again"


def _split_again(editor: Editor, seq: int, body: Mapping[str, Any]) -> str:  # noqa: ARG001
    editor.set_split(body["class"], True)
    return f"{body['label']!r} is split again"


def _doubt_again(editor: Editor, seq: int, body: Mapping[str, Any]) -> str:  # noqa: ARG001
    return f"{counted(len(body['examples']), 'example')} may be doubted again"


def _only_moves(editor: Editor, seq: int, body: Mapping[str, Any]) -> str:  # noqa: ARG001
    return ""


# What going back takes beside moving the examples back, by kind of change.
_BACK: dict[str, Callable[[Editor, int, Mapping[str, Any]], str]] = {
    "teach": _only_moves,
    "relabel": _only_moves,
    "confirm": _doubt_again,
    "remove": _only_moves,
    "forget": _only_moves,
    "merge": _only_moves,
    "rename": _rename_back,
    "split": _join_again,
    "unsplit": _split_again,
}
# What is true of a class after going back, for whoever replays events.
_SPLIT_AFTER = {"split": False, "unsplit": True}

# Changes that stand from an event on, the newest first.
_STANDING = (
    "SELECT seq FROM event INDEXED BY event_standing WHERE undone_by IS NULL AND seq >= ?"
    f" AND kind IN ({', '.join(repr(kind) for kind in _BACK)}) ORDER BY seq DESC LIMIT ?"
)
_ALL = -1


def newest_change(connection: sqlite3.Connection) -> Event | None:
    """The change that undo would take back; None if there is none."""
    found = connection.execute(_STANDING, (0, 1)).fetchone()
    event = None if found is None else event_by_number(connection, found[0])
    return None if event is None or event.body.get("erase") else event


def undo(editor: Editor, event: int | None, *, since: int | None = None, count: int = 1) -> Change:
    """Take back the newest change, which must be the event if one is named; or several changes."""
    if since is None and count == 1:
        return _take_back(editor, _checked_newest(editor.connection, event))
    if event is not None or (since is not None and count != 1) or count < 1:
        raise WorkspaceError("undo takes one of event, since and a count of at least 1")
    done = [_take_back(editor, change) for change in _several(editor.connection, since, count)]
    n_examples = sum(one.n_examples for one in done)
    summary = f"undid {counted(len(done), 'change')}: {counted(n_examples, 'example')} as before"
    return Change(done[-1].event, "undo", summary, n_examples)


def _several(connection: sqlite3.Connection, since: int | None, count: int) -> list[Event]:
    """The changes to take back, the newest first."""
    first, most = (0, count) if since is None else (since, _ALL)
    numbers = [seq for (seq,) in connection.execute(_STANDING, (first, most))]
    if not numbers:
        raise ConflictError("there is nothing to undo" + f" since event {since}" * bool(since))
    if since is None and len(numbers) < count:
        raise ConflictError(f"only {counted(len(numbers), 'change')} can be undone, not {count}")
    changes = [event_by_number(connection, seq) for seq in numbers]
    found = [change for change in changes if change is not None]
    for change in found:
        if change.body.get("erase"):
            raise ConflictError(
                f"event {change.seq} ({change.kind}) cannot be undone, nor what came before it"
            )
    return found


def _take_back(editor: Editor, change: Event) -> Change:
    """Take back one change, the newest that stands."""
    body: dict[str, Any] = {"event": change.seq, "kind": change.kind}
    if change.kind in _SPLIT_AFTER:
        body |= {"class": change.body["class"], "split": _SPLIT_AFTER[change.kind]}
    seq = add_event(
        editor.connection, "undo", body, at=editor.at, actor=editor.actor, undoes=change.seq
    )
    editor.connection.execute("UPDATE event SET undone_by = ? WHERE seq = ?", (seq, change.seq))
    n_moved = reverse_moves(editor.connection, seq, change.seq)
    editor.named += apply_moves(editor.connection, seq)
    detail = _BACK[change.kind](editor, seq, change.body)
    detail = detail or f"{counted(n_moved, 'example')} as before"
    return Change(seq, "undo", f"undid {change.kind} {change.seq}: {detail}", n_moved)


def _checked_newest(connection: sqlite3.Connection, event: int | None) -> Event:
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
    if asked.kind not in _BACK or asked.body.get("erase") or change is None:
        raise ConflictError(f"event {event} ({asked.kind}) cannot be undone")
    raise ConflictError(
        f"only the newest change can be undone: that is {change.seq} ({change.kind}), not {event}"
    )
