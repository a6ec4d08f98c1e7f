"""Undoing changes."""

from __future__ import annotations

from time import perf_counter

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import ConflictError, Request
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

SUMMARIES = {
    "teach": "1 example of 'mug' removed",
    "relabel": "3 examples of 2 classes moved back",
    "remove": "3 examples of 2 classes restored",
    "forget": "4 examples of 'cup' restored",
    "rename": "'mug' is 'cup' again",
    "merge": "4 examples of 'cup' moved back",
    "split": "'cup' is one class again",
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
    CHANGES[kind](workspace)
    assert state(workspace) != before
    change = workspace.undo()
    assert state(workspace) == before
    assert (change.kind, change.n_changes) == ("undo", 1)
    assert change.summary == f"Undone: {SUMMARIES[kind]}"


def test_undoing_an_unsplit_splits_the_class_again(workspace):
    workspace.split("cup")
    workspace.unsplit("cup")
    workspace.undo()
    assert workspace.class_named("cup").split


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
    with pytest.raises(ConflictError, match=f"event {event} cannot be undone"):
        workspace.undo(event=event)


def test_events_of_the_model_do_not_prevent_undo(workspace):
    workspace.remove(1)
    cup = workspace.class_named("cup")
    workspace._writer.record_guesses(cup.id, [])
    with pytest.raises(ConflictError, match=r"event 7 \(guess\) cannot be undone"):
        workspace.undo(event=7)
    assert workspace.undo().summary == "Undone: 1 example of 'cup' restored"


def test_the_log_links_an_undo_and_the_undone_change(workspace):
    workspace.remove(1)
    workspace.undo()
    newest, undone, *_ = workspace.events().items
    assert (newest.kind, newest.undoes, undone.undone_by) == ("undo", undone.seq, newest.seq)


def test_the_change_that_undo_would_undo_can_be_read(workspace):
    assert workspace.undoable().event == 5
    workspace.undo()
    assert workspace.undoable().event == 4


def test_all_changes_since_an_event_are_undone(workspace):
    before, version = state(workspace), workspace.version
    for kind in ("teach", "split", "merge", "relabel", "remove", "forget"):
        if kind == "forget":
            workspace.forget("mug")
        else:
            CHANGES[kind](workspace)
    change = workspace.undo(since=version + 1)
    assert change.n_changes == 6
    assert change.event == workspace.version
    assert state(workspace) == before
    assert workspace.check() == []


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
        ({"count": 9}, "only 5 steps can be undone, not 9"),
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


def as_action(action, actor="page"):
    return Request(actor, action=action)


def test_the_changes_of_one_action_are_one_step(workspace):
    before = state(workspace)
    workspace.teach([new_example("mug", n, request=as_action("drop")) for n in range(3)])
    workspace.rename("mug", "beaker", request=as_action("drop"))
    step = workspace.undoable()
    assert (step.event, step.kind, step.n_changes, step.n_examples) == (9, "rename", 4, 3)
    change = workspace.undo(event=9)
    assert (change.n_changes, change.n_examples) == (4, 3)
    assert change.summary == "Undone: 'beaker' is 'mug' again; 3 examples of 'mug' removed"
    assert state(workspace) == before
    assert workspace.check() == []


@pytest.mark.parametrize(
    "requests",
    [
        (as_action("a"), as_action("b")),
        (as_action("a"), as_action("a", "another page")),
        (as_action("a"), Request("page")),
        (Request("page"), Request("page")),
    ],
)
def test_other_actions_and_actors_are_other_steps(workspace, requests):
    for n, request in enumerate(requests):
        workspace.teach([new_example("mug", n, request=request)])
    assert workspace.undo().n_changes == 1
    assert counts(workspace)["mug"] == 1


def test_an_action_that_was_interrupted_by_another_is_two_steps(workspace):
    for n, action in enumerate("aba"):
        workspace.teach([new_example("mug", n, request=as_action(action))])
    assert workspace.undoable().n_changes == 1
    assert workspace.undo(count=2).n_changes == 2
    assert workspace.undo().n_changes == 1


def test_what_was_undone_does_not_divide_an_action(workspace):
    workspace.teach([new_example("mug", 0, request=as_action("a"))])
    workspace.rename("cup", "beaker")
    workspace.undo()
    workspace.teach([new_example("mug", 1, request=as_action("a"))])
    assert workspace.undo().n_changes == 2


def test_only_the_newest_change_names_an_action(workspace):
    workspace.teach([new_example("mug", n, request=as_action("a")) for n in range(2)])
    with pytest.raises(ConflictError, match=r"event 7 \(teach\), not 6"):
        workspace.undo(event=6)


def test_a_step_is_described_by_all_of_its_changes(workspace):
    for label in ("cup", "pen"):
        workspace.forget(label, request=as_action("tidy"))
    step = workspace.undoable()
    assert (step.kinds, step.labels, step.n_labels) == ({"forget": 2}, ("cup", "pen"), 2)
    assert workspace.undo().summary == "Undone: 5 examples of 2 classes restored"
    assert workspace.check() == []


def test_a_name_that_became_free_is_given_back_in_order(workspace):
    before = state(workspace)
    workspace.forget("pen", request=as_action("a"))
    workspace.rename("cup", "pen", request=as_action("a"))
    workspace.teach([new_example("cup", 7, request=as_action("a"))])
    workspace.relabel([6], label="pen", request=as_action("a"))
    assert workspace.undo().n_changes == 4
    assert state(workspace) == before
    assert workspace.check() == []


def test_a_class_name_cannot_pretend_to_be_an_action(workspace):
    workspace.teach([new_example('x", "action": "a', 1)])
    workspace.teach([new_example("mug", 2, request=as_action("a", "command line"))])
    assert workspace.undo().n_changes == 1


def test_long_steps_are_undone_quickly(workspace):
    workspace.teach([new_example("mug", n, request=as_action("a")) for n in range(3000)])
    began = perf_counter()
    assert workspace.undoable().n_changes == 3000
    assert workspace.undo().n_examples == 3000
    assert perf_counter() - began < 5
