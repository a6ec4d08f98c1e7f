"""ROC curves and the rate at equal error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_curve

from evergrow.vision import equal_error_rate, roc


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40))
def test_the_curve_is_that_of_scikit_learn(samples: list[tuple[int, bool]]) -> None:
    scores, positives = (np.array(column) for column in zip(*samples, strict=True))
    if positives.all() or not positives.any():
        return
    curve = roc(scores, positives)
    false, true, thresholds = roc_curve(positives, scores, drop_intermediate=False)
    np.testing.assert_allclose(curve.false_positive_rate, false)
    np.testing.assert_allclose(curve.true_positive_rate, true)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    # On the curve and on the diagonal of equal errors.
    rate = equal_error_rate(scores, positives)
    surplus = curve.true_positive_rate + curve.false_positive_rate - 1
    assert rate == pytest.approx(np.interp(0.0, surplus, curve.true_positive_rate))


@pytest.mark.parametrize(
    ("scores", "positives", "rate"),
    [
        ([4, 3, 2, 1], [1, 1, 0, 0], 1.0),
        ([4, 3, 2, 1], [0, 0, 1, 1], 0.0),
        ([4, 3, 2, 1], [1, 0, 1, 0], 0.5),
        ([1, 1, 1, 1], [1, 0, 1, 0], 0.5),
        ([9, 8, 7, 6, 5, 4], [1, 1, 0, 1, 0, 0], 2 / 3),
        # Between (0, 1/2) and (1/2, 1) the errors are equal at 1/4.
        ([3, 2, 2, 1], [1, 1, 0, 0], 0.75),
        ([2, 1], [True, False], 1.0),
    ],
)
def test_the_rate_at_equal_error_of_hand_made_cases(scores: Any, positives: Any, rate: Any) -> None:
    assert equal_error_rate(scores, positives) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("scores", "positives", "message"),
    [
        ([1, 2], [1, 1], "one positive and one negative"),
        ([1, 2], [0, 0], "one positive and one negative"),
        ([], [], "one positive and one negative"),
        ([1, 2], [1], r"shapes \(2,\) and \(1,\)"),
        ([[1, 2]], [[0, 1]], "must be one-dimensional"),
        ([1, np.nan], [0, 1], "finite"),
        ([1, 2], [0, 2], "True or False"),
        ([1, 2], ["cat", "dog"], "True or False"),
    ],
)
def test_wrong_scores_are_named(scores: Any, positives: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        roc(scores, positives)
