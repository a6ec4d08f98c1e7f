"""Blocks of columns take part if leave-one-out shows that they help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evergrow
from evergrow import RLSClassifier

Array = np.ndarray[Any, Any]
WIDTHS = (12, 5, 8)


def blocks(n: int, *, helpful: bool, seed: int = 0) -> tuple[Array, Array]:
    """A first block that knows something, one of noise, and one that may know the rest."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    centres = np.random.default_rng(99).normal(size=(4, 12))
    first = 2.0 * rng.normal(size=(n, 12)) + centres[y]
    noise = rng.normal(size=(n, 5))
    last = rng.normal(size=(n, 8)) + (3.0 * np.eye(4, 8)[y] if helpful else 0.0)
    return np.column_stack([first, noise, last]), y


def test_a_block_takes_part_if_it_helps() -> None:
    X, y = blocks(200, helpful=True)
    model = RLSClassifier(blocks=WIDTHS, random_state=0).fit(X, y)
    assert model.used_blocks_ == (0, 2)
    assert (model.coef_[:, 12:17] == 0).all()
    without = RLSClassifier(random_state=0).fit(X[:, :12], y)
    X_test, y_test = blocks(1000, helpful=True, seed=1)
    assert model.score(X_test, y_test) > without.score(X_test[:, :12], y_test) + 0.1


@pytest.mark.parametrize("n", [30, 200, 1500])
def test_a_model_that_uses_some_blocks_is_one_that_has_only_them(n: int) -> None:
    X, y = blocks(n, helpful=False)
    model = RLSClassifier(blocks=WIDTHS, random_state=0).fit(X, y)
    assert model.used_blocks_ == (0,)
    only = RLSClassifier(random_state=0).fit(X[:, :12], y)
    assert model.regularization_ == pytest.approx(only.regularization_)
    assert model.recoding_ == only.recoding_
    np.testing.assert_allclose(
        model.predict_proba(X), only.predict_proba(X[:, :12]), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_single_examples_are_followed(intercept: bool, standardize: bool) -> None:
    X, y = blocks(300, helpful=True, seed=3)
    model = RLSClassifier(
        regularization=2.0,
        recoding=0.5,
        blocks=WIDTHS,
        fit_intercept=intercept,
        standardize=standardize,
        random_state=0,
    ).fit(X[:280], y[:280])
    for i in range(280, 300):
        model.partial_fit(X[i : i + 1], y[i : i + 1]).predict(X[:1])
    used = np.r_[0:12, 17:25]
    assert model.used_blocks_ == (0, 2)
    only = RLSClassifier(
        regularization=2.0, recoding=0.5, fit_intercept=intercept, standardize=standardize
    ).fit(X[:, used], y)
    np.testing.assert_allclose(model.coef_[:, used], only.coef_, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, only.intercept_, atol=1e-9)


def test_the_choice_is_stored(tmp_path: Any) -> None:
    X, y = blocks(200, helpful=True)
    model = RLSClassifier(blocks=np.array(WIDTHS), random_state=0).fit(X, y)
    for inference_only in (False, True):
        path = tmp_path / f"{inference_only}.evergrow"
        model.save(path, inference_only=inference_only)
        loaded = evergrow.load(path)
        assert loaded.used_blocks_ == (0, 2)
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("wrong", [(12, 5), (12, 5, 9), (), (12, -5, 18), "12", 25, (12.0, 13)])
def test_blocks_that_do_not_fit_are_refused(wrong: Any) -> None:
    X, y = blocks(40, helpful=True)
    with pytest.raises(ValueError, match="blocks"):
        RLSClassifier(blocks=wrong).fit(X, y)
    model = RLSClassifier(blocks=WIDTHS, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="blocks"):
        model.set_params(blocks=wrong).partial_fit(X, y)
    np.testing.assert_array_equal(model.set_params(blocks=WIDTHS).predict_proba(X), before)
