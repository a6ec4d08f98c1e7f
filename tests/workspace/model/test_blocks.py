"""Workspaces whose embeddings have blocks: the model uses those that help."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow.vision import Embedder, OnnxModel
from evergrow.workspace import NewExample, Workspace
from evergrow.workspace.model.least_squares import Hyperparameters, TrainedModel
from tests.vision.embedding.models import staged_model

Array = np.ndarray[Any, Any]

# Of the small network with one stage.
BLOCKS = (5, 3)
STAGED = OnnxModel(staged_model().SerializeToString())


def rows(n: int, *, seed: int = 0, helpful: bool = True) -> tuple[Array, list[str]]:
    """Three classes; the first block tells one from the others, the second one all if it helps."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    head = 2.0 * np.eye(5)[np.minimum(codes, 1)] + 0.3 * rng.normal(size=(n, 5))
    stage = 0.3 * rng.normal(size=(n, 3)) + (2.0 * np.eye(3)[codes] if helpful else 0.0)
    return np.hstack([head, stage]).astype(np.float32), [f"class {k}" for k in codes]


def examples(n: int, **options: Any) -> list[NewExample]:
    return [NewExample(row, name) for row, name in zip(*rows(n, **options), strict=True)]


@pytest.fixture
def staged(tmp_path):
    """A workspace of a network with a stage, to be taught embeddings."""
    embedder = Embedder(STAGED, stages=(2,), cache=False)
    options = {"features": embedder, "false_alarms": 0.05}
    with Workspace.create(tmp_path / "staged", **options) as workspace:
        yield workspace


def used(workspace: Workspace) -> list[str]:
    return [block.name for block in workspace.status().blocks if block.used]


def scores(workspace: Workspace) -> Array:
    return workspace.snapshot.scores(rows(30, seed=9)[0])


def test_the_first_block_is_used_until_others_have_shown_that_they_help(staged):
    staged.teach(examples(60))
    assert used(staged) == ["head"]
    assert not staged.snapshot.weights[:, 5:].any()
    staged.assess()
    assert used(staged) == ["head", "stage2"]
    assert staged.snapshot.weights[:, 5:].any()


def test_a_block_of_noise_is_not_used(staged):
    staged.teach(examples(60, helpful=False))
    staged.assess()
    assert used(staged) == ["head"]


def test_a_snapshot_gives_the_same_model(staged, tmp_path):
    staged.teach(examples(60))
    staged.assess()
    assert staged.save_snapshot()
    before = scores(staged)
    staged.teach(examples(3, seed=1))
    staged.undo(count=3)
    staged.close()
    with Workspace.open(tmp_path / "staged") as again:
        assert again.status().snapshot_event == 61
        assert used(again) == ["head", "stage2"]
        np.testing.assert_allclose(scores(again), before, rtol=1e-8, atol=1e-10)


def test_a_snapshot_of_other_blocks_is_not_used(staged, tmp_path):
    staged.teach(examples(60))
    staged.assess()
    staged.save_snapshot()
    before = scores(staged)
    staged.close()
    path = tmp_path / "staged" / "workspace.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "blocks": [["head", 5], ["a", 1], ["b", 2]]}))
    with Workspace.open(tmp_path / "staged") as again:
        assert used(again) == ["head", "a"]
        assert not np.allclose(scores(again), before)


def test_a_manifest_with_too_few_blocks_is_damage(staged, tmp_path):
    staged.teach(examples(60))
    staged.assess()
    staged.close()
    path = tmp_path / "staged" / "workspace.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "blocks": [["head", 8]]}))
    with pytest.raises(evergrow.WorkspaceError, match="blocks of features that the workspace does"):
        Workspace.open(tmp_path / "staged")


@pytest.mark.parametrize("blocks", [[["head", 5]], [["head", "8"]], [["head", 9], ["x", -1]], {}])
def test_blocks_that_do_not_fit_are_damage(staged, tmp_path, blocks):
    staged.close()
    path = tmp_path / "staged" / "workspace.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "blocks": blocks}))
    with pytest.raises(evergrow.WorkspaceError, match=r"workspace\.json' is damaged"):
        Workspace.open(tmp_path / "staged")


def test_weights_are_those_of_a_model_of_the_used_columns_alone():
    X, names = rows(40)
    class_ids = np.unique(names, return_inverse=True)[1] + 1
    chosen = Hyperparameters(0.5, 0.3, 0.1)
    whole = TrainedModel(hyperparameters=chosen, blocks=BLOCKS).add(X, class_ids)
    alone = TrainedModel(hyperparameters=chosen).add(X[:, :5], class_ids)
    for found, expected in zip(whole.scoring(), alone.scoring(), strict=True):
        np.testing.assert_allclose(found[..., :5], expected, rtol=1e-9, atol=1e-12)
    whole, alone = whole.remove(X[:9], class_ids[:9]), alone.remove(X[:9, :5], class_ids[:9])
    np.testing.assert_allclose(whole.scoring()[1], alone.scoring()[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("helpful", [True, False])
def test_an_exported_model_answers_as_the_workspace_does(staged, tmp_path, helpful):
    staged.teach(examples(90, helpful=helpful))
    staged.assess()
    staged.export(tmp_path / "model.evergrow")
    model = evergrow.load(tmp_path / "model.evergrow").learner_
    inside = model._fitted.estimator
    assert tuple(inside.blocks) == BLOCKS
    assert inside.used_blocks_ == staged.assessment.hyperparameters.used_blocks
    X = np.vstack([rows(30, seed=4, helpful=helpful)[0], -np.ones((2, 8), dtype=np.float32)])
    answers = staged.predict(X)
    labels = [answer.label or "unknown" for answer in answers]
    assert model.predict(X).tolist() == labels
    assert {"unknown", "class 0"} <= set(labels)
    np.testing.assert_allclose(
        model._fitted.novelty(X), [answer.novelty for answer in answers], rtol=1e-5
    )


def test_the_forest_and_fine_classes_use_the_first_block(tmp_path):
    embedder = Embedder(STAGED, stages=(2,), cache=False)
    with Workspace.create(tmp_path / "w", features=embedder, forest=True) as workspace:
        workspace.teach(examples(60))
        fine = [replace(one, label="broad", fine=one.label) for one in examples(12)]
        workspace.teach(fine)
        workspace.split("broad")
        workspace.maintain()
        assert workspace.snapshot.forest.n_features_in_ == 5
        (answer,) = workspace.predict([fine[0].embedding], model="forest")
        assert answer.top
        (model,) = workspace.snapshot.splits.values()
        assert model.weights.shape == (5, 3)


def test_embeddings_must_have_the_width_of_all_blocks(staged):
    with pytest.raises(evergrow.WorkspaceError, match="an embedding must have 8 numbers, got 5"):
        staged.teach([NewExample(np.ones(5, dtype=np.float32), "cup")])


def test_a_new_workspace_takes_the_features_of_an_image_classifier(tmp_path):
    with Workspace.create(tmp_path / "new") as workspace:
        expected = {"head": 1280, "stage5": 112, "stage6": 192, "stage7": 320}
        assert dict(workspace.manifest.blocks) == expected
        assert workspace.n_features == 1904
        assert workspace.manifest.features == "efficientnet-lite0"
        assert workspace.embedder.stages == (5, 6, 7)
