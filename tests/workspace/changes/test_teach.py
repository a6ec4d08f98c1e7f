"""Teaching: what is stored, what is refused, which pictures are known already."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from evergrow import WorkspaceError
from evergrow.workspace import (
    ConflictError,
    KeyReusedError,
    NewExample,
    NoSuchExampleError,
    Workspace,
)
from tests.workspace.builders import (
    Mirror,
    counts,
    labels,
    new_example,
    new_workspace,
    picture,
    request_with_key,
    row,
)


def test_taught_examples_exist_after_reopening(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", 1, fine="red"), new_example("pen", 2)])
    with Workspace.open(tmp_path / "workspace") as workspace:
        assert labels(workspace) == {1: ("cup", "red"), 2: ("pen", None)}
        assert workspace.embedding(2).tobytes() == row(("pen", 2)).tobytes()


def test_the_result_describes_the_example_and_its_class(tmp_path):
    with new_workspace(tmp_path) as workspace:
        first, second = workspace.teach(
            [new_example("cup", 1, request=request_with_key(None)), new_example("cup", 2)]
        )
    assert (first.event, first.new_class, first.n_examples, first.duplicate) == (1, True, 1, False)
    assert (second.event, second.new_class, second.n_examples) == (2, False, 2)
    assert (first.example.actor, second.example.actor) == ("robot", "command line")


def test_a_picture_is_stored_unchanged_under_its_hash(workspace, tmp_path):
    (taught,) = workspace.teach([new_example("cup", picture=picture(1))])
    name = hashlib.sha256(picture(1).content).hexdigest()
    assert taught.example.image == name
    stored = tmp_path / "workspace" / "images" / name[:2] / name
    assert stored.read_bytes() == workspace.picture(1) == picture(1).content


def test_a_picture_that_the_class_has_is_not_taught_twice(workspace):
    (first,) = workspace.teach([new_example("cup", 1, picture=picture(1))])
    (again,) = workspace.teach([new_example("cup", 2, picture=picture(1))])
    assert again.duplicate
    assert again.example == first.example
    assert workspace.version == 1


def test_a_picture_of_another_class_stays_there(workspace):
    cup, mug = (new_example(name, picture=picture(1)) for name in ("cup", "mug"))
    taught, refused = workspace.teach([cup, mug])
    assert (refused.known_as, refused.example.id, refused.duplicate) == ("cup", 1, True)
    (refused,) = workspace.teach([mug])
    assert refused.known_as == "cup"
    assert counts(workspace) == {"cup": 1}
    assert workspace.version == taught.event


def test_a_picture_of_another_class_is_moved_if_asked(workspace):
    workspace.teach([new_example("cup", n, picture=picture(n), fine="red") for n in range(2)])
    (moved,) = workspace.teach([new_example("mug", 5, picture=picture(1), move=True)])
    assert (moved.moved_from, moved.example.id, moved.example.label) == ("cup", 2, "mug")
    assert (moved.new_class, moved.n_examples, moved.duplicate) == (True, 1, False)
    assert labels(workspace) == {1: ("cup", "red"), 2: ("mug", None)}
    assert workspace.check() == []
    assert workspace.undo().summary == "Undone: 1 example of 'cup' moved back"
    assert labels(workspace)[2] == ("cup", "red")
    assert workspace.check() == []


def test_a_refused_picture_can_be_sent_again_with_the_same_key(workspace):
    workspace.teach([new_example("cup", picture=picture(1))])
    mug = new_example("mug", picture=picture(1), request=request_with_key("k"))
    for _ in range(2):
        (refused,) = workspace.teach([mug])
        assert (refused.known_as, refused.replayed) == ("cup", False)
    (moved,) = workspace.teach([replace(mug, move=True)])
    assert moved.moved_from == "cup"
    with pytest.raises(KeyReusedError):
        workspace.teach([mug])


def test_a_known_picture_takes_a_finer_name(workspace):
    workspace.teach([new_example("cup", n, picture=picture(n)) for n in range(2)])
    (again,) = workspace.teach([new_example("cup", 1, picture=picture(1), fine="red")])
    assert (again.duplicate, again.known_fine) == (True, "taken")
    assert (again.example.fine, again.example.fine_kind) == ("red", "given")
    assert again.event == workspace.version == 3
    assert labels(workspace) == {1: ("cup", None), 2: ("cup", "red")}
    assert workspace.check() == []
    workspace.undo()
    assert labels(workspace)[2] == ("cup", None)


def test_a_known_picture_keeps_its_given_finer_name(workspace):
    workspace.teach([new_example("cup", picture=picture(1), fine="red")])
    (other,) = workspace.teach([new_example("cup", picture=picture(1), fine="blue")])
    assert (other.known_fine, other.example.fine) == ("kept", "red")
    (same,) = workspace.teach([new_example("cup", picture=picture(1), fine="red")])
    assert (same.duplicate, same.known_fine) == (True, None)
    assert workspace.version == 1


def test_the_first_finer_name_in_one_call_counts(workspace):
    taught = workspace.teach(
        [
            new_example("cup", 1, picture=picture(1)),
            new_example("cup", 1, picture=picture(1), fine="red"),
            new_example("cup", 1, picture=picture(1), fine="blue"),
            new_example("cup", 2, fine="red"),
        ]
    )
    assert [one.known_fine for one in taught] == [None, "taken", "kept", None]
    assert [one.event for one in taught] == [1, 2, 1, 3]
    assert labels(workspace) == {1: ("cup", "red"), 2: ("cup", "red")}
    assert workspace.check() == []


def test_a_taught_finer_name_replaces_a_guess(workspace):
    workspace.teach([new_example("cup", n, fine="red") for n in range(2)])
    workspace.teach([new_example("cup", n, fine="blue") for n in range(2, 4)])
    workspace.teach([new_example("cup", 4, picture=picture(4))])
    workspace.split("cup")
    assert workspace.example(5).fine_kind == "guessed"
    (again,) = workspace.teach([new_example("cup", 4, picture=picture(4), fine="green")])
    assert again.known_fine == "taken"
    assert workspace.example(5).fine == "green"
    assert workspace.check() == []


def test_projections_get_finer_names_live_as_in_a_replay(workspace):
    workspace._writer.publisher.projection = live = Mirror()
    workspace.teach([new_example("cup", n, picture=picture(n)) for n in range(3)])
    workspace.teach(
        [
            new_example("cup", 1, picture=picture(1), fine="red"),
            new_example("pen", 5),
            new_example("cup", 6),
        ]
    )
    replayed = Mirror()
    replayed.rebuild(workspace.log)
    assert (live.places, live.rows) == (replayed.places, replayed.rows)


@pytest.mark.parametrize("damage", [b"", b"pictuRe 1", None])
def test_teaching_an_image_again_restores_its_lost_file(workspace, tmp_path, damage):
    (taught,) = workspace.teach([new_example("cup", picture=picture(1))])
    name = taught.example.image
    path = tmp_path / "workspace" / "images" / name[:2] / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    (finding,) = workspace.check()
    assert "teach the same images again" in finding.mend
    assert workspace.teach([new_example("cup", picture=picture(1))])[0].duplicate
    assert workspace.check() == []


def test_one_invalid_example_prevents_all_others(workspace, tmp_path):
    with pytest.raises(WorkspaceError, match="example 2 of 2: label must not be empty"):
        workspace.teach([new_example("cup", picture=picture(1)), new_example("")])
    assert (workspace.version, counts(workspace)) == (0, {})
    assert not list((tmp_path / "workspace" / "images").rglob("*"))


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        ([[1.0, 2.0, 3.0]], "one vector of numbers, got shape"),
        ([], "one vector of numbers"),
        (["a", "b", "c"], "must be a vector of numbers"),
        ([1.0, 2.0], "must have 3 numbers, got 2"),
        ([1.0, np.nan, 2.0], "finite in single precision"),
        ([1.0, 1e60, 2.0], "finite in single precision"),
    ],
)
def test_a_wrong_embedding_is_refused(tmp_path, embedding, message):
    with (
        new_workspace(tmp_path, n_features=3) as workspace,
        pytest.raises(WorkspaceError, match=message),
    ):
        workspace.teach([NewExample(embedding, "cup")])


def test_the_first_example_fixes_the_length_of_embeddings(tmp_path):
    with new_workspace(tmp_path) as workspace:
        assert workspace.n_features is None
        workspace.teach([NewExample(np.ones(5), "cup")])
        with pytest.raises(WorkspaceError, match="must have 5 numbers, got 4"):
            workspace.teach([NewExample(np.ones(4), "cup")])
    with Workspace.open(tmp_path / "workspace") as workspace:
        assert workspace.n_features == 5


def test_examples_of_one_call_must_agree_on_the_length(workspace):
    with pytest.raises(WorkspaceError, match=r"example 2 of 2: .* must have 5 numbers, got 4"):
        workspace.teach([NewExample(np.ones(5), "cup"), NewExample(np.ones(4), "cup")])
    assert workspace.n_features is None


def test_embeddings_beyond_one_file_go_to_the_next(tmp_path):
    with new_workspace(tmp_path, rows_per_shard=2) as workspace:
        workspace.teach([new_example("cup", n) for n in range(5)])
        assert [workspace.embedding(n + 1).tobytes() for n in range(5)] == [
            row(("cup", n)).tobytes() for n in range(5)
        ]
        assert len(list((tmp_path / "workspace" / "embeddings").iterdir())) == 3


def test_files_of_embeddings_are_ordinary_matrices(tmp_path):
    with new_workspace(tmp_path, rows_per_shard=2) as workspace:
        workspace.teach([new_example("cup", n) for n in range(3)])
    matrix = np.load(tmp_path / "workspace" / "embeddings" / "000001.npy")
    assert matrix.tolist() == [row(("cup", 2)).tolist(), [0.0, 0.0, 0.0]]


def test_there_are_no_more_classes_than_allowed(tmp_path):
    with new_workspace(tmp_path, max_classes=2) as workspace:
        workspace.teach([new_example("a"), new_example("b")])
        with pytest.raises(ConflictError, match="there are 2 classes already"):
            workspace.teach([new_example("c")])
        workspace.teach([new_example("a", 2)])
        workspace.forget("b")
        workspace.teach([new_example("c")])
        assert counts(workspace) == {"a": 2, "c": 1}


def test_an_unknown_example_is_an_error(workspace):
    for number in (1, 0, -1, 1 << 70):
        with pytest.raises(NoSuchExampleError, match=f"example {number} does not exist"):
            workspace.example(number)


def test_the_picture_of_an_example_without_one_is_an_error(workspace):
    workspace.teach([new_example("cup")])
    with pytest.raises(NoSuchExampleError, match="example 1 has no image"):
        workspace.picture(1)


def test_a_missing_image_file_is_an_error_with_a_remedy(workspace, tmp_path):
    (taught,) = workspace.teach([new_example("cup", picture=picture(1))])
    name = taught.example.image
    (tmp_path / "workspace" / "images" / name[:2] / name).unlink()
    with pytest.raises(WorkspaceError, match="is missing: restore it from a backup"):
        workspace.picture(1)
