"""RejectingClassifier: what is rejected, its scores, and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from evergrow import NCMClassifier, RejectingClassifier, RLSClassifier
from evergrow.estimators.novelty import scores as novelty_scores
from evergrow.estimators.novelty.linear_scores import (
    LinearMatrices,
    LinearScores,
    batch_with_constant,
)
from evergrow.estimators.novelty.scores import SummedScores
from evergrow.estimators.sums.moments import Batch, Moments
from tests.estimators.model_files import reload
from tests.estimators.novelty.cones import RememberingClassifier, cones, rejecting
from tests.reference import rejection

every_measure = pytest.mark.parametrize("measure", ["cosine", "estimator"])


_REJECTED = "rejected examples do not get the class of the highest score"


def expected_failures(estimator: Any) -> dict[str, str]:
    # Where nothing is held out, or no held-out example may be rejected, none of a check is.
    if estimator.validation_every > 1000 or not estimator.false_alarms:
        return {}
    weights = "check_sample_weight_equivalence_on_dense_data"
    # An exception of scikit-learn's own classifiers with a threshold too.
    failures = {"check_classifiers_train": _REJECTED}
    if estimator.measure == "estimator":
        failures[weights] = "which example is held out from the estimator depends on their number"
    else:
        failures["check_classifiers_classes"] = _REJECTED
        failures[weights] = "nothing is rejected by fewer than 20 examples, whatever their weights"
    return failures


@parametrize_with_checks(
    [
        RejectingClassifier(RLSClassifier()),
        RejectingClassifier(RLSClassifier(), measure="cosine", validation_every=10**6),
        RejectingClassifier(RLSClassifier(), measure="estimator"),
        RejectingClassifier(NCMClassifier(), false_alarms=0.0),
        RejectingClassifier(GaussianNB(), false_alarms=0.0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


@every_measure
@pytest.mark.parametrize("false_alarms", [0.05, 0.1, 0.3])
def test_as_many_known_examples_are_rejected_as_promised(measure: Any, false_alarms: float) -> None:
    model = rejecting(measure=measure, false_alarms=false_alarms)
    if measure == "estimator":
        # A forest of five trees has too few different probabilities for a level in between.
        model.set_params(estimator=RidgeClassifier())
    model.fit(*cones(300, range(8)))
    X, _ = cones(300, range(8), seed=1)
    assert abs((~model.is_known(X)).mean() - false_alarms) < 0.35 * false_alarms


def test_an_unknown_class_is_rejected_then_learnt_then_known() -> None:
    model = rejecting().fit(*cones(60, range(8)))
    X, y = cones(60, [20], seed=1)
    assert (model.predict(X) == -1).mean() > 0.9
    model.partial_fit(X, y)
    assert (model.predict(cones(60, [20], seed=2)[0]) == 20).mean() > 0.7


def test_two_classes_with_one_column_of_scores_work() -> None:
    model = RejectingClassifier(RidgeClassifier(), measure="estimator")
    model.fit(*cones(120, [0, 1]))
    X, _ = cones(100, [0, 1], seed=1)
    assert 0.02 < (model.predict(X) == -1).mean() < 0.2


def test_most_unknown_objects_are_found(measuring_data: Path) -> None:
    with np.load(measuring_data / "caltech101_efflite0_224.npz") as data:
        X, y, train = data["X"].astype(np.float32), data["y"], data["split"] == "train"
    found, alarms = [], []
    # Other splits than those the method was chosen on, and many: from one split to the next the
    # share that is found varies from 0.6 to 0.9.
    for seed in range(100, 110):
        known = np.isin(y, np.random.RandomState(seed).permutation(102)[:60])
        model = RejectingClassifier(GaussianNB(), measure="cosine", random_state=0)
        model.fit(X[train & known], y[train & known])
        alarms.append((~model.is_known(X[~train & known])).mean())
        found.append((~model.is_known(X[~train & ~known])).mean())
    assert abs(np.mean(alarms) - 0.1) < 0.02
    assert np.mean(found) > 0.7


@pytest.mark.parametrize("per_class", [5, 20])
def test_false_alarms_hold_from_five_examples_per_class_on(per_class: int) -> None:
    alarms = []
    for seed in range(30):
        X, y = cones(per_class, range(20), seed)
        model = RejectingClassifier(NCMClassifier(), random_state=0).fit(X, y)
        alarms.append((~model.is_known(cones(100, range(20), seed + 100)[0])).mean())
    assert abs(np.mean(alarms) - 0.1) < 0.02


@pytest.mark.parametrize(
    "case",
    ["one class", "alike", "constant features", "single examples", "copies", "many features"],
)
def test_data_without_a_covariance_have_sensible_answers(case: str) -> None:
    X, y = cones(30, range(3))
    if case == "one class":
        y = np.zeros_like(y)
    if case == "alike":
        X = np.ones_like(X)
    if case == "constant features":
        X[:, 3:] = 7.0
    if case == "single examples":
        X, y = np.concatenate([X, X[:5] + 9]), np.concatenate([y, np.arange(10, 15)])
    if case == "copies":
        X[y == 1] = X[y == 1][0]
    if case == "many features":
        X = np.column_stack([X, np.random.default_rng(0).normal(size=(90, 200))])
    model = RejectingClassifier(NCMClassifier(), random_state=0).fit(X, y)
    assert np.isfinite(model.novelty(X)).all()
    assert np.isfinite(model.novelty(X * 1e200)).all()
    known = model.is_known(X[:90])
    assert known.mean() > 0.75


def test_a_random_generator_of_the_estimator_keeps_its_state() -> None:
    X, y = cones(40, range(3))
    estimator = SGDClassifier(random_state=np.random.RandomState(0))
    model = RejectingClassifier(estimator).fit(X, y)
    states = []
    for _ in range(2):
        model.partial_fit(X, y)
        states.append(model.estimator_.random_state.get_state()[2])
    assert states[0] != states[1]


def test_another_estimator_needs_fitting_again() -> None:
    X, y = cones(40, range(3))
    model = rejecting().fit(X, y).set_params(estimator=GaussianNB())
    with pytest.raises(ValueError, match="GaussianNB but the model was trained with NCMForest"):
        model.partial_fit(X, y)
    assert model.fit(X, y).partial_fit(X, y).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("measure", ["auto", "cosine"])
def test_blocks_that_the_estimator_does_not_use_have_no_effect(measure: Any) -> None:
    random = np.random.default_rng(0)
    y = np.repeat(range(3), 40)
    X = random.normal(3 * np.eye(3, 5)[y], 0.7)
    noise = random.normal(size=(len(X), 4))
    options = {"measure": measure, "random_state": 0}
    inside = {"regularization": 1.0, "recoding": 0.0}
    alone = RejectingClassifier(RLSClassifier(**inside), **options).fit(X, y)
    blocks = RLSClassifier(blocks=(5, 4), **inside)
    both = RejectingClassifier(blocks, **options).fit(np.hstack([X, noise]), y)
    assert both.estimator_.used_blocks_ == (0,)
    new = random.normal(size=(20, 5))
    found = both.novelty(np.hstack([new, 9 * np.ones((20, 4))]))
    np.testing.assert_allclose(found, alone.novelty(new), rtol=1e-6)


@pytest.mark.parametrize("spread", [0.03, 0.1, 0.3])
def test_narrow_classes_have_the_false_alarms_that_were_asked_for(spread):
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(10, 64)), np.repeat(np.arange(10), 30)
    X, new = (centres[y] + spread * rng.normal(size=(300, 64)) for _ in range(2))
    model = RejectingClassifier(RLSClassifier(random_state=0), random_state=0).fit(X, y)
    assert 0.03 < (model.predict(new) == -1).mean() < 0.2


def test_the_unknown_label_is_an_attribute(tmp_path: Path) -> None:
    X, y = cones(30, [-1, 0, 1])
    model = RejectingClassifier(NCMClassifier())
    with pytest.raises(NotFittedError, match="unknown_label_"):
        _ = model.unknown_label_
    model = model.fit(X, y)
    assert model.unknown_label_ == -2
    assert RejectingClassifier(NCMClassifier()).fit(X, y.astype(str)).unknown_label_ == "unknown"
    assert reload(model, tmp_path).unknown_label_ == -2
    assert model.set_params(unknown_label=9).unknown_label_ == 9
    assert ((model.predict(X) == model.unknown_label_) == ~model.is_known(X)).all()
    with pytest.raises(ValueError, match="rename the class or its folder, or set unknown_label="):
        _ = model.set_params(unknown_label=1).unknown_label_


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


@pytest.mark.parametrize("measure", ["cosine", "estimator"])
def test_blocks_of_rows_have_the_same_scores(monkeypatch: Any, measure: Any) -> None:
    X, y = cones(20, range(5))
    model = rejecting(measure=measure).fit(X, y)
    whole = model.novelty(X)
    monkeypatch.setattr(novelty_scores, "_SCORES", 40)
    parts = rejecting(measure=measure).fit(X, y).novelty(X)
    np.testing.assert_allclose(parts, whole, rtol=1e-9)
