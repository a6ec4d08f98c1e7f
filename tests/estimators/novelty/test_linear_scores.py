"""Ridge scores and relative distances are those of their definitions, also of left-out examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow.estimators.novelty import summed_scores
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


def test_a_rehearsal_scores_examples_as_known_and_as_unknown() -> None:
    X, y, _ = weighted_examples(40, 8)
    summed = SummedScores.of(sums(X, y, np.ones(40)))
    for some in (slice(None), slice(0, 24)):
        found = summed.rehearse(Batch(X[some], y[some], np.ones(len(y[some]))))
        assert found is not None
        known, unknown = rejection.rehearse(X[some], y[some].tolist(), summed.penalty)
        np.testing.assert_allclose(found.known, known, atol=1e-9)
        np.testing.assert_allclose(found.unknown, unknown, atol=1e-9)
        assert found.n_classes == 4


def test_a_rehearsal_takes_every_nth_example_of_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_scores, "_MOST_REHEARSED", 20)
    X, y, weights = weighted_examples(40, 8)
    batch = Batch(X, y, weights)
    thinned = summed_scores._thinned(batch)
    for own in range(4):
        np.testing.assert_array_equal(thinned.rows[thinned.codes == own], X[y == own][::2])


def test_classes_without_examples_change_nothing_and_are_never_the_best() -> None:
    X, y, weights = weighted_examples(60, 8)
    few = linear(SummedScores.of(sums(X, y, weights))).matrices(X)
    many = linear(SummedScores.of(sums(X, y, weights, n_classes=6))).matrices(X)
    for one, other in zip(few[:2], many[:2], strict=True):
        np.testing.assert_allclose(other[:, :4], one, atol=1e-9)
    assert (many.ridge[:, 4:] == -np.inf).all()
    assert (many.distances[:, 4:] == np.inf).all()
    np.testing.assert_allclose(many.best, few.best, atol=1e-9)


def test_the_unit_of_the_weights_does_not_matter() -> None:
    X, y, weights = weighted_examples(60, 8)
    light = linear(SummedScores.of(sums(X, y, weights)))
    # Relative to these weights, the penalty of the constant is a thousand times smaller.
    heavy = linear(SummedScores.of(sums(X, y, 1000 * weights)))
    np.testing.assert_allclose(light.matrices(X)[0], heavy.matrices(X)[0], atol=1e-12)


@pytest.mark.parametrize(
    "X", [np.ones((8, 3)), np.zeros((8, 3)), np.repeat(np.eye(4, 3), 2, axis=0)]
)
def test_examples_that_do_not_differ_have_at_least_a_cosine(X: Array) -> None:
    y = (np.arange(8) // 2).astype(np.int32)
    found = SummedScores.of(sums(X, y, np.ones(8))).best(X)
    assert np.isfinite(found.scores).all()
    assert np.isfinite(found.others).all()


def test_rare_classes_have_recoded_scores() -> None:
    X, y, weights = weighted_examples(60, 8)
    rare = np.where(y == 0, 0.05, 1.0)
    usual = [
        float(linear(SummedScores.of(sums(X, y, w))).matrices(X)[0][y == 0, 0].mean())
        for w in (weights, weights * rare)
    ]
    assert usual[1] > 0.5 * usual[0]


def test_more_than_500_classes_have_only_a_cosine() -> None:
    X = np.random.default_rng(0).normal(size=(1002, 3))
    y = (np.arange(1002) // 2).astype(np.int32)
    assert SummedScores.of(sums(X, y, np.ones(1002), n_classes=501)).linear is None


def test_one_class_has_only_a_cosine() -> None:
    X, y, weights = weighted_examples(20, 4)
    summed = SummedScores.of(sums(X, 0 * y, weights))
    assert summed.linear is None
    assert summed.best(X).others.shape == (20, 0)
