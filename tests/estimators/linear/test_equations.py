"""The equations of class means: exact for any order, weights, offsets and forgetting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import evergrow
from evergrow import RLSClassifier
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


@pytest.mark.parametrize("weight", [1e-6, 0.01, 1e4, 1e7])
def test_weights_of_any_unit_give_the_cosines_of_the_twin(weight: float) -> None:
    X, y = examples()
    weights = weight * np.random.default_rng(0).uniform(0.5, 2, len(X))
    found = fixed().fit(X, y, sample_weight=weights).decision_function(X)
    expected = cosine_scores(X, y, 4, 2.0, 0.3, intercept=True, sample_weight=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


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
