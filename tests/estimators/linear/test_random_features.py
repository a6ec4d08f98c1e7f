"""Random features next to the input, as many as leave-one-out shows to help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import RLSClassifier
from evergrow.estimators import RFF

Array = np.ndarray[Any, Any]


def rings(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Four classes by distance from the origin, which no linear score separates."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    X = rng.normal(size=(n, 4))
    X *= ((1 + y) / np.linalg.norm(X, axis=1))[:, None] + 0.02 * rng.normal(size=(n, 1))
    return X, y


def auto(**parameters: Any) -> RLSClassifier:
    parameters = {"max_stored": 80, "max_gram_memory": "200KB", "random_state": 0, **parameters}
    return RLSClassifier(n_random_features="auto", **parameters)


def same(one: RLSClassifier, other: RLSClassifier) -> None:
    assert one.n_random_features_ == other.n_random_features_
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-9)


def test_few_examples_have_no_random_features() -> None:
    X, y = rings(60)
    model = auto(max_stored=200).fit(X, y)
    assert model.n_random_features_ == 0
    same(model, RLSClassifier(max_stored=200, random_state=0).fit(X, y))


def test_many_examples_have_as_many_as_help() -> None:
    X, y = rings(1500)
    X_test, y_test = rings(1000, seed=1)
    model = auto(max_stored=400).fit(X, y)
    assert model.n_random_features_ > 0
    plain = RLSClassifier(random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > plain.score(X_test, y_test) + 0.2


def test_random_features_that_do_not_help_are_not_used() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.normal(size=(600, 6)) + 1.5 * np.eye(3, 6)[y]
    model = auto(recoding=0.0, max_stored=400).fit(X, y)
    assert model.n_random_features_ == 0
    plain = RLSClassifier(regularization=model.regularization_, recoding=0.0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-9)
    # They are added up, because they may help later.
    assert model.coef_.shape[1] > X.shape[1]
    assert (model.coef_[:, 6:] == 0).all()


@pytest.mark.parametrize("feature_map", ["relu", RFF(gamma=0.5)])
def test_a_stream_gives_the_model_of_one_call(feature_map: Any) -> None:
    X, y = rings(600)
    whole = auto(feature_map=feature_map, regularization=0.1, recoding=0.0).fit(X, y)
    stream = auto(feature_map=feature_map, regularization=0.1, recoding=0.0)
    for rows in np.array_split(np.arange(600), [5, 30, 79, 81, 200]):
        stream.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(stream._fitted.moments.gram, whole._fitted.moments.gram, atol=1e-8)
    order = np.argsort(stream.classes_)
    assert stream.n_stored_[order].tolist() == whole.n_stored_.tolist()
    sums = stream._fitted.moments.sums[order]
    np.testing.assert_allclose(sums, whole._fitted.moments.sums, atol=1e-8)


def test_the_gram_matrix_has_the_size_that_was_asked_for() -> None:
    X, y = rings(300)
    for size in (50_000, 400_000):
        gram = auto(max_gram_memory=size).fit(X, y)._fitted.moments.gram
        assert 0.9 * size < gram.nbytes <= size
    narrow = auto(max_gram_memory=100).fit(X, y)
    assert narrow.n_random_features_ == 0
    assert narrow.coef_.shape == (4, 4)


def test_examples_are_forgotten_exactly() -> None:
    X, y = rings(400)
    options = {"regularization": 0.1, "recoding": 0.3}
    model = auto(**options).fit(X, y).forget(X[300:], y[300:])
    expected = auto(**options).fit(X[:300], y[:300])
    np.testing.assert_allclose(model._fitted.moments.gram, expected._fitted.moments.gram, atol=1e-8)


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
    expected = auto(max_stored=60).fit(X[few], np.where(y[few] == 1, 0, y[few]))
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


def test_blocks_and_random_features_are_selected_together() -> None:
    X, y = rings(900)
    noise = np.random.default_rng(5).normal(size=(900, 3))
    model = auto(blocks=(4, 3), max_stored=200).fit(np.column_stack([X, noise]), y)
    assert model.used_blocks_[0] == 0
    assert set(model.used_blocks_) <= {0, 1}
    assert model.n_random_features_ > 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_random_features": "many"}, "n_random_features"),
        ({"n_random_features": "auto", "max_gram_memory": "much"}, "max_gram_memory"),
        ({"n_random_features": "auto", "selection": "paper"}, "leave-one-out"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    X, y = rings(30)
    with pytest.raises(evergrow.InvalidInputError, match=message):
        RLSClassifier(**parameters).fit(X, y)


def test_a_model_with_a_number_is_not_made_automatic() -> None:
    X, y = rings(300)
    model = RLSClassifier(n_random_features=20, random_state=0).fit(X, y)
    model.set_params(n_random_features="auto")
    with pytest.raises(evergrow.InvalidInputError, match="fit again"):
        model.partial_fit(X[:1], y[:1])
