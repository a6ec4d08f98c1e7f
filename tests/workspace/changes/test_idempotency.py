"""Keys: asking twice with one is harmless."""

from __future__ import annotations

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import KeyReusedError, Request, Workspace, keys
from tests.workspace.builders import asked, counts, lesson, made, picture


def test_a_lesson_with_a_known_key_is_answered_and_not_taught_again(tmp_path):
    with made(tmp_path) as workspace:
        once = lesson("cup", 1, request=asked("k"), picture=picture(1), fine="red")
        (first,) = workspace.teach([once])
        workspace.relabel(1, label="mug")
        assert workspace.teach([once]) == [first]
        assert counts(workspace) == {"mug": 1}


def test_a_key_is_known_after_opening_again(tmp_path):
    with made(tmp_path) as workspace:
        first = workspace.teach([lesson("cup", 1, request=asked("k"))])
    with Workspace.open(tmp_path / "workspace") as workspace:
        assert workspace.teach([lesson("cup", 1, request=asked("k"))]) == first


def test_a_key_twice_in_one_call_is_taught_once(tmp_path):
    with made(tmp_path) as workspace:
        first, second = workspace.teach([lesson("cup", 1, request=asked("k"))] * 2)
        assert first == second
        assert counts(workspace) == {"cup": 1}


@pytest.mark.parametrize(
    "other",
    [
        lesson("cup", 2, request=asked("k")),
        lesson("pen", 1, request=asked("k")),
        lesson("cup", 1, fine="red", request=asked("k")),
        lesson("cup", 1, picture=picture(1), request=asked("k")),
    ],
)
def test_a_key_with_another_lesson_is_refused(tmp_path, other):
    with made(tmp_path) as workspace:
        workspace.teach([lesson("cup", 1, request=asked("k"))])
        with pytest.raises(KeyReusedError, match="the key 'k' came with another request before"):
            workspace.teach([other])


def test_a_key_with_another_lesson_in_one_call_is_refused(tmp_path):
    with made(tmp_path) as workspace, pytest.raises(KeyReusedError):
        workspace.teach([lesson("cup", n, request=asked("k")) for n in range(2)])


def test_a_key_belongs_to_who_used_it(tmp_path):
    with made(tmp_path) as workspace:
        for actor in ("robot", "phone"):
            workspace.teach([lesson("cup", actor, request=asked("k", actor))])
        assert counts(workspace) == {"cup": 2}


def test_a_change_with_a_known_key_is_answered_and_not_done_again(tmp_path):
    with made(tmp_path) as workspace:
        workspace.teach([lesson("cup", n) for n in range(3)])
        first = workspace.undo(request=asked("k"))
        assert workspace.undo(request=asked("k")) == first
        assert counts(workspace) == {"cup": 2}


def test_a_key_of_a_lesson_is_refused_for_a_change(tmp_path):
    with made(tmp_path) as workspace:
        workspace.teach([lesson("cup", request=asked("k"))])
        with pytest.raises(KeyReusedError):
            workspace.undo(request=asked("k"))


def test_a_key_of_a_change_is_refused_for_a_lesson(tmp_path):
    with made(tmp_path) as workspace:
        workspace.teach([lesson("cup")])
        workspace.undo(request=asked("k"))
        with pytest.raises(KeyReusedError):
            workspace.teach([lesson("cup", request=asked("k"))])


def test_a_failed_change_leaves_its_key_unused(tmp_path):
    with made(tmp_path) as workspace:
        with pytest.raises(WorkspaceError):
            workspace.forget("cup", request=asked("k"))
        workspace.teach([lesson("cup", request=asked("k"))])
        assert counts(workspace) == {"cup": 1}


def test_the_answer_of_a_key_can_be_looked_up(tmp_path):
    with made(tmp_path) as workspace:
        request = Request("robot", "k", "digest")
        assert workspace.taught_with(request) is None
        (first,) = workspace.teach([lesson("cup", request=request)])
        assert workspace.taught_with(request) == first
        with pytest.raises(KeyReusedError):
            workspace.taught_with(Request("robot", "k", "another"))


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_that_is_empty_or_too_long_is_refused(tmp_path, key):
    with made(tmp_path) as workspace, pytest.raises(WorkspaceError, match="1 to 255 characters"):
        workspace.teach([lesson("cup", request=asked(key))])


def test_only_the_newest_keys_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "KEPT_KEYS", 2)
    with made(tmp_path) as workspace:
        for n in range(3):
            workspace.teach([lesson("cup", n, request=asked(f"k{n}"))])
        workspace.teach([lesson("cup", 2, request=asked("k2"))])
        assert counts(workspace) == {"cup": 3}
        workspace.teach([lesson("cup", 0, request=asked("k0"))])
        assert counts(workspace) == {"cup": 4}
