"""RLSClassifier through its public interface."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import evergrow
from evergrow import NCMClassifier, RejectingClassifier, RLSClassifier, _core
from evergrow.estimators import RFF, Auto, HoldOut, LeaveOneOut, ReLU
from evergrow.foundation.foreign_arrays import from_other_library
from tests.conftest import Arrays
from tests.estimators.threads import reading


@parametrize_with_checks(
    [
        RLSClassifier(),
        RLSClassifier(regularization=0.1, recoding=0.5),
        RLSClassifier(standardize=True, fit_intercept=False),
        RLSClassifier(features=ReLU(50)),
        RLSClassifier(features=RFF(50)),
        RLSClassifier(features=Auto("40KB"), selection=LeaveOneOut(20)),
        RLSClassifier(keep_class_statistics=True),
    ]
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


def fixed(**options: Any) -> RLSClassifier:
    return RLSClassifier(**{"regularization": 1.0, "recoding": 0.5, **options})


def test_it_reads_digits_as_well_as_ridge_regression(digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    ridge = Ridge(alpha=1.0).fit(X, np.eye(10)[y])
    theirs = (ridge.predict(X_test).argmax(axis=1) == y_test).mean()
    assert RLSClassifier(random_state=0).fit(X, y).score(X_test, y_test) >= theirs - 0.005


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["cosine", "regression"])
def test_a_class_of_five_examples_is_not_ignored_next_to_hundreds(
    digits: Arrays, scoring: Any
) -> None:
    X, X_test, y, y_test = digits
    accuracy = {0.0: np.zeros(2), "auto": np.zeros(2)}
    for label in (8, 3, 1):
        few, new = np.flatnonzero(y == label)[:5], y_test == label
        for recoding in accuracy:
            model = RLSClassifier(recoding=recoding, scoring=scoring, random_state=0)
            model.fit(X[y != label], y[y != label]).partial_fit(X[few], y[few])
            scores = model.score(X_test[new], y_test[new]), model.score(X_test, y_test)
            accuracy[recoding] += np.array(scores) / 3
    assert accuracy["auto"][0] > accuracy[0.0][0] + 0.3
    assert accuracy["auto"][1] > accuracy[0.0][1] + 0.01


def test_an_indefinite_factor_is_computed_again_with_a_warning(
    digits: Arrays,
) -> None:
    X, X_test, y, _ = digits
    model = fixed().fit(X, y)
    model.predict(X_test)
    model._fitted.solver._factor *= 1e-3
    model.forget(X[:1], y[:1])
    message = "rounding, or because forget was given examples.*computed again from the sums"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        scores = model.decision_function(X_test)
    # The warning points to the caller's line, whatever the depth of the calls in between.
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_allclose(scores, fixed().fit(X[1:], y[1:]).decision_function(X_test))


def test_sums_without_full_rank_and_hardly_any_penalty_are_solved_with_a_warning() -> None:
    X = np.outer(np.arange(1.0, 21.0), [1e8, 1e8, 1e8])
    model = fixed(regularization=1e-300).fit(X, np.arange(20) // 10)
    with pytest.warns(RuntimeWarning, match="not positive definite") as caught:
        assert np.isfinite(model.decision_function(X)).all()
    assert {warning.filename for warning in caught} == {__file__}


def test_copies_are_independent(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    first = fixed().fit(X[:400], y[:400])
    first.predict(X_test)
    second = copy.deepcopy(first)
    for i in range(400, 410):
        first.partial_fit(X[i : i + 1], y[i : i + 1]).predict(X_test[:1])
        second.partial_fit(X[i + 50 : i + 51], y[i + 50 : i + 51]).predict(X_test[:1])
    for model, part in ((first, range(400, 410)), (second, range(450, 460))):
        rows = [*range(400), *part]
        np.testing.assert_allclose(model.coef_, fixed().fit(X[rows], y[rows]).coef_, atol=1e-9)


@pytest.mark.slow
def test_readers_see_consistent_models_while_another_thread_trains(digits: Arrays) -> None:
    X, X_test, y, _ = digits
    model = fixed().fit(X[:300], y[:300])
    expected = [fixed().fit(X[:n], y[:n]).decision_function(X_test[:2]) for n in range(300, 340)]
    problems: list[str] = []
    n_read = 0

    def read() -> None:
        nonlocal n_read
        n_read += 1
        scores = model.decision_function(X_test[:2])
        nearest = min(float(np.abs(scores - whole).max()) for whole in expected)
        if nearest > 1e-8:
            problems.append(f"scores of no whole model, off by {nearest}")

    with reading(read, n_threads=2):
        for i in range(300, 339):
            seen = n_read
            model.partial_fit(X[i : i + 1], y[i : i + 1])
            while n_read < seen + 2:
                pass
    assert n_read > 70
    assert problems == []


def test_an_interrupted_update_changes_nothing(
    digits: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, X_test, y, _ = digits
    model = fixed().fit(X[:300], y[:300])
    before = model.decision_function(X_test)
    state = dict(vars(model))

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    real = _core.update_weights
    monkeypatch.setattr(_core, "update_weights", interrupt)
    # The update itself only adds to sums; the weights are asked for by a prediction.
    model.partial_fit(X[300:301], y[300:301])
    with pytest.raises(KeyboardInterrupt):
        model.predict(X_test)
    monkeypatch.setattr(_core, "update_weights", real)
    expected = fixed().fit(X[:301], y[:301]).decision_function(X_test)
    np.testing.assert_allclose(model.decision_function(X_test), expected, atol=1e-9)
    vars(model).update(state)
    monkeypatch.setattr(_core, "add_examples", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[300:], y[300:])
    monkeypatch.undo()
    assert vars(model) == state
    np.testing.assert_allclose(model.decision_function(X_test), before, atol=1e-9)


def test_probabilities_are_calibrated_on_the_held_out_stream(digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    model = RLSClassifier(random_state=0).fit(X, y)
    probabilities = model.predict_proba(X_test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (model.classes_[probabilities.argmax(axis=1)] == model.predict(X_test)).all()
    confidence = probabilities.max(axis=1).mean()
    assert abs(confidence - model.score(X_test, y_test)) < 0.04
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X_test)), probabilities)


def test_image_features_class_after_class(measuring_data: Path) -> None:
    with np.load(measuring_data / "cub200_efflite0_224.npz") as data:
        X, y, train = data["X"].astype(np.float32), data["y"], data["split"] == "train"
    chosen = y < 60
    model = RLSClassifier(random_state=0)
    for c in range(60):
        model.partial_fit(X[train & (y == c)], y[train & (y == c)])
    at_once = RLSClassifier(random_state=0).fit(X[train & chosen], y[train & chosen])
    test = ~train & chosen
    assert model.score(X[test], y[test]) > at_once.score(X[test], y[test]) - 0.01


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_a_large_constant_feature_changes_nothing_when_features_are_standardised(
    offset: float,
) -> None:
    X = np.random.default_rng(0).normal(size=(1000, 2))
    y = (X[:, 0] > 0).astype(int)
    wide = np.column_stack([X, np.full(1000, offset + 0.1)])
    plain, model = (
        RLSClassifier(regularization=0.01, recoding=0.0, standardize=True).fit(data, y)
        for data in (X, wide)
    )
    np.testing.assert_allclose(model.coef_[:, :2], plain.coef_, rtol=1e-6)
    assert (model.coef_[:, 2] == 0).all()


@pytest.mark.parametrize(("value", "weight"), [(1e130, 1e130), (1.0, 1e-320)])
def test_weighted_examples_too_large_to_add_up_are_refused(value: float, weight: float) -> None:
    model = fixed().fit([[1.0], [0.0]], ["a", "b"])
    state = dict(vars(model))
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large to add up"):
        model.partial_fit([[value]], ["c"], sample_weight=[weight])
    assert vars(model) == state


def test_examples_in_a_direction_that_was_never_seen_are_not_forgotten() -> None:
    X = [[1.0, 0.0], [-1.0, 0.0]] * 5 + [[3.0, 0.0]] * 2
    model = fixed(fit_intercept=False).fit(X, ["a"] * 10 + ["b"] * 2)
    with pytest.raises(ValueError, match="these are not the examples that were learnt"):
        model.forget([[0.0, 1.0]], ["a"])


@pytest.mark.parametrize("scale", [1e76, 1e139])
def test_values_up_to_the_bound_are_learnt(digits: Arrays, scale: float) -> None:
    X, y = digits[0][:200] / 16, digits[2][:200]
    # A lone surrogate is a name like any other.
    model = RLSClassifier(random_state=0).fit(X * scale, [f"\ud800{k}" for k in y])
    assert np.mean([int(name[1:]) for name in model.predict(X * scale)] == y) > 0.95


def test_rows_at_an_odd_address_are_copied() -> None:
    plain = np.arange(12.0).reshape(6, 2)
    odd = np.ndarray(plain.shape, buffer=bytearray(b"x" + plain.tobytes()), offset=1)
    assert not odd.flags.aligned
    assert from_other_library(odd).flags.aligned
    model = RLSClassifier(regularization=1.0, recoding=0.0).fit(odd, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(model.predict(odd), model.predict(plain))


FAR: list[Any] = [
    RLSClassifier(random_state=0),
    RLSClassifier(random_state=0, standardize=True, selection=HoldOut()),
    RLSClassifier(random_state=0, scoring="regression", keep_class_statistics=True),
    RLSClassifier(random_state=0, features=RFF(60)),
    RejectingClassifier(RLSClassifier(random_state=0), random_state=0),
    NCMClassifier(metric="mahalanobis"),
]


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e12])
@pytest.mark.parametrize("model", FAR, ids=str)
def test_features_far_from_zero_are_told_apart(
    model: Any, offset: float, digits: Arrays, tmp_path: Path
) -> None:
    X, X_test, y, y_test = digits
    near = clone(model).fit(X[:700], y[:700]).score(X_test, y_test)
    X, X_test = X + offset, X_test + offset
    far = clone(model).fit(X[:300], y[:300]).partial_fit(X[300:650], y[300:650])
    for i in range(650, 700):
        far.partial_fit(X[i : i + 1], y[i : i + 1])
    assert abs(far.score(X_test, y_test) - near) < 0.03
    far.save(tmp_path / "far")
    again = evergrow.load(tmp_path / "far")
    np.testing.assert_allclose(again.predict_proba(X_test), far.predict_proba(X_test), atol=1e-9)
    far.forget(X[:100], y[:100])
    assert abs(far.score(X_test, y_test) - near) < 0.03


def test_models_far_from_each_other_are_merged(digits: Arrays, tmp_path: Path) -> None:
    X, X_test, y, _ = digits
    model = (
        fixed().fit(X[:400] + 1e8, y[:400]).merge(fixed().fit(X[400:800] + 1e8 + 500, y[400:800]))
    )
    once = fixed().fit(np.concatenate([X[:400] + 1e8, X[400:800] + 1e8 + 500]), y[:800])
    np.testing.assert_allclose(
        model.decision_function(X_test + 1e8), once.decision_function(X_test + 1e8), atol=1e-6
    )
    # Coefficients are those of the features as they are, and so small files predict the same.
    model.save(tmp_path / "small", inference_only=True)
    small = evergrow.load(tmp_path / "small")
    np.testing.assert_array_equal(
        small.predict_proba(X_test + 1e8), model.predict_proba(X_test + 1e8)
    )
    found = X_test @ model.coef_.T + (model.intercept_ + 1e8 * model.coef_.sum(axis=1))
    np.testing.assert_allclose(found, model.decision_function(X_test + 1e8), atol=1e-4)


@pytest.mark.parametrize("model", [fixed(), RejectingClassifier(fixed(), random_state=0)], ids=str)
def test_rows_that_would_erase_a_model_are_refused(model: Any, digits: Arrays) -> None:
    X, y = digits[0][:300], digits[2][:300]
    model = clone(model).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="so much larger than all before"):
        model.partial_fit(X[:2] * 1e100, y[:2])
    np.testing.assert_array_equal(model.predict_proba(X), before)
