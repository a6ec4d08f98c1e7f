"""Wrong labels, near-duplicates and harmful examples are found, as by learning again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evergrow import InvalidInputError, InvalidTypeError, label_issues
from evergrow.estimators.curation.duplicates import near_duplicates
from evergrow.estimators.curation.harm import measure_harm
from evergrow.estimators.curation.wrong_labels import fit_softmax, held_out_logits
from evergrow.estimators.linear.ridge import RotatedRidge
from evergrow.estimators.sums.moments import Batch, Moments
from tests.reference import curation as twin

Array = np.ndarray[Any, Any]


def classes(n: int = 60, d: int = 6, n_classes: int = 4, seed: int = 0) -> tuple[Array, Array]:
    """Overlapping Gaussian classes far from the origin, and their codes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n).astype(np.int32)
    return rng.standard_normal((n, d)) + 3 * rng.standard_normal((n_classes, d))[codes] + 20, codes


def with_mistakes(n: int, share: float = 0.05) -> tuple[Array, Array, Array]:
    X, codes = classes(n, 10, 5)
    rng = np.random.default_rng(9)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.permutation(n)[: int(share * n)]] = True
    return X, np.where(wrong, (codes + rng.integers(1, 5, n)) % 5, codes), wrong


@pytest.mark.parametrize("d", [6, 80], ids=["many examples", "more features than examples"])
@pytest.mark.parametrize("penalty", [0.5, 50.0])
def test_left_out_scores_are_those_of_a_model_without_the_example(d: int, penalty: float) -> None:
    X, codes = classes(d=d)
    ridge = RotatedRidge.of(X, codes, 4)
    expected = twin.left_out_scores(X, codes, 4, penalty)
    np.testing.assert_allclose(
        ridge.left_out(ridge.rotated(X), codes, penalty), expected, rtol=1e-3, atol=2e-4
    )
    fit = ridge.fit(penalty, X, codes)
    np.testing.assert_allclose(fit.left_out(slice(None)), expected, rtol=1e-3, atol=2e-4)


def test_the_sums_of_a_model_give_the_same_left_out_scores() -> None:
    X, codes = classes()
    rows = np.column_stack([X, np.ones(len(X))])
    moments = Moments.none(7, 4, gram=True).add_all([Batch(rows, codes, np.ones(len(X)))])
    ridge, direct = RotatedRidge.of_moments(moments), RotatedRidge.of(X, codes, 4)
    np.testing.assert_allclose(
        ridge.left_out(ridge.rotated(X), codes, 2.0),
        direct.left_out(direct.rotated(X), codes, 2.0),
        atol=2e-4,
    )
    assert ridge.unit == pytest.approx(direct.unit, rel=1e-5)


@pytest.mark.parametrize("d", [5, 40], ids=["many examples", "more features than examples"])
def test_harm_is_that_of_learning_again_without_the_example(d: int) -> None:
    X, codes = classes(30, d)
    codes[4] = (codes[4] + 1) % 4
    found = measure_harm(RotatedRidge.of(X, codes, 4).fit(3.0, X, codes))
    expected = twin.harm(X, codes, 4, 3.0)
    np.testing.assert_allclose(found.percent, expected[found.rows], rtol=1e-2, atol=2e-3)
    assert found.rows[0] == expected.argmax()
    assert sorted(found.rows) == list(range(30))


def test_near_duplicates_are_those_of_all_pairs() -> None:
    X, _ = classes(40, 8)
    X[31] = X[3] + 1e-3
    X[12] = X[31] - 2e-3
    X[20] = X[21]
    assert near_duplicates(X, 0.97) == twin.near_duplicates(X, 0.97)
    assert near_duplicates(X, 0.999) == [[3, 12, 31], [20, 21]]


@pytest.mark.slow
def test_near_duplicates_are_found_among_many() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 64)).astype(np.float32)
    X[3000:3200] = X[:200] + 0.1 * rng.standard_normal((200, 64), dtype=np.float32)
    found = near_duplicates(X, 0.97)
    assert len([pair for pair in found if pair[1] == pair[0] + 3000]) >= 198
    assert len(found) <= 200


def test_wrong_labels_are_found_and_the_right_ones_suggested() -> None:
    X, codes, wrong = with_mistakes(600)
    truth, names = classes(600, 10, 5)[1], np.array(["a", "b", "c", "d", "e"])
    found = label_issues(X, names[codes])
    listed = [one.index for one in found.wrong]
    assert wrong[listed].mean() >= 0.9
    assert wrong[listed].sum() >= 0.9 * wrong.sum()
    right = [one.suggestion == names[truth[one.index]] for one in found.wrong if wrong[one.index]]
    assert np.mean(right) >= 0.9
    assert found.share_wrong == pytest.approx(0.05, abs=0.02)
    assert all(isinstance(one.label, str) for one in found.wrong)
    assert listed == sorted(listed, key=lambda i: found.quality[i])


def test_duplicates_with_different_labels_come_first() -> None:
    X, codes = classes(50)
    X[10], X[40] = X[11], X[2]
    codes[10], codes[11] = 1, 1
    codes[40], codes[2] = 0, 3
    first, second = label_issues(X, codes, similarity=0.9999).duplicates
    assert (first.indices, first.labels, first.contradicts) == ((2, 40), (3, 0), True)
    assert (second.indices, second.contradicts) == ((10, 11), False)


def test_the_only_example_of_a_class_is_not_judged() -> None:
    X, codes = classes(40)
    codes[codes == 3] = 2
    codes[5] = 3
    found = label_issues(X, codes, certainty=0.0)
    assert 5 not in [one.index for one in found.wrong]
    assert np.isnan(found.quality[5])
    assert len(found.wrong) == 39


def test_one_class_has_no_wrong_labels() -> None:
    found = label_issues(classes(20)[0], ["cat"] * 20)
    assert (found.wrong, found.harmful, found.share_wrong) == ((), (), 0.0)


def test_examples_that_are_all_alike_are_one_group() -> None:
    found = label_issues(np.full((12, 3), 7.5), np.arange(12) % 2)
    assert [group.indices for group in found.duplicates] == [tuple(range(12))]
    assert np.isfinite(found.quality).all()


def test_constant_features_change_nothing() -> None:
    X, codes, _ = with_mistakes(200)
    plain = label_issues(X, codes)
    wider = label_issues(np.column_stack([X, np.full(200, 1e3)]), codes)
    assert {one.index for one in plain.wrong} == {one.index for one in wider.wrong}


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "words"),
    [
        ([[1.0], [np.nan]], [0, 1], {}, InvalidInputError, "NaN"),
        ([[1.0], [2.0]], [0, 1, 1], {}, InvalidInputError, "inconsistent"),
        ([[1.0], [2.0]], [0, "a"], {}, InvalidTypeError, "all strings or all numbers"),
        ([[1.0], [2.0]], [0.5, 1.5], {}, InvalidInputError, "continuous"),
        ([[1e200], [2.0]], [0, 1], {}, InvalidInputError, "too large"),
        ([[1.0], [2.0]], [0, 1], {"certainty": 1.5}, InvalidInputError, "certainty"),
        ([[1.0], [2.0]], [0, 1], {"similarity": 0.0}, InvalidInputError, "similarity"),
    ],
)
def test_bad_input_is_refused(
    X: Any, y: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        label_issues(X, y, **options)


def test_the_minimum_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 300).astype(np.int32)
    X = (rng.standard_normal((300, 5)) + rng.standard_normal((4, 5))[codes]).astype(np.float32)
    weights, offsets = fit_softmax(X, codes, 4, 0.1, iterations=200)
    other = LogisticRegression(C=1 / (0.1 * 300), tol=1e-8, max_iter=1000).fit(X, codes)
    np.testing.assert_allclose(weights, other.coef_.T, atol=2e-3)
    np.testing.assert_allclose(
        offsets - offsets.mean(), other.intercept_ - other.intercept_.mean(), atol=2e-3
    )


def test_the_label_of_an_example_does_not_change_its_own_scores_much() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(3, dtype=np.int32), 30)
    X = rng.standard_normal((90, 6)) + 5 * rng.standard_normal((3, 6))[codes]
    codes[0] = 1
    logits = held_out_logits(RotatedRidge.of(X, codes, 3), X, codes, 0)
    assert logits is not None
    assert logits[0].argmax() == 0
    assert (logits.argmax(axis=1)[1:] == codes[1:]).mean() > 0.95
