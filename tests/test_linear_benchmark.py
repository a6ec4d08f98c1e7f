"""What the benchmark of least squares computes is what its tables say."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.data import Split, mixture
from benchmarks.linear.accuracy import calibration_error
from benchmarks.linear.imbalance import METHODS, NEW, imbalanced
from benchmarks.linear.one_example import _update_with_numpy, seconds_per_example
from benchmarks.linear.rejection import novelties


def test_confidence_that_is_right_as_often_as_it_says_has_no_calibration_error() -> None:
    probabilities = np.tile([0.75, 0.25], (400, 1))
    right = np.arange(400) % 4 > 0
    assert calibration_error(probabilities, right) == pytest.approx(0.0)
    assert calibration_error(probabilities, np.zeros(400, dtype=bool)) == pytest.approx(0.75)


def test_the_peers_update_of_the_factor_is_right() -> None:
    rng = np.random.default_rng(0)
    X, x = rng.normal(size=(30, 6)), rng.normal(size=6)
    factor = np.linalg.cholesky(X.T @ X).T.copy()
    _update_with_numpy(factor, x)
    np.testing.assert_allclose(factor.T @ factor, X.T @ X + np.outer(x, x), atol=1e-9)


def test_the_new_class_is_shown_to_every_method() -> None:
    full = mixture(1500, 12, 10, n_test=500)
    split = Split("small", full.X, full.y, full.X_test, full.y_test)
    means = imbalanced(split, per_class=60, n_trials=1)
    assert {name for name, _ in means} == set(METHODS)
    assert means["recoded", 50][1] >= means["naive", 1][1]
    assert NEW in split.y


def test_seconds_are_measured_after_as_many_examples_as_said() -> None:
    found = seconds_per_example(8, 4, (20, 400))
    assert list(found) == [20, 400]
    assert all(seconds > 0 for seconds in found.values())


def test_unknown_classes_are_not_among_those_learnt() -> None:
    split = mixture(900, 16, 12, n_test=300)
    model, novelty, known = novelties(split, 6, seed=0)
    assert set(split.y_test[known]) <= set(model.classes_)
    assert not set(split.y_test[~known]) & set(model.classes_)
    assert novelty[~known].mean() > novelty[known].mean()
