"""Relabelling, removing, forgetting, renaming, merging and splitting."""

from __future__ import annotations

import os

import numpy as np
import pytest

from evergrow import WorkspaceError
from evergrow.workspace import (
    ConflictError,
    KeyReusedError,
    NoSuchClassError,
    NoSuchExampleError,
    Workspace,
)
from evergrow.workspace.changes import writer
from evergrow.workspace.store.files import row_sha256
from tests.workspace.builders import (
    counts,
    labels,
    new_example,
    new_workspace,
    picture,
    request_with_key,
)


@pytest.fixture
def workspace(workspace):
    workspace.teach(
        [
            new_example("cup", 1, fine="red"),
            new_example("cup", 2, fine="blue"),
            new_example("cup", 3),
            new_example("pen", 4, fine="red"),
        ]
    )
    return workspace


def test_a_class_is_gone_with_its_last_example(workspace):
    workspace.relabel(4, label="cup")
    assert counts(workspace) == {"cup": 4}
    with pytest.raises(NoSuchClassError, match="class 'pen' does not exist"):
        workspace.class_named("pen")


def test_a_fine_name_can_be_removed(workspace):
    workspace.relabel(1, clear_fine=True)
    assert labels(workspace)[1] == ("cup", None)


def test_relabelling_to_the_same_names_changes_nothing(workspace):
    change = workspace.relabel(1, label="cup", fine="red")
    assert (change.n_examples, change.event, workspace.version) == (0, 4, 4)


def test_many_examples_are_relabelled_by_one_change(workspace):
    change = workspace.relabel([1, 2, 4], label="pen", fine="wide")
    assert (change.event, change.n_examples) == (5, 3)
    assert change.summary == "3 examples are 'pen' and 'wide' in it now"
    assert [labels(workspace)[n] for n in (1, 2, 4)] == [("pen", "wide")] * 3


@pytest.mark.parametrize("numbers", [[], [1, 99], list(range(1, 502))])
def test_either_all_examples_are_changed_or_none(workspace, numbers):
    before = labels(workspace)
    with pytest.raises(WorkspaceError, match="example"):
        workspace.relabel(numbers, label="pen")
    with pytest.raises(WorkspaceError, match="example"):
        workspace.remove(numbers)
    assert (labels(workspace), workspace.version) == (before, 4)


@pytest.mark.parametrize("options", [{}, {"fine": "a", "clear_fine": True}])
def test_relabelling_needs_valid_arguments(workspace, options):
    with pytest.raises(WorkspaceError, match="relabel"):
        workspace.relabel(1, **options)


def test_a_removed_example_does_not_exist_any_more(workspace):
    workspace.remove(4)
    assert 4 not in labels(workspace)
    with pytest.raises(NoSuchExampleError):
        workspace.remove(4)


def test_a_renamed_class_is_the_same_class(workspace):
    before = workspace.class_named("cup")
    workspace.rename("cup", "mug")
    after = workspace.class_named("mug")
    assert (after.id, after.fine, after.n_examples) == (before.id, before.fine, 3)


def test_a_fine_class_can_be_renamed(workspace):
    workspace.rename("red", "scarlet", within="cup")
    assert labels(workspace) == {
        1: ("cup", "scarlet"),
        2: ("cup", "blue"),
        3: ("cup", None),
        4: ("pen", "red"),
    }


def test_renaming_to_an_existing_class_suggests_merging(workspace):
    with pytest.raises(ConflictError, match="there is a class 'pen' already: merge 'cup' into it"):
        workspace.rename("cup", "pen")


def test_merged_classes_are_one_with_all_fine_names(workspace):
    change = workspace.merge("cup", "pen")
    assert change.n_examples == 3
    assert labels(workspace) == {
        1: ("pen", "red"),
        2: ("pen", "blue"),
        3: ("pen", None),
        4: ("pen", "red"),
    }
    (entry,) = workspace.classes().items
    assert {fine.name: fine.n_given for fine in entry.fine} == {"red": 2, "blue": 1}


def test_a_class_cannot_be_merged_into_itself(workspace):
    with pytest.raises(ConflictError, match="cannot be merged into itself"):
        workspace.merge("cup", "cup")


@pytest.mark.parametrize("change", ["forget", "split", "unsplit"])
def test_a_change_of_an_unknown_class_is_refused(workspace, change):
    with pytest.raises(NoSuchClassError, match="class 'mug' does not exist"):
        getattr(workspace, change)("mug")


def test_a_split_needs_two_fine_names_with_two_examples_each(workspace):
    with pytest.raises(ConflictError, match="there are: 'red' with 1, 'blue' with 1"):
        workspace.split("cup")


def test_a_class_stays_split_until_the_split_is_reversed(workspace):
    workspace.teach([new_example("cup", 5, fine="red"), new_example("cup", 6, fine="blue")])
    workspace.split("cup")
    assert workspace.class_named("cup").split
    with pytest.raises(ConflictError, match="'cup' is split already"):
        workspace.split("cup")
    workspace.unsplit("cup")
    assert not workspace.class_named("cup").split
    with pytest.raises(ConflictError, match="'cup' is not split"):
        workspace.unsplit("cup")


def test_guesses_have_a_probability_and_are_counted(workspace):
    cup = workspace.class_named("cup")
    red = cup.fine[0].id
    workspace._writer.record_guesses(cup.id, [(3, red, 0.75)])
    example = workspace.example(3)
    assert (example.fine, example.fine_kind, example.fine_probability) == ("red", "guessed", 0.75)
    assert workspace.class_named("cup").fine[0].n_guessed == 1


def test_a_confirmed_guess_is_given(workspace):
    cup = workspace.class_named("cup")
    workspace._writer.record_guesses(cup.id, [(3, cup.fine[0].id, 0.75)])
    workspace.relabel(3, fine="red")
    example = workspace.example(3)
    assert (example.fine, example.fine_kind, example.fine_probability) == ("red", "given", None)
    assert workspace.class_named("cup").fine[0].n_guessed == 0


def test_a_guess_never_replaces_a_given_fine_name(workspace):
    cup = workspace.class_named("cup")
    workspace._writer.record_guesses(cup.id, [(2, cup.fine[0].id, 0.9), (4, cup.fine[0].id, 0.9)])
    assert labels(workspace)[2] == ("cup", "blue")
    assert workspace.example(4).fine == "red"
    assert workspace.check() == []


def test_erasing_deletes_images_and_embeddings_for_good(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", n, picture=picture(n)) for n in range(3)])
        workspace.remove(1)
        workspace.teach([new_example("pen", 3, picture=picture(0))])
        # What was taken out before is erased too, but not a picture that is in use again.
        workspace.remove(2)
        workspace.forget("cup", erase=True)
        stored = [path for path in (tmp_path / "workspace" / "images").rglob("*") if path.is_file()]
        assert [path.read_bytes() for path in stored] == [picture(0).content]
        rows = workspace.log.rows(workspace.log.examples().ids)
        assert rows.any()
        assert not workspace._store.vectors.row(0).any()
        assert not workspace._store.vectors.row(1).any()
        assert not workspace._store.vectors.row(2).any()
        assert workspace.check() == []


def test_an_erasure_cannot_be_undone(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup"), new_example("pen")])
        workspace.forget("cup", erase=True)
        with pytest.raises(ConflictError, match="erased examples"):
            workspace.undo()
        assert workspace.undoable().event is None
        workspace.teach([new_example("pen", 2)])
        workspace.undo()
        assert counts(workspace) == {"pen": 1}


def test_an_interrupted_erasure_is_finished_on_opening(tmp_path, monkeypatch):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", 1, picture=picture(1)), new_example("pen")])
        monkeypatch.setattr(writer, "finish_erasure", lambda store: None)
        workspace.forget("cup", erase=True)
        monkeypatch.undo()
    with Workspace.open(tmp_path / "workspace") as workspace:
        assert not workspace._store.vectors.row(0).any()
        assert not [p for p in (tmp_path / "workspace" / "images").rglob("*") if p.is_file()]
        assert workspace.check() == []


def kept_of(folder):
    """Image files and rows that are still on disk."""
    images = [path for path in (folder / "images").rglob("*") if path.is_file()]
    rows = [np.load(path) for path in (folder / "embeddings").glob("*.npy")]
    return len(images), sum(int(one.any(axis=1).sum()) for one in rows)


def test_a_class_that_was_forgotten_and_taught_again_is_erased_completely(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", n, picture=picture(n)) for n in range(3)])
        workspace.forget("cup")
        workspace.teach([new_example("cup", 3, picture=picture(3))])
        change = workspace.forget("cup", erase=True)
        assert change.summary.endswith("with 1 example; 3 examples removed earlier erased as well")
        assert kept_of(tmp_path / "workspace") == (0, 0)
        assert workspace.check() == []


def test_examples_removed_before_a_merge_are_erased(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach(
            [
                new_example(label, n, picture=picture((label, n)))
                for label in ("cup", "pen")
                for n in range(2)
            ]
        )
        workspace.remove(1)
        workspace.merge("cup", "pen")
        workspace.forget("pen", erase=True)
        assert kept_of(tmp_path / "workspace") == (0, 0)


def test_a_class_that_was_forgotten_before_can_be_erased(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", 1, picture=picture(1)), new_example("pen", 2)])
        workspace.save_snapshot()
        workspace.forget("cup")
        change = workspace.forget("cup", erase=True)
        assert change.summary == "'cup' was forgotten before; 1 removed example erased now"
        assert kept_of(tmp_path / "workspace") == (0, 1)
        assert not list((tmp_path / "workspace" / "models").iterdir())
        assert workspace.undoable().event is None
        version = workspace.version
        assert "no removed example is left to erase" in workspace.forget("cup", erase=True).summary
        assert workspace.version == version
        with pytest.raises(NoSuchClassError):
            workspace.forget("mug", erase=True)
        assert workspace.check() == []


def test_the_image_of_an_example_whose_embedding_was_lost_can_be_erased(tmp_path):
    with new_workspace(tmp_path) as workspace:
        workspace.teach([new_example("cup", 1, picture=picture(1)), new_example("pen", 2)])
        workspace._writer.forget_lost([1])
        workspace._writer.publisher.rebuild()
        workspace.forget("pen", erase=True)
        assert kept_of(tmp_path / "workspace") == (0, 0)


@pytest.mark.slow
def test_an_erasure_leaves_no_hash_behind(tmp_path):
    """Neither of the pictures and embeddings nor of the requests, in no byte of any file."""
    taught, traces = [], []
    with new_workspace(tmp_path) as workspace:
        for n in range(300):
            label = "secret" if n % 3 == 0 else "cup"
            one = new_example(label, n, picture=picture(n), request=request_with_key(f"key {n}"))
            taught.append((one, workspace.teach([one])[0]))
        digests = dict(
            workspace._store.database.writer.execute("SELECT key, digest FROM request_key")
        )
        for n, (one, result) in enumerate(taught):
            if one.label == "secret":
                traces += [result.example.image, row_sha256(one.embedding), digests[f"key {n}"]]
        workspace.save_snapshot()
        workspace.forget("secret", erase=True)
        # Not even while it is open.
        assert not _found(tmp_path, traces)
        assert workspace.check() == []
        # A repeated request neither teaches again what was erased nor tells what it was.
        with pytest.raises(KeyReusedError, match="was erased: use a new key"):
            workspace.teach([taught[0][0]])
        (known,) = workspace.teach([taught[1][0]])
        assert known.replayed
    assert not _found(tmp_path, traces)


def test_the_answer_about_an_image_that_went_with_another_example_is_cleared(tmp_path):
    """One picture in two classes: the example that was removed before loses it too."""
    with new_workspace(tmp_path) as workspace:
        for n, label in enumerate(("mug", "cup")):
            workspace.teach(
                [new_example(label, n, picture=picture(7), request=request_with_key(f"key {n}"))]
            )
            image = workspace.example(n + 1).image
            if label == "mug":
                workspace.remove(1)
        workspace.forget("cup", erase=True)
    assert not _found(tmp_path, [image])


def _found(folder, traces):
    """Files in whose content or name one of the texts or hashes is."""
    needles = [needle for text in traces for needle in (text.encode(), bytes.fromhex(text))]
    return [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and any(needle in path.read_bytes() or needle in os.fsencode(path) for needle in needles)
    ]
