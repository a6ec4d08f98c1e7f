"""What is measured of a learner is what using it directly gives."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from evergrow import NCMClassifier
from evergrow.comparison import Contender, Estimator, choose, difference, make_plan, measure
from evergrow.comparison import measuring as module
from evergrow.streams import Retrained, mixture, model_bytes
from tests.comparison.made_up import standing


@pytest.fixture(scope="module")
def plan():
    return make_plan(mixture(10, 8, n_train=20, n_test=10, distance=1.0))


def one(name):
    return choose(only=[name])[0]


def test_a_learner_that_grows_is_as_accurate_as_when_used_directly(plan):
    means = NCMClassifier(metric="mahalanobis")
    for step in plan.stream.steps(plan.data.y_train):
        means.partial_fit(plan.data.X_train[step.rows], plan.data.y_train[step.rows])
    accuracy = means.score(plan.data.X_test, plan.data.y_test)
    assert measure(one("lda"), plan).accuracy == pytest.approx(accuracy)


def test_a_learner_trained_anew_is_as_accurate_as_one_trained_on_everything(plan):
    data = plan.data
    ridge = RidgeClassifier().fit(data.X_train, data.y_train)
    assert measure(one("ridge"), plan).accuracy == pytest.approx(
        ridge.score(data.X_test, data.y_test)
    )


def test_accuracies_of_classes_are_in_sorted_order(plan):
    data = plan.data
    result = measure(one("class-means"), plan)
    means = NCMClassifier().fit(data.X_train, data.y_train)
    of_three = means.score(data.X_test[data.y_test == 3], data.y_test[data.y_test == 3])
    assert result.class_accuracies[3] == pytest.approx(of_three)


def test_seconds_are_those_of_updates_and_not_of_the_first_batch(plan, monkeypatch):
    ticks = iter(range(10_000))
    monkeypatch.setattr("evergrow.streams.following.time.perf_counter", lambda: float(next(ticks)))
    result = measure(one("class-means"), plan)
    # Between two looks at the clock around an update lie those of the learner's own clock.
    assert result.seconds_per_update == result.last_seconds


def test_a_learner_whose_time_is_up_is_stopped_between_updates(plan):
    result = measure(one("lda"), plan, time_limit=0.0)
    assert result.stopped_at == plan.points[0]
    assert [point.n_classes for point in result.points] == [plan.points[0]]
    assert np.isnan(result.accuracy)


class _TenSeconds:
    """Takes ten seconds of a made-up clock to train."""

    now = 0.0

    def fit(self, X, y):
        _TenSeconds.now += 10
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize(("limit", "begun"), [(25.0, False), (35.0, True)])
def test_a_training_that_would_take_too_long_is_not_begun(monkeypatch, limit, begun):
    monkeypatch.setattr(_TenSeconds, "now", 0.0)
    monkeypatch.setattr(module.time, "perf_counter", lambda: _TenSeconds.now)
    clocked = module._Clocked(Retrained(_TenSeconds), limit)
    X, y = np.zeros((5, 1)), np.zeros(5, dtype=int)
    clocked.partial_fit(X, y).predict(X)
    # Twice the examples are expected to take twice as long, after the ten seconds spent.
    clocked.partial_fit(X, y)
    with nullcontext() if begun else pytest.raises(module._OutOfTimeError):
        clocked.predict(X)
    assert _TenSeconds.now == (20 if begun else 10)


def test_examples_that_a_model_holds_are_counted_once(plan):
    neighbours = measure(one("neighbours"), plan, n_jobs=1)
    assert neighbours.n_bytes == neighbours.model_bytes
    ridge = measure(one("ridge"), plan)
    assert ridge.n_bytes > ridge.model_bytes + plan.data.X_train.nbytes


def test_bytes_are_those_of_the_learner(plan):
    means = NCMClassifier()
    for step in plan.stream.steps(plan.data.y_train):
        means.partial_fit(plan.data.X_train[step.rows], plan.data.y_train[step.rows])
    means.predict(plan.data.X_test)
    found = measure(one("class-means"), plan).n_bytes
    assert found == pytest.approx(model_bytes(means), rel=0.01)


def test_a_warning_becomes_a_remark(plan):
    recipe = Estimator("sklearn.linear_model", "LogisticRegression", {"max_iter": 1})
    hasty = Contender("hasty", "hasty", "scikit-learn", recipe, way="retrained")
    remarks = measure(hasty, plan).remarks
    assert any(remark.startswith("warned: lbfgs failed to converge") for remark in remarks)


def test_a_class_with_one_sample_takes_part(plan):
    data = plan.data
    keep = (data.y_train != 5) | (np.cumsum(data.y_train == 5) == 1)
    single = replace(data, X_train=data.X_train[keep], y_train=data.y_train[keep])
    for name in ("lda", "least-squares", "ncm-forest", "linear-svc"):
        assert measure(one(name), make_plan(single), n_jobs=1).stopped_at is None


def test_the_same_difference_in_every_class_leaves_nothing_to_chance():
    gap, noise = difference(standing("a", 0.8, spread=0.1), standing("b", 0.7, spread=0.1))
    assert gap == pytest.approx(0.1)
    assert noise == pytest.approx(0.0)


def test_differences_that_vary_between_classes_may_be_chance():
    # Ten classes, half of them 0.3 above and half 0.1 below.
    _, noise = difference(standing("a", 0.8, spread=0.2), standing("b", 0.7))
    assert noise == pytest.approx(2 * 0.2 * np.sqrt(10 / 9) / np.sqrt(10))
