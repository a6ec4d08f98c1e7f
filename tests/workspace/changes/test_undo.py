"""Undoing changes."""

from __future__ import annotations

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import ConflictError
from tests.workspace.builders import Mirror, counts, labels, new_example

FOUR = [new_example("cup", n, fine=f) for n in range(2) for f in ("red", "blue")]

CHANGES = {
    "teach": lambda workspace: workspace.teach([new_example("mug", 9, fine="tall")])[0],
    "relabel": lambda workspace: workspace.relabel([1, 2, 5], label="mug", fine="tall"),
    "remove": lambda workspace: workspace.remove([1, 3, 5]),
    "forget": lambda workspace: workspace.forget("cup"),
    "rename": lambda workspace: workspace.rename("cup", "mug"),
    "merge": lambda workspace: workspace.merge("cup", "pen"),
    "split": lambda workspace: workspace.split("cup"),
}


def state(workspace):
    return (labels(workspace), [(c.id, c.name, c.split, c.fine) for c in workspace.classes().items])


@pytest.fixture
def workspace(workspace):
    workspace.teach([*FOUR, new_example("pen", fine="red")])
    return workspace


@pytest.mark.parametrize("kind", CHANGES)
def test_undo_restores_the_state_before_a_change(workspace, kind):
    before = state(workspace)
    done = CHANGES[kind](workspace)
    assert state(workspace) != before
    change = workspace.undo()
    assert state(workspace) == before
    assert change.kind == "undo"
    assert change.summary.startswith(f"undid {kind} {done.event}: ")


def test_undoing_twice_undoes_two_changes(workspace):
    workspace.rename("cup", "mug")
    workspace.remove(1)
    workspace.undo()
    workspace.undo()
    assert counts(workspace) == {"cup": 4, "pen": 1}


def test_undoing_an_unsplit_splits_the_class_again(workspace):
    workspace.split("cup")
    workspace.unsplit("cup")
    workspace.undo()
    assert workspace.class_named("cup").split


def test_all_changes_can_be_undone(workspace):
    for _ in range(5):
        workspace.undo()
    assert counts(workspace) == {}
    with pytest.raises(ConflictError, match="there is nothing to undo"):
        workspace.undo()


def test_an_undone_change_is_not_done_again(workspace):
    workspace.rename("cup", "mug")
    workspace.undo()
    workspace.undo()
    assert counts(workspace) == {"cup": 4}


def test_only_the_named_change_is_undone(workspace):
    named = workspace.remove(1).event
    workspace.remove(2)
    with pytest.raises(ConflictError, match=rf"event {named + 1} \(remove\), not {named}"):
        workspace.undo(event=named)
    workspace.undo(event=named + 1)
    workspace.undo(event=named)
    assert counts(workspace) == {"cup": 4, "pen": 1}


def test_undoing_the_same_event_twice_is_an_error(workspace):
    event = workspace.remove(1).event
    workspace.undo(event=event)
    with pytest.raises(ConflictError, match=f"event {event} was undone already"):
        workspace.undo(event=event)


@pytest.mark.parametrize("event", [0, -1, 99, 1 << 70])
def test_undoing_an_unknown_event_is_refused(workspace, event):
    with pytest.raises(ConflictError, match=f"there is no event {event} to undo"):
        workspace.undo(event=event)


def test_events_of_the_model_do_not_prevent_undo(workspace):
    workspace.remove(1)
    cup = workspace.class_named("cup")
    workspace._writer.record_guesses(cup.id, [])
    with pytest.raises(ConflictError, match=r"event 7 \(guess\) cannot be undone"):
        workspace.undo(event=7)
    assert workspace.undo().summary.startswith("undid remove")


def test_the_log_links_an_undo_and_the_undone_change(workspace):
    workspace.remove(1)
    workspace.undo()
    newest, undone, *_ = workspace.events().items
    assert (newest.kind, newest.undoes, undone.undone_by) == ("undo", undone.seq, newest.seq)


def test_the_change_that_undo_would_undo_can_be_read(workspace):
    assert workspace.undoable().seq == 5
    workspace.undo()
    assert workspace.undoable().seq == 4


def test_all_changes_since_an_event_are_undone(workspace):
    before, version = state(workspace), workspace.version
    for kind in ("teach", "split", "merge", "relabel", "remove", "forget"):
        if kind == "forget":
            workspace.forget("mug")
        else:
            CHANGES[kind](workspace)
    change = workspace.undo(since=version + 1)
    assert change.summary.startswith("undid 6 changes: ")
    assert change.event == workspace.version
    assert state(workspace) == before
    assert workspace.check() == []


def test_a_number_of_changes_is_undone(workspace):
    for name in ("a", "b", "c"):
        workspace.rename(workspace.classes().items[0].name, name)
    workspace.undo(count=2)
    assert "a" in counts(workspace)
    assert workspace.undoable().kind == "rename"


def test_projections_get_the_events_of_several_undone_changes(workspace):
    workspace._writer.publisher.projection = live = Mirror()
    live.rebuild(workspace.log)
    workspace.relabel(1, label="mug")
    workspace.teach([new_example("mug", 8), new_example("mug", 9)])
    workspace.undo(since=6)
    replayed = Mirror()
    replayed.rebuild(workspace.log)
    assert live.places == replayed.places


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 9}, "only 5 changes can be undone, not 9"),
        ({"since": 99}, "there is nothing to undo since event 99"),
        ({"since": 1, "count": 2}, "one of event, since and a count"),
        ({"event": 1, "since": 1}, "one of event, since and a count"),
        ({"count": 0}, "one of event, since and a count"),
    ],
)
def test_several_changes_are_all_undone_or_none(workspace, options, message):
    with pytest.raises(WorkspaceError, match=message):
        workspace.undo(**options)
    assert workspace.version == 5


def test_no_change_before_an_erasure_can_be_undone(workspace):
    workspace.forget("pen", erase=True)
    workspace.rename("cup", "mug")
    with pytest.raises(ConflictError, match=r"event 6 \(forget\) erased examples"):
        workspace.undo(since=1)
    assert "mug" in counts(workspace)
