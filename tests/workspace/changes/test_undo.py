"""Taking back changes."""

from __future__ import annotations

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import ConflictError
from tests.workspace.builders import Mirror, counts, labels, made, new_example

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
def workspace(tmp_path):
    with made(tmp_path) as workspace:
        workspace.teach([*FOUR, new_example("pen", fine="red")])
        yield workspace


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_that_is_undone_leaves_all_as_before(workspace, kind):
    before = state(workspace)
    done = CHANGES[kind](workspace)
    assert state(workspace) != before
    change = workspace.undo()
    assert state(workspace) == before
    assert change.kind == "undo"
    assert change.summary.startswith(f"undid {kind} {done.event}: ")


def test_undoing_twice_takes_back_two_changes(workspace):
    workspace.rename("cup", "mug")
    workspace.remove(1)
    workspace.undo()
    workspace.undo()
    assert counts(workspace) == {"cup": 4, "pen": 1}


def test_a_class_can_be_split_again_after_undoing_the_join(workspace):
    workspace.split("cup")
    workspace.unsplit("cup")
    workspace.undo()
    assert workspace.class_named("cup").split


def test_everything_can_be_undone_until_there_is_nothing(workspace):
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


def test_undoing_the_same_event_twice_says_it_was_undone(workspace):
    event = workspace.remove(1).event
    workspace.undo(event=event)
    with pytest.raises(ConflictError, match=f"event {event} was undone already"):
        workspace.undo(event=event)


@pytest.mark.parametrize("event", [0, -1, 99, 1 << 70])
def test_undoing_an_event_that_is_not_there_is_refused(workspace, event):
    with pytest.raises(ConflictError, match=f"there is no event {event} to undo"):
        workspace.undo(event=event)


def test_what_the_model_wrote_down_is_not_in_the_way_of_undoing(workspace):
    workspace.remove(1)
    cup = workspace.class_named("cup")
    workspace._writer.record_guesses(cup.id, [])
    with pytest.raises(ConflictError, match=r"event 7 \(guess\) cannot be undone"):
        workspace.undo(event=7)
    assert workspace.undo().summary.startswith("undid remove")


def test_the_log_names_who_undid_what(workspace):
    workspace.remove(1)
    workspace.undo()
    newest, undone, *_ = workspace.events().items
    assert (newest.kind, newest.undoes, undone.undone_by) == ("undo", undone.seq, newest.seq)


def test_what_undo_would_take_back_can_be_seen_before(workspace):
    assert workspace.undoable().seq == 5
    workspace.undo()
    assert workspace.undoable().seq == 4


def test_all_changes_since_an_event_are_taken_back(workspace):
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


def test_so_many_changes_are_taken_back(workspace):
    for name in ("a", "b", "c"):
        workspace.rename(workspace.classes().items[0].name, name)
    workspace.undo(count=2)
    assert "a" in counts(workspace)
    assert workspace.undoable().kind == "rename"


def test_projections_hear_of_all_that_is_taken_back(workspace):
    workspace._writer.publisher.projection = live = Mirror()
    live.rebuild(workspace.log)
    workspace.relabel(1, label="mug")
    workspace.teach([new_example("mug", 8), new_example("mug", 9)])
    workspace.undo(since=6)
    replayed = Mirror()
    replayed.rebuild(workspace.log)
    assert live.places == replayed.places


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"count": 9}, "only 5 changes can be undone, not 9"),
        ({"since": 99}, "there is nothing to undo since event 99"),
        ({"since": 1, "count": 2}, "one of event, since and a count"),
        ({"event": 1, "since": 1}, "one of event, since and a count"),
        ({"count": 0}, "one of event, since and a count"),
    ],
)
def test_several_changes_are_taken_back_all_or_none(workspace, options, said):
    with pytest.raises(WorkspaceError, match=said):
        workspace.undo(**options)
    assert workspace.version == 5


def test_what_was_erased_stands_in_the_way_of_all_before_it(workspace):
    workspace.forget("pen", erase=True)
    workspace.rename("cup", "mug")
    with pytest.raises(ConflictError, match=r"event 6 \(forget\) erased examples"):
        workspace.undo(since=1)
    assert "mug" in counts(workspace)
