"""Model files of rejecting classifiers: one file for two models; damaged files are refused."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

import evergrow
from evergrow import ModelFileError, RejectingClassifier
from evergrow.estimators.novelty.calibration import Calibration
from evergrow.storage.models.format import read_model, write_model
from tests.estimators.model_files import at, check_refused, forge, reload
from tests.estimators.novelty.cones import RememberingClassifier, cones, rejecting

every_measure = pytest.mark.parametrize("measure", ["auto", "cosine", "estimator"])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.evergrow"
    rejecting().fit(*cones(60, range(4))).save(path)
    return path


@every_measure
def test_a_loaded_model_answers_bit_for_bit_the_same(measure: Any, tmp_path: Path) -> None:
    model = rejecting(measure=measure, false_alarms=0.2, unknown_label=-7)
    model.fit(*cones(60, range(4)))
    loaded = reload(model, tmp_path)
    X, _ = cones(30, range(8), seed=1)
    np.testing.assert_array_equal(loaded.novelty(X), model.novelty(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.level_ == model.level_
    ours, theirs = model.get_params(), loaded.get_params()
    assert str(ours.pop("estimator")) == str(theirs.pop("estimator"))
    assert ours == theirs


@every_measure
def test_a_loaded_model_continues_to_learn_the_same(measure: Any, tmp_path: Path) -> None:
    model = rejecting(measure=measure, max_held_out=30).fit(*cones(60, range(4)))
    loaded = reload(model, tmp_path)
    X, _ = cones(30, range(8), seed=1)
    for one in (model, loaded):
        one.partial_fit(*cones(31, [2, 5, 6], seed=2)).forget(classes=[0])
    np.testing.assert_array_equal(loaded.novelty(X), model.novelty(X))
    assert loaded.level_ == model.level_


@pytest.mark.parametrize("estimator", [RidgeClassifier(), RememberingClassifier()])
def test_a_foreign_estimator_cannot_be_saved(estimator: Any, tmp_path: Path) -> None:
    model = RejectingClassifier(estimator).fit(*cones(10, range(3)))
    with pytest.raises(
        TypeError,
        match="in a RejectingClassifier cannot be saved: only Evergrow's own estimators can",
    ):
        model.save(tmp_path / "model.evergrow")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("fitted/estimator", None),
        ("fitted/estimator", {"estimator": "RejectingClassifier"}),
        ("fitted/estimator/estimator", "Unknown"),
        ("fitted/estimator/fitted/labels/values", [0, 1, 2, 4]),
        ("fitted/estimator/fitted/labels/values", [0, 1, 2]),
        ("fitted/labels/values", [3, 2, 1, 0]),
        ("fitted/labels/values", [0, 1, 2]),
        ("fitted/labels/values", [0, 1, 2, -1]),
        ("fitted/measure", "estimator"),
        ("fitted/measure", "guess"),
        ("parameters", {"unknown": 1}),
        ("parameters/measure", "guess"),
        ("parameters/false_alarms", 7),
        ("parameters/unknown_label", 3),
        ("parameters/unknown_label", "unknown"),
        ("parameters/unknown_label", [1]),
        ("parameters/estimator", "NCMForestClassifier"),
        ("fitted/holdout/seed", -1),
        ("fitted/holdout/share", 0),
        ("fitted/holdout/share", 2),
        ("feature_names", ["a"]),
        ("moments.class_weights", at(0, -1.0)),
        ("moments.gram", np.zeros(136)),
        ("holdout.rows", lambda rows: rows[:, 1:].copy()),
        ("holdout.rows", lambda rows: rows[1:].copy()),
        ("holdout.codes", at(0, 4)),
        ("holdout.codes", at(0, -1)),
        ("holdout.rows", at(0, -1e150)),
        ("holdout.weights", at(0, 0.0)),
        ("holdout.weights", at(0, 1e150)),
        ("holdout.priorities", lambda p: p[1:].copy()),
        ("holdout.tallies", at(0, 3)),
        ("holdout.tallies", at(0, 2**63 - 1)),
        ("holdout.tallies", at(1, 55)),
        ("holdout.tallies", at(1, -1)),
        ("holdout.tallies", at(2, 3)),
        ("holdout.tallies", at(2, 12)),
        ("holdout.tallies", at(3, 2)),
        ("holdout.tallies", lambda counts: counts[:, :3].copy()),
    ],
)
def test_an_inconsistent_file_is_refused(saved: Path, path: str, value: Any) -> None:
    check_refused(saved, forge(path, value))


def test_models_inside_each_other_without_end_are_refused(saved: Path) -> None:
    header, tensors = read_model(saved)
    for _ in range(400):
        header = {**header, "fitted": {**header["fitted"], "estimator": header}}
    write_model(saved, header, tensors)
    with pytest.raises(ModelFileError):
        evergrow.load(saved)


@pytest.mark.parametrize("change", [{"measure": "estimator"}, {"unknown_label": 2}])
def test_parameters_that_do_not_fit_the_model_leave_the_old_file(
    saved: Path, change: dict[str, Any]
) -> None:
    before = saved.read_bytes()
    model = evergrow.load(saved).set_params(**change)
    with pytest.raises(ValueError, match=next(iter(change))):
        model.save(saved)
    assert saved.read_bytes() == before


def with_fixed_calibration() -> tuple[RejectingClassifier, Calibration]:
    model = rejecting().fit(*cones(60, range(4)))
    fixed = Calibration(np.full(4, 0.5), np.full(4, 0.1), np.arange(30.0) / 10, np.ones(30))
    model._set_fitted(replace(model._fitted, fixed=fixed), None)
    return model, fixed


def test_scales_and_penalty_are_kept(tmp_path: Path) -> None:
    model = rejecting(measure="auto").fit(*cones(60, range(4)))
    X, _ = cones(20, range(8), seed=1)
    fixed = replace(model._fitted.calibration, novelties=np.arange(30.0), weights=np.ones(30))
    model._set_fitted(replace(model._fitted, fixed=fixed, penalty=3.0), None)
    loaded = reload(model, tmp_path)
    np.testing.assert_array_equal(loaded._fitted.calibration.scales, fixed.scales)
    np.testing.assert_array_equal(loaded.novelty(X), model.novelty(X))
    path = tmp_path / "model.evergrow"
    for scales in (np.full((4, 2), -1.0), np.ones((2, 2)), None):
        check_refused(path, forge("fixed.scales", scales), match="scales")
    for share in (-0.1, 1.1, np.nan, None):
        check_refused(path, forge("fitted/fixed/share", share), match="fixed.share must be")
    for penalty in (-1.0, 0.0, 1, True):
        check_refused(path, forge("fitted/penalty", penalty), match="penalty must be None or")


def test_a_calibration_from_elsewhere_is_kept_until_something_is_learnt(tmp_path: Path) -> None:
    model, fixed = with_fixed_calibration()
    loaded = reload(model, tmp_path)
    np.testing.assert_array_equal(loaded.usual_scores_, fixed.usual)
    assert loaded.level_ == model.level_ == fixed.level(model.false_alarms)
    renamed = loaded.rename_classes({0: 7})
    np.testing.assert_array_equal(renamed.spreads_, fixed.spreads)
    own = rejecting().fit(*cones(60, range(4)))
    for step in (
        lambda one: one.partial_fit(*cones(10, [2], seed=3)),
        lambda one: one.forget(classes=[3]),
        lambda one: one.rename_classes({1: 2}),
    ):
        changed = step(evergrow.load(tmp_path / "model.evergrow"))
        expected = step(copy.deepcopy(own))
        np.testing.assert_allclose(changed.usual_scores_, expected.usual_scores_)
        assert changed.level_ == pytest.approx(expected.level_)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("usual", np.zeros(3)),
        ("spreads", np.zeros(4)),
        ("novelties", -np.arange(30.0)),
        ("weights", np.zeros(30)),
        ("weights", np.ones(29)),
    ],
)
def test_an_invalid_calibration_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    reload(with_fixed_calibration()[0], tmp_path)
    change = forge(f"fixed.{name}", value)
    check_refused(tmp_path / "model.evergrow", change, match="inconsistent")
