"""Leave-one-out scores in closed form are those of a model without the example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import RLSClassifier
from evergrow.estimators.linear.leave_one_out import LeaveOneOut
from evergrow.estimators.linear.selection import SelectionRequest, normalised, select
from evergrow.estimators.linear.solver import Ridge
from evergrow.estimators.sums.changes import subtract
from evergrow.estimators.sums.moments import Batch, Moments
from tests.reference.leave_one_out import left_out_recoding, left_out_scores

Array = np.ndarray[Any, Any]
N_CLASSES = 5


def learnt(
    n: int = 60, d: int = 7, *, intercept: bool = True, seed: int = 0
) -> tuple[Batch, Moments]:
    """Weighted examples of classes of very different sizes, one of a single example."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(N_CLASSES - 1, n, p=[0.6, 0.2, 0.15, 0.05]).astype(np.int32)
    codes[:3], codes[3] = np.arange(3), N_CLASSES - 1
    rows = rng.normal(size=(n, d)) + 1.5 * codes[:, None]
    if intercept:
        rows = np.column_stack([rows, np.ones(n)])
    batch = Batch(rows, codes, rng.uniform(0.2, 3.0, n))
    return batch, Moments.none(rows.shape[1], N_CLASSES, gram=True).add_all([batch])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [1e-4, 0.3, 50.0])
def test_scores_are_those_of_a_model_without_the_example(intercept: bool, penalty: float) -> None:
    batch, moments = learnt(intercept=intercept)
    found = LeaveOneOut.of(batch, moments).scores(Ridge(penalty, intercept=intercept))
    expected = left_out_scores(
        batch.rows, batch.codes, N_CLASSES, penalty, batch.weights, intercept=intercept
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("recoding", [0.0, 0.4, 1.0])
def test_recoding_counts_the_other_examples_only(recoding: float) -> None:
    batch, moments = learnt()
    stream = LeaveOneOut.of(batch, moments)
    scores = stream.scores(Ridge(0.3))
    factors = left_out_recoding(batch.codes, N_CLASSES, batch.weights, recoding)
    # Nothing is left of a class of one example; powers of nothing are what the code says.
    np.testing.assert_allclose(stream.recoded(scores, recoding), scores * factors, atol=1e-9)


@pytest.mark.parametrize("recoding", [0.0, 0.4, 1.0])
def test_normalised_scores_are_those_of_the_sums_without_the_example(recoding: float) -> None:
    batch, moments = learnt()
    stream = LeaveOneOut.of(batch, moments)
    scores = stream.scores(Ridge(0.3))
    found = stream.normalised(scores, recoding)
    for i in range(len(scores)):
        one = Batch(batch.rows[i : i + 1], batch.codes[i : i + 1], batch.weights[i : i + 1])
        expected = normalised(scores[i : i + 1], subtract(moments, [one]), recoding)
        np.testing.assert_allclose(found[i : i + 1], expected, atol=1e-9)


def test_any_part_of_the_examples_has_the_scores_it_has_among_all() -> None:
    batch, moments = learnt()
    part = Batch(batch.rows[10:20], batch.codes[10:20], batch.weights[10:20])
    everything = LeaveOneOut.of(batch, moments).scores(Ridge(0.3))
    found = LeaveOneOut.of(part, moments).scores(Ridge(0.3))
    np.testing.assert_allclose(found, everything[10:20], atol=1e-12)


def test_selection_by_leave_one_out_is_that_by_held_out_examples() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, 200).astype(np.int32)
    centres = np.random.default_rng(99).normal(size=(4, 30))
    plain = rng.normal(size=(200, 30)) * 3 + centres[codes]
    rows = np.column_stack([plain, np.ones(200)])
    batch = Batch(rows, codes, np.ones(200))
    moments = Moments.none(31, 4, gram=True).add_all([batch])
    chosen = select(LeaveOneOut.of(batch, moments), None, Ridge, SelectionRequest(None, None))
    assert chosen is not None
    accurate = RLSClassifier(regularization=chosen.penalty, recoding=chosen.recoding)
    careless = RLSClassifier(regularization=1e-6, recoding=0.0)
    y_test = rng.integers(0, 4, 3000)
    X_test = rng.normal(size=(3000, 30)) * 3 + centres[y_test]
    scores = [m.fit(plain, codes).score(X_test, y_test) for m in (accurate, careless)]
    assert scores[0] > scores[1]
    assert chosen.temperature < 10


def test_standardised_features_are_refused() -> None:
    batch, moments = learnt()
    with pytest.raises(ValueError, match="standardize=False"):
        LeaveOneOut.of(batch, moments).scores(Ridge(0.3, standardize=True))
