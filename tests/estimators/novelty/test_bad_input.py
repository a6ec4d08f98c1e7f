"""Wrong input gets an error that says what was wrong and what is allowed; nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Perceptron, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from evergrow import NCMClassifier, RejectingClassifier
from tests.estimators.novelty.cones import RememberingClassifier, cones, rejecting

X, Y = cones(40, range(3))


class Interrupted(RememberingClassifier):
    """Learns, and is then interrupted on request."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RememberingClassifier:
        super().partial_fit(X, y, sample_weight)
        if y[0] == 99:
            raise KeyboardInterrupt
        return self


class Deaf(RememberingClassifier):
    """Takes labels that it does not know without a word."""

    def _of(self, rows: list[Any]) -> RememberingClassifier:
        known = getattr(self, "classes_", None)
        super()._of(rows)
        self.classes_ = self.classes_ if known is None else known
        return self


def test_weights_need_a_classifier_that_takes_them() -> None:
    model = RejectingClassifier(KNeighborsClassifier())
    with pytest.raises(TypeError, match="does not accept sample_weight"):
        model.fit(X, Y, sample_weight=np.ones(120))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("y", "options", "error", "message"),
    [
        (Y, {"sample_weight": np.ones(7)}, ValueError, "sample_weight"),
        (Y, {"sample_weight": -np.ones(120)}, ValueError, "Negative values"),
        (Y, {"sample_weight": np.zeros(120)}, ValueError, "zero everywhere|non-zero"),
    ],
)
def test_bad_labels_and_weights_are_refused_and_nothing_changes(
    method: str, y: Any, options: Any, error: type[Exception], message: str
) -> None:
    model = rejecting().fit(X, Y)
    state, before = dict(vars(model)), model.novelty(X)
    with pytest.raises(error, match=message):
        getattr(model, method)(X, y, **options)
    assert vars(model) == state
    np.testing.assert_array_equal(model.novelty(X), before)
    with pytest.raises(error, match=message):
        getattr(rejecting(), method)(X, y, **options)


def test_an_interrupted_estimator_leaves_everything_as_it_was() -> None:
    model = RejectingClassifier(Interrupted()).fit(X, Y)
    state, rows = dict(vars(model)), list(model.estimator_.rows_)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[:2], [99, 99])
    assert vars(model) == state
    assert model.estimator_.rows_ == rows


@pytest.mark.parametrize(
    ("y", "unknown", "error", "message"),
    [
        (Y, "unknown", TypeError, "must be a number like the classes, got 'unknown'"),
        (Y.astype(str), -1, TypeError, "must be a string like the classes, got -1"),
        (Y, 2, ValueError, "there is a class 2"),
        (np.where(Y == 1, "unknown", "a"), None, ValueError, "there is a class 'unknown'"),
        (Y.astype(np.uint64) + np.uint64(2**63), None, ValueError, "cannot be stored exactly"),
    ],
)
def test_an_unknown_label_that_does_not_fit_the_classes_is_refused(
    y: Any, unknown: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        rejecting(unknown_label=unknown).fit(X, y)


def test_a_later_class_must_not_be_the_unknown_label() -> None:
    model = rejecting().fit(X, Y)
    with pytest.raises(ValueError, match="there is a class -1"):
        model.partial_fit(X[:5], [-1] * 5)
    assert model.classes_.tolist() == [0, 1, 2]
    model = rejecting().fit(X, Y.astype(str))
    with pytest.raises(ValueError, match="there is a class 'unknown'"):
        model.partial_fit(X[:5], ["unknown"] * 5)
    assert model.classes_.tolist() == ["0", "1", "2"]
    with pytest.raises(ValueError, match="there is a class '1'"):
        model.set_params(unknown_label="1").predict(X)


def test_an_estimator_that_cannot_learn_more_is_named() -> None:
    model = RejectingClassifier(RidgeClassifier()).fit(X, Y)
    with pytest.raises(TypeError, match="RidgeClassifier cannot learn more"):
        model.partial_fit(X, Y)


@pytest.mark.parametrize("estimator", [GaussianNB(), Perceptron(), Deaf()])
def test_an_estimator_whose_classes_cannot_grow_is_named(estimator: Any) -> None:
    model = RejectingClassifier(estimator).partial_fit(X, Y)
    state, before = dict(vars(model)), model.predict_known(X)
    with pytest.raises(ValueError, match="cannot learn new classes after its first call"):
        model.partial_fit(X, Y + 1)
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict_known(X), before)


def test_an_estimator_without_scores_needs_the_cosine() -> None:
    class Scoreless(RememberingClassifier):
        decision_function = property()  # type: ignore[assignment]

    with pytest.raises(TypeError, match="decision_function or predict_proba"):
        RejectingClassifier(Scoreless(), measure="estimator").fit(X, Y)


def test_scores_of_pairs_of_classes_are_refused() -> None:
    from sklearn.svm import SVC

    X, y = cones(40, range(4))
    model = RejectingClassifier(SVC(decision_function_shape="ovo"), measure="estimator").fit(X, y)
    with pytest.raises(ValueError, match="one score per class, but SVC returns 6 for 4 classes"):
        model.novelty(X)


def test_the_measure_cannot_change_between_calls() -> None:
    model = rejecting().fit(X, Y).set_params(measure="estimator")
    with pytest.raises(ValueError, match="fit again to change it"):
        model.partial_fit(X, Y)


def test_classes_listed_in_a_call_that_is_held_out_whole_ask_for_one_more_example() -> None:
    X, y = cones(6, [0])
    model = RejectingClassifier(NCMClassifier(), measure="estimator").fit(X[:5], y[:5])
    with pytest.raises(ValueError, match=r"all examples of this call were held out.*one more"):
        model.partial_fit(X[5:], y[5:], classes=[7])
    model.partial_fit(X[5:], y[5:])
    assert model.n_held_out_.tolist() == [1]


class Moody(RememberingClassifier):
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Moody:
        if hasattr(self, "classes_"):
            raise ValueError("not today")
        super().partial_fit(X, y, sample_weight)
        return self


class MoodyMeans(NCMClassifier):
    def partial_fit(self, *_: Any, **__: Any) -> MoodyMeans:
        raise ValueError("not today")


def test_the_error_of_an_estimator_about_a_new_class_is_kept() -> None:
    X, y = cones(6, range(3))
    known = y < 2
    model = RejectingClassifier(Moody()).fit(X[known], y[known])
    with pytest.raises(ValueError, match=r"cannot learn new classes.*: not today$"):
        model.partial_fit(X, y)
    # One whose classes grow fails for another reason.
    means = RejectingClassifier(MoodyMeans()).fit(X[known], y[known])
    with pytest.raises(ValueError, match=r"^not today$"):
        means.partial_fit(X, y)
