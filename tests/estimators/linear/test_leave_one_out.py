"""Leave-one-out scores in closed form are those of a model without the example."""

from __future__ import annotations

import numpy as np
import pytest

from evergrow import RLSClassifier
from evergrow.estimators.linear.equations import SCORINGS, Ridge, Scoring
from evergrow.estimators.linear.leave_one_out import LeftOutExamples, Validation
from evergrow.estimators.linear.selection import SelectionRequest, select
from evergrow.estimators.sums.changes import subtract
from evergrow.estimators.sums.moments import Batch, Moments
from tests.reference.leave_one_out import left_out_cosines, left_out_scores

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
    found = LeftOutExamples.of(batch, moments).scores(
        Ridge(penalty, intercept=intercept, scoring="regression")
    )
    expected = left_out_scores(
        batch.rows, batch.codes, N_CLASSES, penalty, batch.weights, intercept=intercept
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("recoding", [0.0, 0.4, 1.0])
def test_normalised_scores_are_those_of_the_sums_without_the_example(recoding: float) -> None:
    batch, moments = learnt()
    stream = LeftOutExamples.of(batch, moments)
    scores = stream.scores(Ridge(0.3))
    found = stream.normalised(scores, recoding)
    for i in range(len(scores)):
        one = Batch(batch.rows[i : i + 1], batch.codes[i : i + 1], batch.weights[i : i + 1])
        others = Validation(one, subtract(moments, [one]), moments)
        expected = others.normalised(scores[i : i + 1], recoding)
        np.testing.assert_allclose(found[i : i + 1], expected, atol=1e-9)


def test_selection_by_leave_one_out_is_that_by_held_out_examples() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, 200).astype(np.int32)
    centres = np.random.default_rng(99).normal(size=(4, 30))
    plain = rng.normal(size=(200, 30)) * 3 + centres[codes]
    rows = np.column_stack([plain, np.ones(200)])
    batch = Batch(rows, codes, np.ones(200))
    moments = Moments.none(31, 4, gram=True).add_all([batch])
    chosen = select(LeftOutExamples.of(batch, moments), None, Ridge, SelectionRequest(None, None))
    assert chosen is not None
    accurate = RLSClassifier(regularization=chosen.penalty, recoding=chosen.recoding)
    careless = RLSClassifier(regularization=1e-6, recoding=0.0)
    y_test = rng.integers(0, 4, 3000)
    X_test = rng.normal(size=(3000, 30)) * 3 + centres[y_test]
    scores = [m.fit(plain, codes).score(X_test, y_test) for m in (accurate, careless)]
    assert scores[0] > scores[1]
    assert chosen.temperature < 10


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [1e-4, 0.3, 50.0])
def test_scores_are_the_same_with_more_features_than_examples(
    intercept: bool, penalty: float
) -> None:
    batch, moments = learnt(n=20, d=40, intercept=intercept)
    found = LeftOutExamples.of(batch, moments).scores(
        Ridge(penalty, intercept=intercept, scoring="regression")
    )
    expected = left_out_scores(
        batch.rows, batch.codes, N_CLASSES, penalty, batch.weights, intercept=intercept
    )
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("d", [7, 100])
def test_near_duplicates_are_left_out_together(d: int, scoring: Scoring) -> None:
    batch, _ = learnt(n=30, d=d)
    rows, codes = np.repeat(batch.rows, 3, axis=0), np.repeat(batch.codes, 3)
    rows[:, :-1] += 1e-3 * np.random.default_rng(0).normal(size=(90, d))
    burst = Batch(rows, codes, np.repeat(batch.weights, 3))
    moments = Moments.none(d + 1, N_CLASSES, gram=True).add_all([burst])
    stream, ridge = LeftOutExamples.of(burst, moments), Ridge(0.3, scoring=scoring)
    assert stream.groups.tolist() == [
        g for scene in stream.groups[::3].tolist() for g in (scene,) * 3
    ]
    assert len(np.unique(stream.groups)) == 30
    found = stream.scores(ridge)
    for scene in range(0, 90, 3):
        places = np.arange(scene, scene + 3)
        gone = Batch(rows[places], codes[places], burst.weights[places])
        expected = Validation(gone, subtract(moments, [gone]), moments).scores(ridge)
        if np.count_nonzero(codes == codes[scene]) > 3:
            np.testing.assert_allclose(found[places], expected, atol=1e-5)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_examples_that_repeat_count_like_one_example_of_more_weight(scoring: Scoring) -> None:
    batch, _ = learnt(n=25, d=60)
    repeated = Batch(
        np.repeat(batch.rows, 2, axis=0), np.repeat(batch.codes, 2), np.repeat(batch.weights, 2)
    )
    twice = Moments.none(61, N_CLASSES, gram=True).add_all([repeated])
    heavy = Batch(batch.rows, batch.codes, 2 * batch.weights)
    weighted = Moments.none(61, N_CLASSES, gram=True).add_all([heavy])
    for penalty in (0.1, 10.0, 1000.0):
        ridge = Ridge(penalty, scoring=scoring)
        found = LeftOutExamples.of(repeated, twice).quality(ridge)
        expected = LeftOutExamples.of(heavy, weighted).quality(ridge)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_quality_is_the_agreement_of_scores_and_labels() -> None:
    batch, moments = learnt()
    stream = LeftOutExamples.of(batch, moments)
    scores = left_out_scores(batch.rows, batch.codes, N_CLASSES, 0.3, batch.weights)
    counts = np.bincount(batch.codes, batch.weights)
    own = np.arange(len(scores)), batch.codes
    judged = np.bincount(batch.codes)[batch.codes] > 1
    # As if the class had not lost an example.
    scores[own] *= counts[batch.codes] / np.where(judged, counts[batch.codes] - batch.weights, 1.0)
    coded = np.eye(N_CLASSES)[batch.codes]
    scores, coded, weights = scores[judged], coded[judged], batch.weights[judged][:, None]
    scale = (weights * scores * coded).sum() / (weights * scores**2).sum()
    losses = (scale * scores - coded) ** 2
    judgement = stream.judge(Ridge(0.3, scoring="regression"))
    assert judgement is not None
    np.testing.assert_array_equal(judgement.right, scores.argmax(axis=1) == coded.argmax(axis=1))
    accuracy = float(np.average(judgement.right, weights=weights[:, 0]))
    share = 3 * len(losses) / (len(losses) + 1000)
    qualities = share * judgement.right - losses.sum(axis=1)
    np.testing.assert_allclose(judgement.qualities, qualities, atol=1e-9)
    expected = share * accuracy - (weights * losses).sum() / weights.sum()
    np.testing.assert_allclose(
        stream.quality(Ridge(0.3, scoring="regression")), expected, atol=1e-9
    )


@pytest.mark.parametrize("by_means", [True, False])
@pytest.mark.parametrize("n_alike", [1, 3])
@pytest.mark.parametrize("d", [7, 160])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [0.1, 50.0])
def test_cosines_are_those_of_a_model_without_the_example(
    by_means: bool, n_alike: int, d: int, intercept: bool, penalty: float
) -> None:
    batch, _ = learnt(n=40, d=d, intercept=intercept)
    rows = np.repeat(batch.rows, n_alike, axis=0)
    rows[:, :d] += 1e-3 * np.random.default_rng(0).normal(size=(len(rows), d))
    batch = Batch(rows, np.repeat(batch.codes, n_alike), np.repeat(batch.weights, n_alike))
    moments = Moments.none(rows.shape[1], N_CLASSES, gram=True).add_all([batch])
    stream = LeftOutExamples.of(batch, moments)
    found = stream.scores(Ridge(penalty, intercept=intercept, by_means=by_means))
    expected = left_out_cosines(
        rows[:, :d],
        batch.codes,
        np.arange(len(rows)) // n_alike,
        N_CLASSES,
        penalty,
        batch.weights,
        intercept=intercept,
        by_means=by_means,
    )
    np.testing.assert_allclose(found, expected, atol=1e-6, rtol=1e-6)
