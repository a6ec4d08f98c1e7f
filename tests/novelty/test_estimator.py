"""Rejecting classifiers as their users meet them."""

from __future__ import annotations

from typing import Any

from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from evergrow import NCMForestClassifier, RejectingClassifier

EXPECTED: dict[str, str] = {}


@parametrize_with_checks(
    [
        RejectingClassifier(NCMForestClassifier(5, random_state=0)),
        RejectingClassifier(NCMForestClassifier(5, random_state=0), measure="estimator"),
        RejectingClassifier(GaussianNB()),
    ],
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)
