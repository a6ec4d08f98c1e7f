"""Predictions of a workspace: classes, probabilities, "unknown", and finer names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import InvalidInputError
from evergrow.estimators.novelty.calibration import Calibration
from evergrow.vision import Embedder
from evergrow.workspace import ConflictError, NewExample, Workspace
from evergrow.workspace.model.assessment import NoveltyLimits
from evergrow.workspace.model.fine_classes import PRECISION, FineModel
from evergrow.workspace.model.least_squares import Hyperparameters, TrainedModel
from evergrow.workspace.model.snapshot import Snapshot, best_columns
from tests.vision.embedding.models import onnx_model
from tests.workspace.random_changes import answers, assert_same, new_examples, new_workspace

Array = np.ndarray[Any, Any]
NAMES = ("ant", "bee", "cat")


def cones(n: int, *, seed: int = 0, classes: int = 3, d: int = 12) -> tuple[Array, Array]:
    """Examples along one direction per class."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % classes
    return (5 * np.eye(d)[codes] + rng.normal(size=(n, d))).astype(np.float32), codes


def taught(folder: Path, n: int = 240, **options: Any) -> Workspace:
    workspace = Workspace.create(folder, features=None, **options)
    X, codes = cones(n)
    workspace.teach([NewExample(x, NAMES[k]) for x, k in zip(X, codes, strict=True)])
    return workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with taught(tmp_path / "w") as workspace:
        yield workspace


def test_predictions_start_with_the_first_example(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", features=None) as workspace:
        with pytest.raises(ConflictError, match="has no examples yet"):
            workspace.predict([[1.0, 2.0]])
        workspace.teach([NewExample(np.array([1.0, 2.0]), "ant")])
        (answer,) = workspace.predict([[1.0, 2.0]])
        assert (answer.label, answer.probability, answer.known) == ("ant", 1.0, True)
        assert answer.novelty is None


def test_something_unseen_is_predicted_as_unknown(workspace: Workspace) -> None:
    workspace.assess()
    unseen, codes = cones(200, seed=2, classes=6)
    found = workspace.predict(unseen)
    unknown = np.array([not answer.known for answer in found])
    assert unknown[codes >= 3].mean() > 0.9
    assert unknown[codes < 3].mean() < 0.2


def test_false_alarms_are_about_as_many_as_promised(tmp_path: Path) -> None:
    X, _ = cones(3000, seed=3)
    for promised in (0.05, 0.2):
        with taught(tmp_path / f"{promised}", 600, false_alarms=promised) as workspace:
            workspace.assess()
            found = np.mean([not answer.known for answer in workspace.predict(X)])
            measured = workspace.status().measured_false_alarms
            assert found == pytest.approx(promised, abs=0.04)
            assert measured == pytest.approx(promised, abs=0.04)


def test_a_class_newer_than_the_assessment_is_known_at_once(workspace: Workspace) -> None:
    workspace.assess()
    X, codes = cones(400, seed=4, classes=4)
    new = X[codes == 3]
    assert not any(answer.known for answer in workspace.predict(new[20:]))
    workspace.teach([NewExample(x, "dog") for x in new[:20]])
    found = workspace.predict(new[20:])
    assert np.mean([answer.known and answer.label == "dog" for answer in found]) > 0.8


def test_a_rename_changes_nothing_but_the_name(workspace: Workspace) -> None:
    X, _ = cones(9, seed=5)
    before = workspace.snapshot
    workspace.rename("bee", "wasp")
    after = workspace.snapshot
    np.testing.assert_array_equal(before.scores(X), after.scores(X))
    assert {a.label for a in after.predict(X)} == {"ant", "wasp", "cat"}
    assert {a.label for a in before.predict(X)} == {"ant", "bee", "cat"}


def test_columns_never_move(workspace: Workspace) -> None:
    first = workspace.snapshot.class_ids.tolist()
    workspace.teach([NewExample(np.ones(12), "aardvark")])
    assert workspace.snapshot.class_ids.tolist()[:3] == first
    workspace.forget("bee")
    assert workspace.snapshot.class_ids.tolist()[:2] == [first[0], first[2]]
    workspace.undo()
    assert workspace.snapshot.class_ids.tolist()[:3] == first


def test_invalid_embeddings_are_refused_with_a_reason(workspace: Workspace) -> None:
    with pytest.raises(InvalidInputError, match="rows of 12 numbers"):
        workspace.predict([[1.0, 2.0]])
    with pytest.raises(InvalidInputError, match="finite"):
        workspace.predict([[np.nan] * 12])
    with pytest.raises(InvalidInputError, match="top"):
        workspace.predict(np.ones((1, 12)), top=0)
    with pytest.raises(InvalidInputError, match="model"):
        workspace.predict(np.ones((1, 12)), model="oracle")
    with pytest.raises(ConflictError, match="has no forest, or"):
        workspace.predict(np.ones((1, 12)), model="forest")


def fine_examples(n: int, spread: float, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    X = np.zeros((n, 12), dtype=np.float32)
    X[:, 0], X[:, 5] = 5, 2 * codes - 1
    return X + np.float32(spread) * rng.normal(size=X.shape).astype(np.float32), codes


def test_a_split_class_answers_with_finer_names_and_guesses_the_rest(workspace: Workspace) -> None:
    X, codes = fine_examples(60, 0.2)
    names = ["red", "blue"]
    for i, (x, k) in enumerate(zip(X, codes, strict=True)):
        workspace.teach([NewExample(x, "ant", names[k] if i < 20 else None)])
    assert workspace.predict(X[:1])[0].fine is None
    workspace.split("ant")
    found = workspace.predict(X)
    assert [answer.fine for answer in found] == [names[k] for k in codes]
    guessed = workspace.examples(label="ant", guessed=True, limit=500).items
    assert len(guessed) == 80 + 40
    workspace.unsplit("ant")
    assert {answer.fine for answer in workspace.predict(X)} == {None}
    assert not workspace.examples(label="ant", guessed=True).items


def test_an_unknown_example_has_no_finer_name(tmp_path: Path) -> None:
    X, codes = cones(240, classes=3)
    with Workspace.create(tmp_path / "w", features=None) as workspace:
        workspace.teach(
            [
                NewExample(x, "pet" if k else "ant", NAMES[k] if k else None)
                for x, k in zip(X, codes, strict=True)
            ]
        )
        workspace.split("pet")
        workspace.assess()
        # Near "pet", and yet like nothing that was taught.
        strange = np.zeros((1, X.shape[1]), dtype=np.float32)
        strange[0, 1], strange[0, 5:] = 1, -9
        near, far = workspace.predict(np.concatenate([X[1:2], strange]))
        assert (near.known, near.fine) == (True, "bee")
        assert (far.label, far.known, far.top[0][0]) == (None, False, "pet")
        assert (far.fine, far.fine_probability, far.fine_top) == (None, None, ())


def test_guesses_follow_what_is_given_later(tmp_path: Path) -> None:
    with taught(tmp_path / "w", 30) as workspace:
        X, codes = fine_examples(8, 0.2)
        workspace.teach(
            [NewExample(x, "ant", ["red", "blue"][k]) for x, k in zip(X, codes, strict=True)]
        )
        workspace.split("ant")
        before = workspace.log.guessed_at(1)
        workspace.teach([NewExample(X[0], "ant")])
        assert workspace.update_guesses() == 1
        assert workspace.log.guessed_at(1) > before
        assert workspace.update_guesses() == 0
        (newest,) = workspace.examples(label="ant", newest_first=True, limit=1).items
        assert (newest.fine, newest.fine_kind) == ("red", "guessed")


def test_uncertain_fine_predictions_back_off_to_the_coarse_class() -> None:
    X, codes = fine_examples(120, 2.0)
    X_test, codes_test = fine_examples(4000, 2.0, seed=1)
    model = FineModel.of(X, codes + 10)
    fine_ids, sure = model.guess(X_test)
    given = sure >= model.threshold
    assert 0.02 < given.mean() < 0.98
    right = fine_ids == codes_test + 10
    assert right[given].mean() > PRECISION - 0.06
    assert right[~given].mean() < right[given].mean()


def test_the_exported_model_predicts_as_the_workspace_and_can_be_trained_further(
    tmp_path: Path,
) -> None:
    with taught(tmp_path / "w") as workspace:
        workspace.assess()
        workspace.rename("bee", "unknown")
        workspace.forget("cat")
        workspace.undo()
        X, _ = cones(200, seed=7, classes=5)
        expected = workspace.predict(X)
        workspace.export(tmp_path / "model.evergrow")
    model = evergrow.load(tmp_path / "model.evergrow")
    labels = [answer.label or "unknown 2" for answer in expected]
    assert model.predict(X).tolist() == labels
    np.testing.assert_allclose(
        model.predict_proba(X).max(axis=1), [a.probability for a in expected], atol=1e-9
    )
    np.testing.assert_allclose(model.novelty(X), [a.novelty for a in expected], atol=1e-9)
    model.partial_fit(X[:40], ["new"] * 40)
    assert "new" in model.classes_.tolist()
    assert model.level_ < np.inf


@pytest.mark.parametrize("false_alarms", [0.001, 0.123, 0.5])
def test_an_exported_model_has_the_level_of_the_workspace(
    tmp_path: Path, false_alarms: float
) -> None:
    X, class_ids = cones(700, seed=3)
    with Workspace.create(tmp_path / "w", features=None, false_alarms=false_alarms) as workspace:
        workspace.teach([NewExample(x, NAMES[k]) for x, k in zip(X, class_ids, strict=True)])
        assessment = workspace.assess()
        assert assessment is not None
        assert assessment.limits is not None
        workspace.export(tmp_path / "model.evergrow")
    assert evergrow.load(tmp_path / "model.evergrow").level_ == assessment.limits.level


def test_the_model_of_a_workspace_of_images_takes_images(tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(onnx_model().SerializeToString())
    embedder = Embedder(str(path), cache=False).fit()
    rng = np.random.default_rng(0)
    colours = [(200, 30, 30), (30, 200, 30), (30, 30, 200)]
    images = [
        np.clip(rng.normal(colours[i % 3], 20, (8, 8, 3)), 0, 255).astype(np.uint8)
        for i in range(60)
    ]
    X = embedder.transform(images)
    with Workspace.create(tmp_path / "w", features=embedder) as workspace:
        workspace.teach([NewExample(x, NAMES[i % 3]) for i, x in enumerate(X)])
        workspace.assess()
        expected = workspace.predict(X)
        workspace.export(tmp_path / "model.evergrow")
    model = evergrow.load(tmp_path / "model.evergrow")
    assert isinstance(model, evergrow.ImageClassifier)
    labels = [answer.label or "unknown" for answer in expected]
    assert model.predict(images).tolist() == labels
    model.partial_fit(images[:4], ["new"] * 4)
    assert model.class_counts_.tolist() == [20, 20, 20, 4]


def test_an_exported_model_of_few_examples_never_predicts_unknown(tmp_path: Path) -> None:
    with taught(tmp_path / "w", 6) as workspace:
        workspace.export(tmp_path / "model.evergrow")
    model = evergrow.load(tmp_path / "model.evergrow")
    assert model.level_ == np.inf
    assert set(model.predict(cones(9)[0]).tolist()) == set(NAMES)


def test_exporting_an_empty_workspace_is_an_error(tmp_path: Path) -> None:
    with (
        Workspace.create(tmp_path / "w", features=None) as workspace,
        pytest.raises(ConflictError, match="no model to export"),
    ):
        workspace.export(tmp_path / "model.evergrow")


def test_the_forest_predicts_on_request_and_reports_missing_examples(tmp_path: Path) -> None:
    with taught(tmp_path / "w", forest=True) as workspace:
        assert workspace.status().forest_lacks == 240
        assert workspace.update_forest()
        assert workspace.status().forest_lacks == 0
        workspace.teach([NewExample(cones(4)[0][3], "ant")])
        assert workspace.status().forest_lacks == 1
        assert not workspace.update_forest()
        X, codes = cones(60, seed=8)
        found = workspace.predict(X, model="forest", top=3)
        assert np.mean([a.top[0][0] == NAMES[k] for a, k in zip(found, codes, strict=True)]) > 0.9
        workspace.forget("bee")
        assert {a.label for a in workspace.predict(X, model="forest")} == {"ant", "cat"}
        assert workspace.update_forest(force=True)
        assert len(workspace.snapshot.forest.stored_ids_) == 161  # type: ignore[union-attr]


def test_examples_taught_during_forest_training_are_trained_next(tmp_path: Path) -> None:
    with new_workspace(tmp_path / "w", forest=True) as workspace:
        n_changes = workspace._model.prepare_forest(workspace.log, force=True)
        workspace.teach(new_examples(np.random.default_rng(4), 5))
        workspace._writer.record("forest", {"n_changes": n_changes})
        assert workspace.status().forest_lacks == 5
        undisturbed = answers(workspace)
    with Workspace.open(tmp_path / "w") as again:
        assert_same(answers(again), undisturbed)


def test_an_erased_class_is_not_in_the_forest_that_is_saved(tmp_path: Path) -> None:
    with taught(tmp_path / "w", forest=True) as workspace:
        workspace.update_forest()
        workspace.forget("bee")
        assert workspace.status().forest_lacks == 80
        workspace.forget("bee", erase=True)
        workspace.save_snapshot()
        assert workspace.snapshot.forest is None
        assert not list((tmp_path / "w" / "models").glob("*/forest.evergrow"))
        assert workspace.status().forest_lacks == 160
        assert workspace.update_forest()
        expected = workspace.snapshot.forest.predict_proba(cones(9)[0])  # type: ignore[union-attr]
        workspace.save_snapshot()
        (saved,) = (tmp_path / "w" / "models").glob("*/forest.evergrow")
        assert len(evergrow.load(saved).stored_ids_) == 160
    shutil.rmtree(tmp_path / "w" / "models")
    with Workspace.open(tmp_path / "w") as again:
        found = again.snapshot.forest.predict_proba(cones(9)[0])  # type: ignore[union-attr]
        np.testing.assert_array_equal(found, expected)


def test_a_class_erased_during_forest_training_is_not_in_the_forest(tmp_path: Path) -> None:
    with taught(tmp_path / "w", forest=True) as workspace:
        n_changes = workspace._model.prepare_forest(workspace.log, force=True)
        workspace.forget("bee", erase=True)
        workspace._writer.record("forest", {"n_changes": n_changes})
        assert len(workspace.snapshot.forest.stored_ids_) == 160  # type: ignore[union-attr]


def test_best_columns_equal_those_of_sorting() -> None:
    values = np.random.default_rng(0).permuted(np.tile(np.arange(300.0), (7, 1)), axis=1)
    expected = np.argsort(-values, axis=1)[:, :5]
    np.testing.assert_array_equal(best_columns(values, 5), expected)


def snapshot_of(n_classes: int, n_features: int) -> tuple[Snapshot, Array]:
    rng = np.random.default_rng(0)
    class_ids = np.arange(1, n_classes + 1)
    X = rng.normal(size=(n_classes, n_features)).astype(np.float32)
    learnt = TrainedModel(hyperparameters=Hyperparameters(penalty=1.0)).add(X, class_ids)
    ones = np.ones(n_classes + 1)
    limits = NoveltyLimits(class_ids, Calibration(ones, ones, np.zeros(1), np.ones(1)), 1.0)
    names = {int(k): f"class {k}" for k in class_ids}
    return Snapshot.of(1, learnt, names, limits=limits), X


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "seconds"), [(100, 1e-3), (10_000, 20e-3)])
def test_one_prediction_is_fast(n_classes: int, seconds: float) -> None:
    # Fewer features where there are many classes: time goes with their product.
    n_features = 1280 if n_classes == 100 else 256
    snapshot, X = snapshot_of(n_classes, n_features)
    times = []
    for row in X[:50]:
        start = perf_counter()
        snapshot.predict(row[None])
        times.append(perf_counter() - start)
    # The best of many, and three times the bar: others may use the machine. The bar itself is
    # for an idle one.
    assert min(times) < 3 * seconds * (n_features / 1280)
