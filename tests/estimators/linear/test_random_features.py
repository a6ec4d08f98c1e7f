"""Random features next to the input, as many as leave-one-out shows to help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import evergrow
from evergrow import RLSClassifier
from evergrow.estimators import Auto, LeaveOneOut, ReLU

Array = np.ndarray[Any, Any]


def rings(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Four classes by distance from the origin, which no linear score separates."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    X = rng.normal(size=(n, 4))
    X *= ((1 + y) / np.linalg.norm(X, axis=1))[:, None] + 0.02 * rng.normal(size=(n, 1))
    return X, y


def auto(**parameters: Any) -> RLSClassifier:
    parameters = {"selection": LeaveOneOut(80), "random_state": 0, **parameters}
    return RLSClassifier(features=Auto("200KB"), **parameters)


def same(one: RLSClassifier, other: RLSClassifier) -> None:
    assert one.n_random_features_ == other.n_random_features_
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)


def test_few_examples_have_no_random_features() -> None:
    X, y = rings(60)
    model = auto(selection=LeaveOneOut(200)).fit(X, y)
    assert model.n_random_features_ == 0
    same(model, RLSClassifier(selection=LeaveOneOut(200), random_state=0).fit(X, y))


def test_many_examples_have_as_many_as_help() -> None:
    X, y = rings(1500)
    X_test, y_test = rings(1000, seed=1)
    model = auto(selection=LeaveOneOut(400)).fit(X, y)
    assert model.n_random_features_ > 0
    plain = RLSClassifier(random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > plain.score(X_test, y_test) + 0.2


def test_a_stream_gives_the_model_of_one_call() -> None:
    X, y = rings(600)
    whole = auto(regularization=0.1, recoding=0.0).fit(X, y)
    stream = auto(regularization=0.1, recoding=0.0)
    for rows in np.array_split(np.arange(600), [5, 30, 79, 81, 200]):
        stream.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(stream._fitted.moments.gram, whole._fitted.moments.gram, atol=1e-8)
    order = np.argsort(stream.classes_)
    assert stream.n_stored_[order].tolist() == whole.n_stored_.tolist()
    sums = stream._fitted.moments.sums[order]
    np.testing.assert_allclose(sums, whole._fitted.moments.sums, atol=1e-8)


@pytest.mark.parametrize("sizes", [(40, 40), (40, 300), (300, 40), (300, 300), (70, 70)])
def test_merged_models_have_the_sums_of_one(sizes: tuple[int, int]) -> None:
    X, y = rings(sum(sizes))
    first, second = slice(0, sizes[0]), slice(sizes[0], None)
    merged = auto().fit(X[first], y[first]).merge(auto().fit(X[second], y[second]))
    expected = auto().fit(X, y)
    np.testing.assert_allclose(
        merged._fitted.moments.gram, expected._fitted.moments.gram, atol=1e-8
    )


def test_models_with_other_random_features_are_not_merged() -> None:
    X, y = rings(300)
    wide, other = auto().fit(X, y), auto(random_state=1).fit(X, y)
    with pytest.raises(evergrow.InvalidInputError, match="seed of the random features"):
        wide.merge(other)
    # A model that has all its examples can take over the random features.
    wide.merge(auto(random_state=1).fit(X[:40], y[:40]))
    with pytest.raises(evergrow.InvalidInputError, match="random features next to the input"):
        wide.merge(RLSClassifier(random_state=0).fit(X, y))


def test_joined_classes_that_lose_examples_get_random_features_before() -> None:
    X, y = rings(80)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    few = np.concatenate([np.flatnonzero(y == c)[:12] for c in range(4)])
    model = auto().fit(X[few], y[few])
    assert model.coef_.shape[1] == 4
    model.rename_classes({1: 0})
    expected = auto(selection=LeaveOneOut(60)).fit(X[few], np.where(y[few] == 1, 0, y[few]))
    np.testing.assert_allclose(model._fitted.moments.gram, expected._fitted.moments.gram, atol=1e-8)


@pytest.mark.parametrize("n", [60, 400])
def test_saved_models_go_on_learning(n: int, tmp_path: Path) -> None:
    X, y = rings(800)
    model = auto().fit(X[:n], y[:n])
    model.save(tmp_path / "model.evergrow")
    loaded = evergrow.load(tmp_path / "model.evergrow")
    same(loaded, model)
    same(loaded.partial_fit(X[n:], y[n:]), model.partial_fit(X[n:], y[n:]))
    model.save(tmp_path / "weights.evergrow", inference_only=True)
    weights = evergrow.load(tmp_path / "weights.evergrow")
    np.testing.assert_array_equal(weights.predict(X), model.predict(X))


def test_a_grid_search_finds_the_number() -> None:
    X, y = rings(300)
    model = RLSClassifier(features=ReLU(2), regularization=0.1, recoding=0.0, random_state=0)
    found = GridSearchCV(model, {"features__n": [2, 200]}, cv=2).fit(X, y)
    assert found.best_estimator_.features == ReLU(200)
    assert model.features == ReLU(2)
