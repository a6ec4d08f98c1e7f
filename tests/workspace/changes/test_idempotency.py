"""Keys: asking twice with one is harmless."""

from __future__ import annotations

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import KeyReusedError, Request, Workspace
from evergrow.workspace.changes import idempotency
from tests.workspace.builders import asked, counts, made, new_example, picture


def test_a_example_with_a_known_key_is_answered_and_not_taught_again(tmp_path):
    with made(tmp_path) as workspace:
        once = new_example("cup", 1, request=asked("k"), picture=picture(1), fine="red")
        (first,) = workspace.teach([once])
        workspace.relabel(1, label="mug")
        assert workspace.teach([once]) == [first]
        assert counts(workspace) == {"mug": 1}


def test_a_key_is_known_after_opening_again(tmp_path):
    with made(tmp_path) as workspace:
        first = workspace.teach([new_example("cup", 1, request=asked("k"))])
    with Workspace.open(tmp_path / "workspace") as workspace:
        assert workspace.teach([new_example("cup", 1, request=asked("k"))]) == first


def test_a_key_twice_in_one_call_is_taught_once(tmp_path):
    with made(tmp_path) as workspace:
        first, second = workspace.teach([new_example("cup", 1, request=asked("k"))] * 2)
        assert first == second
        assert counts(workspace) == {"cup": 1}


@pytest.mark.parametrize(
    "other",
    [
        new_example("cup", 2, request=asked("k")),
        new_example("pen", 1, request=asked("k")),
        new_example("cup", 1, fine="red", request=asked("k")),
        new_example("cup", 1, picture=picture(1), request=asked("k")),
    ],
)
def test_a_key_with_another_example_is_refused(tmp_path, other):
    with made(tmp_path) as workspace:
        workspace.teach([new_example("cup", 1, request=asked("k"))])
        with pytest.raises(KeyReusedError, match="the key 'k' was used for another request before"):
            workspace.teach([other])


def test_a_key_with_another_example_in_one_call_is_refused(tmp_path):
    with made(tmp_path) as workspace, pytest.raises(KeyReusedError):
        workspace.teach([new_example("cup", n, request=asked("k")) for n in range(2)])


def test_a_key_belongs_to_who_used_it(tmp_path):
    with made(tmp_path) as workspace:
        for actor in ("robot", "phone"):
            workspace.teach([new_example("cup", actor, request=asked("k", actor))])
        assert counts(workspace) == {"cup": 2}


def test_a_change_with_a_known_key_is_answered_and_not_done_again(tmp_path):
    with made(tmp_path) as workspace:
        workspace.teach([new_example("cup", n) for n in range(3)])
        first = workspace.undo(request=asked("k"))
        assert workspace.undo(request=asked("k")) == first
        assert counts(workspace) == {"cup": 2}


def test_a_key_of_a_example_is_refused_for_a_change(tmp_path):
    with made(tmp_path) as workspace:
        workspace.teach([new_example("cup", request=asked("k"))])
        with pytest.raises(KeyReusedError):
            workspace.undo(request=asked("k"))


def test_a_key_of_a_change_is_refused_for_a_example(tmp_path):
    with made(tmp_path) as workspace:
        workspace.teach([new_example("cup")])
        workspace.undo(request=asked("k"))
        with pytest.raises(KeyReusedError):
            workspace.teach([new_example("cup", request=asked("k"))])


def test_a_failed_change_leaves_its_key_unused(tmp_path):
    with made(tmp_path) as workspace:
        with pytest.raises(WorkspaceError):
            workspace.forget("cup", request=asked("k"))
        workspace.teach([new_example("cup", request=asked("k"))])
        assert counts(workspace) == {"cup": 1}


def test_the_answer_of_a_key_can_be_looked_up(tmp_path):
    with made(tmp_path) as workspace:
        request = Request("robot", "k", "digest")
        assert workspace.stored_answer(request) is None
        (first,) = workspace.teach([new_example("cup", request=request)])
        assert workspace.stored_answer(request) == first
        with pytest.raises(KeyReusedError):
            workspace.stored_answer(Request("robot", "k", "another"))


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_that_is_empty_or_too_long_is_refused(tmp_path, key):
    with made(tmp_path) as workspace, pytest.raises(WorkspaceError, match="1 to 255 characters"):
        workspace.teach([new_example("cup", request=asked(key))])


def test_only_the_newest_keys_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(idempotency, "KEPT_KEYS", 2)
    with made(tmp_path) as workspace:
        for n in range(3):
            workspace.teach([new_example("cup", n, request=asked(f"k{n}"))])
        workspace.teach([new_example("cup", 2, request=asked("k2"))])
        assert counts(workspace) == {"cup": 3}
        workspace.teach([new_example("cup", 0, request=asked("k0"))])
        assert counts(workspace) == {"cup": 4}
