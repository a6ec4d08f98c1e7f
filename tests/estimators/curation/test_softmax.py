"""Softmax regression is that of scikit-learn, and each example is scored by other folds."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from evergrow.estimators.curation.left_out import RotatedRidge
from evergrow.estimators.curation.softmax import fit_softmax, held_out_logits


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
