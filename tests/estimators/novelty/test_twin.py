"""The same rejection as the plain NumPy twin, however the examples are split into calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from evergrow import RejectingClassifier
from tests.budget import budget
from tests.estimators.novelty.cones import RememberingClassifier, cones, rejecting
from tests.reference import rejection

OPTIONS = {"validation_every": 3, "max_held_out": 60, "false_alarms": 0.2}


def small_integers(n: int, seed: int) -> tuple[Any, Any]:
    X, y = cones(n, range(4), seed)
    # Sums of small integers are exact in any order.
    return np.round(X), np.array(["ant", "bee", "cat", "dog"])[y]


def same_calibration(model: RejectingClassifier, other: RejectingClassifier) -> None:
    columns = [other.classes_.tolist().index(name) for name in model.classes_.tolist()]
    assert model.level_ == pytest.approx(other.level_, abs=1e-12)
    np.testing.assert_allclose(model.usual_scores_, other.usual_scores_[columns], atol=1e-12)
    np.testing.assert_allclose(model.spreads_, other.spreads_[columns], atol=1e-12)
    np.testing.assert_array_equal(model.n_held_out_, other.n_held_out_[columns])


@pytest.mark.parametrize(("measure", "n"), [("cosine", 12), ("cosine", 90), ("auto", 12)])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_does_what_the_twin_does(measure: Any, n: int, seed: int) -> None:
    X, y = small_integers(n, seed)
    # One class is larger than the others, so that its examples stand for more.
    some = (y == "ant") | (np.arange(len(y)) % 3 > 0)
    X, y = X[some], y[some]
    model = rejecting(**{**OPTIONS, "measure": measure, "max_held_out": 28}).fit(X, y)
    held_out = model._fitted.holdout
    limits = {"every": 1 if measure == "auto" else 3, "max_held_out": 28}
    twin = rejection.learn(
        X, y.tolist(), held_out.seed, **limits, false_alarms=0.2, summed=measure == "auto"
    )
    places = rejection.held_out(y.tolist(), held_out.seed, **limits)
    np.testing.assert_array_equal(held_out.batch.rows, X[places])
    assert model.level_ == pytest.approx(twin.level, abs=1e-9)
    usual = [twin.usual[name] for name in model.classes_.tolist()]
    np.testing.assert_allclose(model.usual_scores_, usual, atol=1e-12)
    spreads = [twin.spreads[name] for name in model.classes_.tolist()]
    np.testing.assert_allclose(model.spreads_, spreads, atol=1e-12)
    query = small_integers(5, seed + 9)[0]
    novelties = [twin.novelty(x) for x in query]
    np.testing.assert_allclose(model.novelty(query), novelties, atol=1e-9)


@settings(max_examples=budget(25))
@given(
    cuts=st.lists(st.integers(1, 239), max_size=5, unique=True),
    measure=st.sampled_from(["auto", "cosine", "estimator"]),
    shuffle=st.booleans(),
)
def test_any_split_into_calls_gives_the_same_calibration(
    cuts: list[int], measure: Any, shuffle: bool
) -> None:
    X, y = small_integers(60, 0)
    order = np.arange(240) if shuffle else np.argsort(y, kind="stable")
    model = RejectingClassifier(RememberingClassifier(), random_state=0, measure=measure, **OPTIONS)
    at_once = clone(model).fit(X[order], y[order])
    for part in np.split(order, sorted(cuts)):
        model.partial_fit(X[part], y[part])
    same_calibration(model, at_once)


def test_other_seeds_keep_other_examples() -> None:
    X, y = small_integers(90, 0)
    kept = [
        rejecting(**{**OPTIONS, "random_state": seed}).fit(X, y)._fitted.holdout.batch.rows
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(kept[0], kept[1])
    assert (kept[0] != kept[2]).any()


def test_a_row_at_the_origin_has_cosine_zero() -> None:
    X, y = small_integers(40, 0)
    model = rejecting(**OPTIONS).fit(X, y)
    means = [X[y == name].mean(axis=0) for name in model.classes_]
    origin = np.mean(means, axis=0, keepdims=True) / 2
    assert (model.novelty(origin) > 0.5).all()
    assert (model.predict(origin) == "unknown").all()


def test_the_unit_of_the_features_does_not_matter() -> None:
    X, y = small_integers(40, 0)
    model = rejecting(**OPTIONS).fit(X, y)
    for scale in (1e-100, 1e100):
        scaled = rejecting(**OPTIONS).fit(X * scale, y)
        np.testing.assert_allclose(scaled.novelty(X * scale), model.novelty(X), atol=1e-9)
    assert np.isfinite(model.novelty(X * 1e300)).all()
