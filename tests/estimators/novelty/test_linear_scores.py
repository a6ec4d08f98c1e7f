"""Ridge scores and relative distances are those of their definitions, also of left-out examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow.estimators.novelty.linear_scores import (
    LinearMatrices,
    LinearScores,
    batch_with_constant,
)
from evergrow.estimators.novelty.summed_scores import SummedScores
from evergrow.estimators.sums.moments import Batch, Moments
from tests.reference import rejection

Array = np.ndarray[Any, Any]


def weighted_examples(
    n: int, n_features: int, n_classes: int = 4, seed: int = 0
) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes).astype(np.int32)
    X = 3 + rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(n, n_features))
    return X, y, rng.uniform(0.5, 2.0, n)


def sums(X: Array, y: Array, weights: Array, n_classes: int = 4) -> Moments:
    return Moments.none(X.shape[1], n_classes, gram=True).add_all([Batch(X, y, weights)])


def check_definition(
    found: LinearMatrices,
    queries: Array,
    X: Array,
    y: Array,
    weights: Array,
    penalty: float,
    everything: tuple[Array, Array] | None = None,
) -> None:
    """Compare scores; they are recoded by the labels and weights of ``everything``."""
    labels, sizes = (y, weights) if everything is None else everything
    for x, scores, relative, distance in zip(queries, *found, strict=True):
        arguments = (x, X, y.tolist(), weights, penalty)
        expected = rejection.recode(rejection.ridge_scores(*arguments), labels.tolist(), sizes)
        np.testing.assert_allclose(scores, expected, atol=1e-9)
        near, apart = rejection.distances(*arguments)
        np.testing.assert_allclose(relative, near - apart, atol=1e-9)
        np.testing.assert_allclose(distance, apart, atol=1e-9)


def linear(summed: SummedScores) -> LinearScores:
    assert summed.linear is not None
    return summed.linear


@pytest.mark.parametrize(("n", "n_features"), [(60, 8), (12, 20)])
def test_scores_are_those_of_the_definition(n: int, n_features: int) -> None:
    X, y, weights = weighted_examples(n, n_features)
    summed = SummedScores.of(sums(X, y, weights))
    queries = weighted_examples(5, n_features, seed=1)[0]
    check_definition(linear(summed).matrices(queries), queries, X, y, weights, summed.penalty)


@pytest.mark.parametrize(("n", "n_features"), [(40, 8), (12, 20)])
def test_left_out_scores_are_those_of_learning_without_the_example(n: int, n_features: int) -> None:
    X, y, weights = weighted_examples(n, n_features)
    summed = SummedScores.of(sums(X, y, weights))
    found = linear(summed).left_out(batch_with_constant(Batch(X, y, weights)))
    for i in range(n):
        rest = np.arange(n) != i
        one = LinearMatrices(*(part[[i]] for part in found))
        left = (X[rest], y[rest], weights[rest])
        check_definition(one, X[[i]], *left, summed.penalty, (y, weights))


@pytest.mark.parametrize(("n", "n_features"), [(40, 8), (12, 20)])
def test_foreign_scores_are_those_of_learning_without_the_class(n: int, n_features: int) -> None:
    X, y, weights = weighted_examples(n, n_features)
    summed = SummedScores.of(sums(X, y, weights))
    found = linear(summed).foreign(batch_with_constant(Batch(X, y, weights)))
    for own in range(4):
        rest, mine = y != own, y == own
        left = sums(X[rest], y[rest], weights[rest])
        without = linear(SummedScores.of(left, summed.penalty)).matrices(X[mine])
        np.testing.assert_allclose(found[mine], without.best, atol=1e-9)


def test_one_class_has_only_a_cosine() -> None:
    X, y, weights = weighted_examples(20, 4)
    summed = SummedScores.of(sums(X, 0 * y, weights))
    assert summed.linear is None
    assert summed.best(X).others.shape == (20, 0)
