"""Forgotten examples and classes, and renamed classes: estimator, means and level agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier

from evergrow import NCMClassifier, RejectingClassifier, RLSClassifier
from tests.estimators.novelty.cones import RememberingClassifier, cones, rejecting
from tests.estimators.novelty.test_twin import same_calibration

every_measure = pytest.mark.parametrize("measure", ["auto", "cosine", "estimator"])


def means(**options: Any) -> RejectingClassifier:
    return RejectingClassifier(
        RememberingClassifier(),
        **{"validation_every": 3, "random_state": 0, "measure": "cosine", **options},
    )


@every_measure
def test_a_forgotten_class_was_never_learnt(measure: Any) -> None:
    X, y = cones(60, range(5))
    model = means(measure=measure).fit(X, y).forget(classes=[2])
    same_calibration(model, means(measure=measure).fit(X[y != 2], y[y != 2]))
    assert model.classes_.tolist() == [0, 1, 3, 4] == model.estimator_.classes_.tolist()


@every_measure
def test_forgotten_examples_were_never_learnt(measure: Any) -> None:
    X, y = cones(60, range(4))
    more, y_more = cones(6, range(4), seed=1)
    expected = means(measure=measure).fit(X, y)
    model = clone(expected).fit(X, y).partial_fit(more, y_more).forget(more, y_more)
    same_calibration(model, expected)
    np.testing.assert_allclose(model.novelty(more), expected.novelty(more), atol=1e-9)
    assert sorted(model.estimator_.rows_) == sorted(expected.estimator_.rows_)


@every_measure
def test_weighted_examples_are_forgotten_with_their_weights(measure: Any) -> None:
    X, y = cones(60, range(4))
    more, y_more = cones(6, range(4), seed=1)
    weights = np.arange(1.0, len(more) + 1)
    expected = means(measure=measure).fit(X, y, sample_weight=np.ones(len(X)))
    model = clone(expected).fit(X, y).partial_fit(more, y_more, sample_weight=weights)
    model.forget(more, y_more, sample_weight=weights)
    same_calibration(model, expected)


@every_measure
def test_renamed_classes_keep_their_examples(measure: Any) -> None:
    X, y = cones(60, range(4))
    model = means(measure=measure).fit(X, y)
    level, usual = model.level_, model.usual_scores_
    model.rename_classes({0: 9})
    assert model.classes_.tolist() == [9, 1, 2, 3]
    assert model.level_ == level
    np.testing.assert_array_equal(model.usual_scores_, usual)


def test_a_class_cannot_be_renamed_to_the_unknown_label() -> None:
    model = rejecting().fit(*cones(30, range(3)))
    with pytest.raises(ValueError, match="unknown_label must differ from all classes"):
        model.rename_classes({0: -1})
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda m, X, y: m.forget(), ValueError, "examples .X and y., classes, or both"),
        (lambda m, X, y: m.forget(X), ValueError, "both X and y, or neither"),
        (lambda m, X, y: m.forget(X, y + 1), ValueError, "unknown class"),
        (lambda m, X, y: m.forget(X + 1, y), ValueError, "cannot forget examples of class 0"),
        (lambda m, X, y: m.forget(classes=[9]), ValueError, "unknown class"),
        (lambda m, X, y: m.forget(classes=range(3)), ValueError, "leave no class"),
        (lambda m, X, y: m.rename_classes([0]), TypeError, "names must map"),
        (lambda m, X, y: m.rename_classes({9: 1}), ValueError, "unknown class"),
        (lambda m, X, y: m.rename_classes({0: "a"}), TypeError, "strings"),
    ],
)
def test_a_failed_forget_changes_nothing(use: Any, error: type[Exception], message: str) -> None:
    X, y = cones(30, range(3))
    model = means().fit(X, y)
    state, rows = dict(vars(model)), list(model.estimator_.rows_)
    with pytest.raises(error, match=message):
        use(model, X, y)
    assert vars(model) == state
    assert model.estimator_.rows_ == rows


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda m, X, y: m.forget(X, y), "RidgeClassifier cannot forget"),
        (lambda m, X, y: m.forget(classes=[0]), "RidgeClassifier cannot forget"),
        (lambda m, X, y: m.rename_classes({0: 5}), "RidgeClassifier cannot rename"),
    ],
)
def test_an_estimator_that_cannot_forget_is_named(use: Any, message: str) -> None:
    X, y = cones(30, range(3))
    with pytest.raises(TypeError, match=message):
        use(RejectingClassifier(RidgeClassifier()).fit(X, y), X[:1], y[:1])


def test_a_forest_cannot_forget_examples_given_as_features() -> None:
    X, y = cones(30, range(3))
    model = rejecting().fit(X, y)
    with pytest.raises(TypeError, match="NCMForestClassifier cannot forget examples"):
        model.forget(X[:1], y[:1])
    assert model._fitted.moments.n_examples == 90


INSIDE = {
    "least squares": RLSClassifier(
        regularization=1.0, recoding=0.0, keep_class_statistics=True, random_state=0
    ),
    "chosen least squares": RLSClassifier(keep_class_statistics=True, random_state=0),
    "class means": NCMClassifier(),
    "mahalanobis": NCMClassifier(metric="mahalanobis", keep_class_statistics=True),
}
every_inside = pytest.mark.parametrize("inside", INSIDE)


@every_measure
@every_inside
def test_evicted_held_out_examples_are_forgotten_too(inside: str, measure: Any) -> None:
    X, y = cones(120, range(3))
    model = RejectingClassifier(INSIDE[inside], measure=measure, random_state=0)
    model.set_params(max_held_out=21).fit(X, y)
    if measure == "estimator":
        with pytest.raises(ValueError, match="not all of its held-out examples are kept"):
            model.forget(X[:180], y[:180])
        return
    model.forget(X[:180], y[:180])
    held_out = model._fitted.holdout
    represented = np.bincount(held_out.batch.codes, held_out.represented, minlength=3)
    # Every sixth of the remaining examples, regardless of which were held out.
    every = 1 if measure == "auto" else 6
    np.testing.assert_allclose(represented, np.bincount(y[180:]) / every, atol=4)
