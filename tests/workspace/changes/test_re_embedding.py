"""Stored pictures are embedded again, all of them or none."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evergrow import InvalidInputError, WorkspaceError
from evergrow.vision import Embedder, OnnxModel
from evergrow.workspace import (
    ConflictError,
    NewExample,
    Picture,
    Workspace,
    WorkspaceFormatError,
    WorkspaceFullError,
    WorkspaceLockedError,
    check_workspace,
    re_embed_workspace,
)
from evergrow.workspace.changes import re_embedding
from evergrow.workspace.store import staging
from tests.harness.process import end_if_stuck
from tests.vision.classifier.pictures import picture as drawn
from tests.vision.embedding.models import onnx_model, staged_model
from tests.workspace.builders import counts, labels
from tests.workspace.faults import FaultInjector, full, inject_faults

pytestmark = pytest.mark.slow

OLD = Embedder(OnnxModel(onnx_model().SerializeToString()), cache=False)
NEW = Embedder(OnnxModel(staged_model().SerializeToString()), stages=(2,), cache=False)


def content_of(colour: str, seed: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(drawn(colour, seed)).save(file, "PNG")
    return file.getvalue()


def example(colour: str, seed: int, **options: str) -> NewExample:
    """An example as the workspace would be taught it with the old network."""
    content = content_of(colour, seed)
    row = OLD.transform([content])[0]
    return NewExample(row, colour, picture=Picture(content, "image/png", 32, 24), **options)


def taught(folder: Path, *more: NewExample, **options: bool) -> Path:
    """A workspace of the old network with two classes, and a removed example."""
    options = {"rows_per_shard": 4, **options}
    with Workspace.create(folder / "things", features=OLD, **options) as workspace:
        workspace.teach([example(name, n) for n in range(6) for name in ("red", "green")])
        workspace.remove(2)
        if more:
            workspace.teach(list(more))
        workspace.assess()
        workspace.save_snapshot()
    return folder / "things"


@pytest.fixture
def things(tmp_path):
    return taught(tmp_path)


def state_of(folder: Path) -> dict[str, str]:
    """Hashes of all files that count."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(("lock", "examples.sqlite-"))
    }


def bare(n: int = 1) -> list[NewExample]:
    return [NewExample(np.full(5, 0.5 + k, dtype=np.float32), "red") for k in range(n)]


def test_all_examples_get_the_embeddings_of_the_new_network(things):
    with Workspace.open(things) as workspace:
        before, events = labels(workspace), workspace.version
    made = re_embed_workspace(things, NEW)
    assert (made.n_examples, made.n_erased) == (12, 0)
    assert made.blocks == {"head": 5, "stage2": 3}
    with Workspace.open(things) as workspace:
        assert labels(workspace) == before
        assert workspace.version == events + 1
        assert workspace.n_features == 8
        for number in before:
            expected = NEW.transform([workspace.picture(number)])[0]
            np.testing.assert_array_equal(workspace.embedding(number), expected)
        assert workspace.check() == []
    assert not (things / "re-embedding").exists()


def test_the_model_learns_from_the_new_embeddings(things, tmp_path):
    re_embed_workspace(things, NEW)
    with Workspace.open(things) as workspace:
        assert workspace.assessment is None
        assert [block.used for block in workspace.status().blocks] == [True, False]
        workspace.maintain()
        assert workspace.assessment is not None
        rows = NEW.transform([content_of("green", 50), content_of("red", 51)])
        assert [answer.label for answer in workspace.predict(rows)] == ["green", "red"]
        (tmp_path / "blue.png").write_bytes(content_of("blue", 52))
        (more,) = workspace.teach_images([tmp_path / "blue.png"], "blue").results
        assert len(workspace.embedding(more.example.id)) == 8


def test_a_snapshot_of_the_old_embeddings_is_not_used(things):
    assert list((things / "models").iterdir())
    re_embed_workspace(things, NEW)
    with Workspace.open(things, read_only=True) as workspace:
        assert workspace.snapshot.n_features == 8
    with Workspace.open(things) as workspace:
        assert list((things / "models").iterdir()) == []
        workspace.save_snapshot()
        weights = workspace.snapshot.weights
    with Workspace.open(things) as workspace:
        np.testing.assert_allclose(workspace.snapshot.weights, weights, rtol=1e-8, atol=1e-12)


def test_earlier_changes_can_still_be_undone(things):
    with Workspace.open(things) as workspace:
        workspace.rename("red", "ruby")
    re_embed_workspace(things, NEW)
    with Workspace.open(things) as workspace:
        assert "'red' again" in workspace.undo().summary
        assert "restored" in workspace.undo().summary
        assert counts(workspace) == {"red": 6, "green": 6}
        expected = NEW.transform([workspace.picture(2)])[0]
        np.testing.assert_array_equal(workspace.embedding(2), expected)
        assert workspace.check() == []


def test_the_embedding_itself_cannot_be_undone(things):
    re_embed_workspace(things, NEW)
    with Workspace.open(things) as workspace:
        event = workspace.version
        assert workspace.events(limit=1).items[0].kind == "embed"
        with pytest.raises(ConflictError, match=rf"event {event} \(embed\) cannot be undone"):
            workspace.undo(event=event)


def test_it_can_be_embedded_back(things):
    with Workspace.open(things) as workspace:
        before, weights = workspace.embedding(1), workspace.snapshot.weights
    re_embed_workspace(things, NEW)
    re_embed_workspace(things, OLD)
    with Workspace.open(things) as workspace:
        np.testing.assert_array_equal(workspace.embedding(1), before)
        workspace.assess()
        np.testing.assert_allclose(workspace.snapshot.weights, weights, rtol=1e-6, atol=1e-9)


def test_examples_without_a_picture_are_refused_and_counted(tmp_path):
    things = taught(tmp_path, *bare(3))
    before = state_of(things)
    with pytest.raises(ConflictError, match=": 3 taught as embeddings, without a picture"):
        re_embed_workspace(things, NEW)
    assert state_of(things) == before


def test_examples_without_a_picture_can_be_erased(tmp_path):
    things = taught(tmp_path, *bare(3))
    made = re_embed_workspace(things, NEW, erase_lost=True)
    assert made.n_erased == 3
    with Workspace.open(things) as workspace:
        assert counts(workspace) == {"red": 6, "green": 5}
        assert workspace.check() == []
        # The removed example went with them, so nothing before can be undone.
        with pytest.raises(ConflictError, match="erased examples"):
            workspace.undo()


@pytest.mark.parametrize("damage", ["missing", "damaged", "no picture"])
def test_pictures_that_cannot_be_read_are_refused_or_erased(tmp_path, damage):
    odd = NewExample(
        np.ones(5, dtype=np.float32), "odd", picture=Picture(b"text", "image/png", 1, 1)
    )
    things = taught(tmp_path, odd) if damage == "no picture" else taught(tmp_path)
    name = hashlib.sha256(content_of("red", 0)).hexdigest()
    path = things / "images" / name[:2] / name
    if damage == "missing":
        path.unlink()
    elif damage == "damaged":
        path.write_bytes(path.read_bytes()[:-9])
    before = state_of(things)
    with pytest.raises(ConflictError, match=": 1 with a picture that is missing or damaged"):
        re_embed_workspace(things, NEW)
    assert state_of(things) == before
    assert re_embed_workspace(things, NEW, erase_lost=True).n_erased == 1
    with Workspace.open(things) as workspace:
        expected = {"red": 6 if damage == "no picture" else 5, "green": 5}
        assert counts(workspace) == expected
        assert workspace.check() == []


def test_both_kinds_of_lost_examples_are_counted(tmp_path):
    things = taught(tmp_path, *bare(2))
    for name in (content_of("red", 0), content_of("green", 1)):
        digest = hashlib.sha256(name).hexdigest()
        (things / "images" / digest[:2] / digest).unlink()
    with pytest.raises(ConflictError, match=r": 2 taught .*, 2 with a picture"):
        re_embed_workspace(things, NEW)


def test_a_workspace_of_embeddings_becomes_one_of_pictures(tmp_path):
    Workspace.create(tmp_path / "empty", features=None).close()
    assert re_embed_workspace(tmp_path / "empty", NEW).n_examples == 0
    with Workspace.open(tmp_path / "empty") as workspace:
        assert workspace.status().takes_images
        assert workspace.embedder.blocks_ == {"head": 5, "stage2": 3}
        workspace.teach([NewExample(np.ones(8, dtype=np.float32), "cup")])
        assert workspace.check() == []


def test_a_workspace_in_use_is_refused(things):
    with Workspace.open(things), pytest.raises(WorkspaceLockedError, match="is in use"):
        re_embed_workspace(things, NEW)
    with Workspace.open(things) as workspace:
        assert workspace.n_features == 5


def test_networks_that_cannot_be_used_change_nothing(things, tmp_path):
    before = state_of(things)
    one_line = r"\A[^\n]*\Z"
    with pytest.raises((InvalidInputError, OSError), match=r"nowhere\.onnx"):
        re_embed_workspace(things, tmp_path / "nowhere.onnx")
    staged = OnnxModel(staged_model().SerializeToString())
    with pytest.raises(InvalidInputError, match="stage3") as caught:
        re_embed_workspace(things, Embedder(staged, stages=(3,), cache=False))
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInputError, match=one_line):
        re_embed_workspace(things, Embedder(stages=(9,), cache=False))
    assert state_of(things) == before


def test_a_workspace_of_another_format_is_refused(things):
    manifest = json.loads((things / "workspace.json").read_text())
    (things / "workspace.json").write_text(json.dumps({**manifest, "format": 99}))
    before = state_of(things)
    with pytest.raises(WorkspaceFormatError, match="has format 99, and"):
        re_embed_workspace(things, NEW)
    assert state_of(things) == before


def test_a_folder_that_is_not_a_workspace_is_refused(tmp_path):
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        re_embed_workspace(tmp_path, NEW)
    assert list(tmp_path.iterdir()) == []


def test_forest_and_guesses_are_made_again(tmp_path):
    things = taught(tmp_path, forest=True)
    with Workspace.open(things) as workspace:
        for number, fine in ((1, "dark"), (3, "dark"), (5, "light"), (7, "light")):
            workspace.relabel(number, fine=fine)
        workspace.split("red")
        workspace.update_forest(force=True)
        guesses = [one.example.id for one in workspace.review() if one.reason == "guess"]
        assert guesses
    re_embed_workspace(things, NEW)
    with Workspace.open(things) as workspace:
        assert workspace.snapshot.forest is None
        assert workspace.update_guesses() == 1
        again = [one.example.id for one in workspace.review() if one.reason == "guess"]
        assert sorted(again) == sorted(guesses)
        workspace.update_forest(force=True)
        assert workspace.snapshot.forest.n_features_in_ == 5
        assert workspace.check() == []


def run_and_die(folder: Path, step: int) -> bool:
    """Embed again in another process that dies before a step; True if it was not reached."""
    child = os.fork()
    if child == 0:
        end_if_stuck()
        try:
            injector = FaultInjector(step, lambda: os.kill(os.getpid(), signal.SIGKILL))
            open_store = re_embedding.open_store

            def traced(*values, **options):
                store, lock = open_store(*values, **options)
                store.database.writer.set_trace_callback(
                    lambda text: (
                        text.startswith(("BEGIN", "INSERT", "UPDATE", "COMMIT")) and injector.step()
                    )
                )
                return store, lock

            re_embedding.open_store = traced
            with inject_faults(injector):
                re_embed_workspace(folder, NEW)
        except BaseException:  # noqa: BLE001
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    assert os.WEXITSTATUS(status) == 0
    return True


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_process_killed_at_any_step_leaves_the_old_or_the_new(things, tmp_path):
    with Workspace.open(things) as workspace:
        before = labels(workspace)
        rows = {5: workspace.embedding(1)}
        rows[8] = NEW.transform([workspace.picture(1)])[0]
    finished, step, seen = False, 0, []
    while not finished:
        step += 1
        copy = tmp_path / "copy"
        shutil.copytree(things, copy)
        finished = run_and_die(copy, step)
        with Workspace.open(copy) as workspace:
            seen.append(workspace.n_features)
            assert labels(workspace) == before
            np.testing.assert_array_equal(workspace.embedding(1), rows[seen[-1]])
            assert workspace.embedder.n_features_out_ == seen[-1]
            assert workspace.snapshot.n_features == seen[-1]
            assert [one for one in workspace.check() if one.severity == "damage"] == []
        assert not (copy / "re-embedding").exists()
        shutil.rmtree(copy)
    assert seen == [5] * seen.count(5) + [8] * seen.count(8)
    # Some died before the commit, and some after it.
    assert seen.count(5) > 10
    assert seen.count(8) > 3


def test_a_full_disk_leaves_the_old_or_the_new(things, tmp_path):
    reached, step, seen = True, 0, []
    while reached:
        step += 2
        copy = tmp_path / "copy"
        shutil.copytree(things, copy)
        injector = FaultInjector(step, full)
        with contextlib.suppress(WorkspaceFullError), inject_faults(injector):
            re_embed_workspace(copy, NEW)
        reached = injector.n_done >= step
        with Workspace.open(copy) as workspace:
            # Once committed it stays, and the next opening finishes it.
            seen.append(workspace.n_features)
            assert workspace.check() == []
        shutil.rmtree(copy)
    assert {5, 8} == set(seen)
    assert seen.count(5) > 5


@pytest.fixture
def unsettled(things, monkeypatch):
    """A workspace whose new embeddings are committed, but not in place."""

    def die(layout, connection):
        raise KeyboardInterrupt

    monkeypatch.setattr(re_embedding, "settle", die)
    with pytest.raises(KeyboardInterrupt):
        re_embed_workspace(things, NEW)
    monkeypatch.undo()
    return things


def test_files_that_are_not_in_place_yet_are_not_read(unsettled):
    with pytest.raises(WorkspaceError, match="open it once for writing"):
        Workspace.open(unsettled, read_only=True)
    (finding,) = check_workspace(unsettled)
    assert finding.severity == "damage"
    mended = check_workspace(unsettled, repair=True)
    # The snapshot of the old embeddings.
    assert [finding.severity for finding in mended] == ["harmless"]
    with Workspace.open(unsettled, read_only=True) as workspace:
        assert workspace.n_features == 8


def test_new_files_that_are_lost_are_reported(unsettled):
    shutil.rmtree(unsettled / "re-embedding")
    with pytest.raises(WorkspaceError, match="are missing: restore a backup"):
        Workspace.open(unsettled)


def test_a_backup_is_not_made_of_files_that_are_replaced_meanwhile(things, tmp_path, monkeypatch):
    with Workspace.open(things, read_only=True) as reader:
        monkeypatch.setattr(re_embedding, "settle", lambda layout, connection: None)
        re_embed_workspace(things, NEW)
        with pytest.raises(WorkspaceError, match="during the backup: try again later"):
            reader.backup(tmp_path / "copy")
        with closing(sqlite3.connect(things / "examples.sqlite")) as connection:
            staging.settle(reader.layout, connection)
    with Workspace.open(things, read_only=True) as reader:
        reader.backup(tmp_path / "copy")
    with Workspace.open(tmp_path / "copy") as copy:
        assert copy.n_features == 8
        assert copy.check() == []
