"""The equations of class means: exact for any order, weights, offsets and forgetting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import evergrow
from evergrow import RLSClassifier
from evergrow.estimators.linear.equations import Followed, Ridge
from evergrow.estimators.sums.moments import Batch, Moments
from tests.reference.least_squares import cosine_scores

Array = np.ndarray[Any, Any]


def examples(n: int = 120, d: int = 6, n_classes: int = 4, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = np.sort(rng.choice(n_classes, n, p=[0.6, 0.2, 0.15, 0.05]))
    return rng.normal(size=(n, d)) + 2 * rng.normal(size=(n_classes, d))[y], y


def fixed(**parameters: Any) -> RLSClassifier:
    return RLSClassifier(regularization=2.0, recoding=0.3, **parameters)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_examples_followed_one_by_one_are_those_learnt_at_once(
    intercept: bool, spread: float
) -> None:
    X, y = examples()
    weights = np.exp(spread * np.random.default_rng(1).normal(size=len(X)))
    model = fixed(fit_intercept=intercept)
    for i in np.random.default_rng(2).permutation(len(X)):
        model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=weights[i : i + 1])
        model.predict(X[:1])
    order = [model.classes_.tolist().index(c) for c in range(4)]
    at_once = fixed(fit_intercept=intercept).fit(X, y, sample_weight=weights)
    expected = at_once.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X)[:, order], expected, rtol=1e-7)
    twin = cosine_scores(X, y, 4, 2.0, 0.3, intercept=intercept, sample_weight=weights)
    np.testing.assert_allclose(expected, twin, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("largest", [1.0, 1e6])
def test_nothing_is_left_of_a_class_whose_examples_were_all_forgotten(largest: float) -> None:
    X, y = examples()
    model = fixed().fit(X, y)
    before = model.decision_function(X)
    rng = np.random.default_rng(0)
    extra, weights = rng.normal(size=(40, 6)) + 5, rng.uniform(0.1, 10, 40)
    weights[0] *= largest
    for row, weight in zip(extra, weights, strict=True):
        model.partial_fit([row], [9], sample_weight=[weight]).predict(X[:1])
    for row, weight in zip(extra, weights, strict=True):
        model.forget([row], [9], sample_weight=[weight]).predict(X[:1])
    np.testing.assert_allclose(model.decision_function(X)[:, :4], before, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("weight", [1e-6, 0.01, 1e4, 1e7])
def test_weights_of_any_unit_give_the_cosines_of_the_twin(weight: float) -> None:
    X, y = examples()
    weights = weight * np.random.default_rng(0).uniform(0.5, 2, len(X))
    found = fixed().fit(X, y, sample_weight=weights).decision_function(X)
    expected = cosine_scores(X, y, 4, 2.0, 0.3, intercept=True, sample_weight=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("offset", [10.0, 1e4])
def test_an_offset_of_the_features_has_no_effect(offset: float) -> None:
    X, y = examples()
    found = fixed().fit(X + offset, y).predict(X + offset)
    np.testing.assert_array_equal(found, fixed().fit(X, y).predict(X))


def test_the_last_example_of_a_class_takes_its_mean_away() -> None:
    rows = np.array([[1.0, 2.0, 1.0], [3.0, 5.0, 1.0]])
    batch = Batch(rows, np.zeros(2, dtype=np.int32), np.array([0.5, 4.0]))
    moments = Moments.none(3, 1, gram=True)
    followed, total = Followed(moments), np.zeros((3, 3))
    sums = np.zeros(3)
    for change in (batch, batch.negated()):
        for rows, signs, _, targets in followed.steps(change, Ridge(1.0), 8):
            total += (rows * signs[:, None]).T @ rows
            sums += (signs * targets) @ rows
    np.testing.assert_allclose(total, 0, atol=1e-12)
    np.testing.assert_allclose(sums, 0, atol=1e-12)


def unequal(seed: int) -> tuple[Array, Array]:
    """Digits of five classes, one of which has three examples."""
    X, t = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    classes = rng.permutation(10)[:5]
    places = [
        rng.permutation(np.flatnonzero(t == c))[: 3 if k == 4 else 100]
        for k, c in enumerate(classes)
    ]
    rows = np.concatenate(places)
    return X[rows], t[rows]


def test_all_examples_are_regressed_where_that_is_more_accurate(tmp_path: Path) -> None:
    found = {}
    for seed in range(6):
        model = RLSClassifier(random_state=0).fit(*unequal(seed))
        found.setdefault(model.regresses_means_, (model, *unequal(seed)))
    assert set(found) == {True, False}
    model, X, y = found[False]
    scores = model.decision_function(X)
    for inference_only in (False, True):
        model.save(tmp_path / "model.eg", inference_only=inference_only)
        loaded = evergrow.load(tmp_path / "model.eg")
        assert not loaded.regresses_means_
        np.testing.assert_array_equal(loaded.decision_function(X), scores)
    # The choice was made together with the penalty.
    model.set_params(regularization=100.0, recoding=0.5)
    assert model.regresses_means_
    fresh = RLSClassifier(regularization=100.0, recoding=0.5).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), fresh.decision_function(X), rtol=1e-9)


def test_classes_of_similar_sizes_and_single_examples_keep_class_means() -> None:
    X, y = load_digits(return_X_y=True)
    assert RLSClassifier(random_state=0).fit(X[:500], y[:500]).regresses_means_
    X, y = unequal(0)
    single = np.flatnonzero(y == np.unique(y)[np.bincount(y)[np.unique(y)].argmin()])[1:]
    X, y = np.delete(X, single, axis=0), np.delete(y, single)
    assert RLSClassifier(random_state=0).fit(X, y).regresses_means_
    assert not RLSClassifier(scoring="regression", random_state=0).fit(X, y).regresses_means_
