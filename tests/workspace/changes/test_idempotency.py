"""Idempotency keys: a repeated request has no effect."""

from __future__ import annotations

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import KeyReusedError, Request, Workspace
from evergrow.workspace.changes import idempotency
from tests.workspace.builders import counts, new_example, new_workspace, picture, request_with_key


def test_an_example_with_a_known_key_is_not_taught_again(workspace):
    once = new_example("cup", 1, request=request_with_key("k"), picture=picture(1), fine="red")
    (first,) = workspace.teach([once])
    workspace.relabel(1, label="mug")
    assert workspace.teach([once]) == [first]
    assert counts(workspace) == {"mug": 1}


def test_a_key_is_known_after_opening_again(tmp_path):
    with new_workspace(tmp_path) as workspace:
        first = workspace.teach([new_example("cup", 1, request=request_with_key("k"))])
    with Workspace.open(tmp_path / "workspace") as workspace:
        assert workspace.teach([new_example("cup", 1, request=request_with_key("k"))]) == first


def test_a_key_twice_in_one_call_is_taught_once(workspace):
    first, second = workspace.teach([new_example("cup", 1, request=request_with_key("k"))] * 2)
    assert first == second
    assert counts(workspace) == {"cup": 1}


@pytest.mark.parametrize(
    "other",
    [
        new_example("cup", 2, request=request_with_key("k")),
        new_example("pen", 1, request=request_with_key("k")),
        new_example("cup", 1, fine="red", request=request_with_key("k")),
        new_example("cup", 1, picture=picture(1), request=request_with_key("k")),
    ],
)
def test_a_key_with_another_example_is_refused(workspace, other):
    workspace.teach([new_example("cup", 1, request=request_with_key("k"))])
    with pytest.raises(KeyReusedError, match="the key 'k' was used for another request before"):
        workspace.teach([other])


def test_a_key_with_another_example_in_one_call_is_refused(workspace):
    with pytest.raises(KeyReusedError):
        workspace.teach([new_example("cup", n, request=request_with_key("k")) for n in range(2)])


def test_keys_of_different_actors_are_independent(workspace):
    for actor in ("robot", "phone"):
        workspace.teach([new_example("cup", actor, request=request_with_key("k", actor))])
    assert counts(workspace) == {"cup": 2}


def test_a_change_with_a_known_key_is_not_made_again(workspace):
    workspace.teach([new_example("cup", n) for n in range(3)])
    first = workspace.undo(request=request_with_key("k"))
    assert workspace.undo(request=request_with_key("k")) == first
    assert counts(workspace) == {"cup": 2}


def test_a_key_of_a_change_is_refused_for_an_example(workspace):
    workspace.teach([new_example("cup")])
    workspace.undo(request=request_with_key("k"))
    with pytest.raises(KeyReusedError):
        workspace.teach([new_example("cup", request=request_with_key("k"))])


def test_a_failed_change_leaves_its_key_unused(workspace):
    with pytest.raises(WorkspaceError):
        workspace.forget("cup", request=request_with_key("k"))
    workspace.teach([new_example("cup", request=request_with_key("k"))])
    assert counts(workspace) == {"cup": 1}


def test_the_answer_of_a_key_can_be_looked_up(workspace):
    request = Request("robot", "k", "digest")
    assert workspace.stored_answer(request) is None
    (first,) = workspace.teach([new_example("cup", request=request)])
    assert workspace.stored_answer(request) == first
    with pytest.raises(KeyReusedError):
        workspace.stored_answer(Request("robot", "k", "another"))


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_that_is_empty_or_too_long_is_refused(workspace, key):
    with pytest.raises(WorkspaceError, match="1 to 255 characters"):
        workspace.teach([new_example("cup", request=request_with_key(key))])


def test_only_the_newest_keys_are_stored(workspace, monkeypatch):
    monkeypatch.setattr(idempotency, "KEPT_KEYS", 2)
    for n in range(3):
        workspace.teach([new_example("cup", n, request=request_with_key(f"k{n}"))])
    workspace.teach([new_example("cup", 2, request=request_with_key("k2"))])
    assert counts(workspace) == {"cup": 3}
    workspace.teach([new_example("cup", 0, request=request_with_key("k0"))])
    assert counts(workspace) == {"cup": 4}


def test_keys_of_one_actor_do_not_evict_those_of_another(workspace, monkeypatch):
    monkeypatch.setattr(idempotency, "KEPT_KEYS", 2)
    mine = Request("robot", "mine")
    workspace.teach([new_example("cup", 0, request=mine)])
    for n in range(1, 6):
        workspace.teach([new_example("cup", n, request=Request("flood", f"k{n}"))])
    workspace.teach([new_example("cup", 0, request=mine)])
    assert counts(workspace) == {"cup": 6}
    workspace.teach([new_example("cup", 1, request=Request("flood", "k1"))])
    assert counts(workspace) == {"cup": 7}
