"""Learners on a stream, and what is measured of them."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from evergrow import NCMClassifier, NCMForestClassifier
from evergrow.research import (
    ClassStream,
    Dataset,
    Measured,
    Retrained,
    digits,
    follow,
    forgetting,
    model_bytes,
    relative_accuracy,
)

SORTED = ClassStream(initial=2, chunk=4, order="sorted")


class Oracle:
    """Predicts the true labels, and counts calls of predict."""

    def __init__(self, data):
        self.truth = {
            row.tobytes(): label for row, label in zip(data.X_test, data.y_test, strict=True)
        }
        self.truth |= {
            row.tobytes(): label for row, label in zip(data.X_train, data.y_train, strict=True)
        }
        self.shown = []
        self.n_asked = 0

    def partial_fit(self, X, y):
        self.shown.append(sorted(set(y.tolist())))

    def predict(self, X):
        self.n_asked += 1
        return np.array([self.truth[row.tobytes()] for row in X])


def test_a_learner_is_shown_every_class_once():
    oracle = Oracle(digits())
    list(follow(oracle, digits(), SORTED))
    assert oracle.shown == [[0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]


def test_a_learner_is_measured_on_the_classes_it_has_seen():
    measured = [*follow(Oracle(digits()), digits(), SORTED)]
    assert [(m.n_classes, m.accuracy, len(m.class_accuracies)) for m in measured] == [
        (2, 1.0, 2),
        (6, 1.0, 6),
        (10, 1.0, 10),
    ]


def test_accuracies_are_those_of_the_estimator():
    data, model = digits(), NCMClassifier()
    last = [*follow(model, data, SORTED)][-1]
    assert last.accuracy == model.score(data.X_test, data.y_test)
    newest = np.isin(data.y_test, [5, 6, 7, 8, 9])
    assert last.newest == model.score(data.X_test[newest], data.y_test[newest])


def test_a_forest_reports_its_comparisons_and_distances():
    forest = NCMForestClassifier(3, random_state=0)
    first, *_, last = follow(forest, digits(), SORTED)
    assert last.comparisons == forest.comparisons(digits().X_test)
    assert last.n_distances > first.n_distances > 0


def test_other_learners_count_no_distances():
    measured = next(follow(Oracle(digits()), digits(), SORTED))
    assert np.isnan([measured.comparisons, measured.n_distances]).all()


def test_a_prediction_follows_every_batch():
    stream = ClassStream(initial=1, order="sorted", measure_at=[10])
    asked = {}
    for ask in ("always", "measured"):
        oracle = Oracle(digits())
        list(follow(oracle, digits(), stream, ask=ask))
        asked[ask] = oracle.n_asked
    assert asked == {"always": 11, "measured": 2}


def test_retraining_where_it_is_measured_gives_what_retraining_always_gives():
    data, stream = digits(), ClassStream(initial=1, order="sorted", measure_at=[5, 10])
    found = [
        [m.accuracy for m in follow(Retrained(KNeighborsClassifier), data, stream, ask=ask)]
        for ask in ("always", "measured")
    ]
    assert found[0] == found[1]


def test_a_retrained_forest_counts_the_distances_of_every_training():
    forest = Retrained(lambda: NCMForestClassifier(2, random_state=0))
    data = digits()
    measured = [*follow(forest, data, SORTED)]
    alone = NCMForestClassifier(2, random_state=0).fit(data.X_train, data.y_train)
    last = measured[-1].n_distances - measured[-2].n_distances
    assert last == pytest.approx(alone.update_report_.n_comparisons, rel=0.2)


def test_predicting_before_learning_is_refused():
    with pytest.raises(ValueError, match="call partial_fit first"):
        Retrained(KNeighborsClassifier).predict([[0.0]])


def test_classes_without_test_samples_may_come_first():
    X = np.eye(4, dtype=np.float32)
    data = Dataset("odd", X, np.array([0, 0, 1, 1]), X[2:], np.array([1, 1]))
    first, last = follow(NCMClassifier(), data, ClassStream(initial=1, order="sorted"))
    assert np.isnan([first.accuracy, first.newest, *first.class_accuracies]).all()
    assert last.accuracy == 1.0
    np.testing.assert_array_equal(last.class_accuracies, [np.nan, 1.0])


def _at(n_classes, accuracy):
    return Measured(n_classes, accuracy, 1.0, np.ones(n_classes), 0.0, 0.0, np.nan, np.nan)


def test_relative_accuracy_compares_the_same_points():
    with pytest.raises(ValueError, match="same stream"):
        relative_accuracy([_at(2, 0.5)], [_at(3, 0.5)])


def test_forgetting_needs_a_measurement():
    with pytest.raises(ValueError, match="at least one measurement"):
        forgetting([])


def test_a_class_that_gets_better_has_forgotten_nothing():
    worse = Measured(1, 0.5, 0.5, np.array([0.5]), 0.0, 0.0, np.nan, np.nan)
    assert forgetting([worse, _at(2, 1.0)]).tolist() == [0.0, 0.0]


def test_bytes_grow_with_what_is_stored():
    small, large = (
        Retrained(KNeighborsClassifier).partial_fit(np.zeros((n, 8)), np.zeros(n))
        for n in (10, 1000)
    )
    assert model_bytes(large) - model_bytes(small) == pytest.approx(990 * 9 * 8, rel=0.01)
