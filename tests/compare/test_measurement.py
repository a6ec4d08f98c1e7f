"""Measured values equal those of using the learner directly; differences and chance."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t
from sklearn.linear_model import RidgeClassifier

from evergrow import NCMClassifier
from evergrow.compare import Retrained
from evergrow.compare import measurement as module
from evergrow.compare.learners import choose
from evergrow.compare.measurement import Standing, difference, measure
from evergrow.compare.setup import make_setups
from tests.compare.made import answered, answers, mixture, standing


@pytest.fixture(scope="module")
def setup():
    return make_setups(mixture(10, 8, n_train=20, n_test=10, distance=1.0))[0]


def one(name):
    return choose(only=[name])[0]


def test_a_growing_learner_is_as_accurate_as_used_directly(setup, tmp_path):
    means, data = NCMClassifier(), setup.data
    for step in setup.stream.steps(data.y_train):
        means.partial_fit(data.X_train[step.rows], data.y_train[step.rows])
    result = measure(one("class-means"), setup)
    assert result.points[-1].accuracy == pytest.approx(means.score(data.X_test, data.y_test))
    of_three = data.y_test == 3
    right = means.predict(data.X_test[of_three]) == 3
    assert [each == "1" for each in result.answers[3]] == right.tolist()
    # The size is that of the file, without caches.
    means.predict(data.X_test)
    means.save(tmp_path / "model")
    assert result.n_bytes == (tmp_path / "model").stat().st_size


def test_a_retrained_learner_is_as_accurate_as_on_everything(setup):
    data = setup.data
    ridge = RidgeClassifier().fit(data.X_train, data.y_train)
    found = measure(one("ridge"), setup)
    assert found.points[-1].accuracy == pytest.approx(ridge.score(data.X_test, data.y_test))
    assert found.n_bytes > found.model_bytes + data.X_train.nbytes
    # Neighbours hold the examples, which are counted once.
    neighbours = measure(one("neighbours"), setup, n_jobs=1)
    assert neighbours.n_bytes == neighbours.model_bytes


def test_seconds_are_of_updates_and_not_of_the_first_batch(setup, monkeypatch):
    ticks = iter(range(10_000))
    monkeypatch.setattr("evergrow.compare.stream.time.perf_counter", lambda: float(next(ticks)))
    result = measure(one("class-means"), setup)
    # Between two looks at the clock around an update lie those of the learner's own clock.
    assert result.seconds_per_update == result.last_seconds


def test_a_learner_whose_time_is_up_stops_between_updates(setup):
    result = measure(one("lda"), setup, time_limit=0.0)
    assert result.stopped_at == setup.points[0]
    assert [point.n_classes for point in result.points] == [setup.points[0]]


class _TenSeconds:
    """Takes ten seconds of a fake clock to train."""

    now = 0.0

    def fit(self, X, y):
        _TenSeconds.now += 10
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize(("limit", "started"), [(25.0, False), (35.0, True)])
def test_a_training_that_would_take_too_long_is_not_started(monkeypatch, limit, started):
    monkeypatch.setattr(_TenSeconds, "now", 0.0)
    monkeypatch.setattr(module.time, "perf_counter", lambda: _TenSeconds.now)
    timed = module._TimedLearner(Retrained(_TenSeconds), limit)
    X, y = np.zeros((5, 1)), np.zeros(5, dtype=int)
    timed.partial_fit(X, y)
    timed.predict(X)
    # Twice the examples are expected to take twice as long, after the ten seconds spent.
    timed.partial_fit(X, y)
    with nullcontext() if started else pytest.raises(module._OutOfTimeError):
        timed.predict(X)
    assert _TenSeconds.now == (20 if started else 10)


def test_a_warning_becomes_a_remark(setup):
    remarks = measure(replace(one("logistic"), parameters={"max_iter": 1}), setup).remarks
    assert any(remark.startswith("warned: lbfgs failed to converge") for remark in remarks)


@pytest.mark.parametrize("name", ["lda", "ridge", "ncm-forest"])
def test_classes_without_test_samples_may_come_first(setup, name):
    data = setup.data
    first = setup.stream.ordered(data.classes)[: setup.stream.initial]
    tested = ~np.isin(data.y_test, first)
    some = make_setups(replace(data, X_test=data.X_test[tested], y_test=data.y_test[tested]))[0]
    result = measure(one(name), some, n_jobs=1)
    assert np.isnan(result.points[0].class_mean)
    assert 0 < Standing(one(name), (result,), some.checkpoints)["on_the_way"] <= 1
    assert 0 <= result.forgetting <= 1


def test_a_single_batch_has_no_update(setup):
    at_once = make_setups(setup.data, initial=10)[0]
    assert measure(one("ridge"), at_once).seconds_per_update > 0
    alone = measure(one("lda"), at_once)
    assert np.isnan([alone.seconds_per_update, alone.last_seconds, alone.forgetting]).all()


@pytest.mark.parametrize("name", ["lda", "class-means", "least-squares"])
def test_stored_bytes_do_not_depend_on_the_number_of_updates(name):
    data = mixture(9, 30, n_train=20, n_test=10)
    sizes = [
        measure(one(name), make_setups(data, initial=1, chunk=chunk)[0]).n_bytes for chunk in (1, 8)
    ]
    assert max(sizes) == pytest.approx(min(sizes), rel=0.02)


# --- Differences that may be chance


def test_equal_differences_of_classes_leave_chance_of_samples():
    gap, noise = difference(standing("a", 0.8, spread=0.1), standing("b", 0.7, spread=0.1))
    assert gap == pytest.approx(0.1)
    # A hundred of the thousand samples of each of ten classes.
    assert noise == pytest.approx((1.96 * np.sqrt(1000) + 1) / 10_000)


def test_differences_that_vary_between_classes_may_be_chance():
    # Ten classes, half of them 0.3 above and half 0.1 below.
    _, noise = difference(standing("a", 0.8, spread=0.2), standing("b", 0.7))
    assert noise == pytest.approx(t.ppf(0.975, 9) * 0.2 * np.sqrt(10 / 9) / np.sqrt(10))


def test_a_gap_is_the_mean_over_classes_of_any_size():
    sizes = (500, 10)
    first, second = (
        answered(name, [answers(share, n) for share, n in zip(shares, sizes, strict=True)])
        for name, shares in {"first": (0.9, 0.2), "second": (0.8, 0.6)}.items()
    )
    assert first["accuracy"] > second["accuracy"]
    assert difference(first, second)[0] == pytest.approx(-0.15)


@pytest.mark.parametrize(("n_classes", "n_orders"), [(2, 1), (20, 1), (4, 3)])
def test_equal_learners_are_seldom_called_different(n_classes, n_orders):
    rng = np.random.default_rng(n_classes)

    def drawn():
        found = []
        for _ in range(n_orders):
            right = rng.random((n_classes, 30)) < 0.8
            found.append(
                answered("a", ["".join("01"[x] for x in row.astype(int)) for row in right])
            )
        return replace(found[0], results=tuple(each.results[0] for each in found))

    pairs = [difference(drawn(), drawn()) for _ in range(300)]
    assert np.mean([abs(gap) > noise for gap, noise in pairs]) <= 0.06


def test_classes_without_test_samples_do_not_count():
    first, second = answered("first", ["11", "", "10"]), answered("second", ["10", "", "10"])
    assert difference(first, second)[0] == pytest.approx(0.25)
    assert not answered("half", ["11", "", "00"]).beats_chance
