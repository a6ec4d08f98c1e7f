"""Measured values equal those of using the learner directly."""

import json
from contextlib import nullcontext
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.stats import t
from sklearn.linear_model import RidgeClassifier

from evergrow import NCMClassifier
from evergrow.research import (
    ComparedLearner,
    Estimator,
    Result,
    Retrained,
    choose,
    difference,
    make_setup,
    measure,
    mixture,
)
from evergrow.research.comparison import measurement as module
from tests.research.comparison.made_up import answered, answers, standing


@pytest.fixture(scope="module")
def setup():
    return make_setup(mixture(10, 8, n_train=20, n_test=10, distance=1.0))


def one(name):
    return choose(only=[name])[0]


def test_a_learner_that_grows_is_as_accurate_as_when_used_directly(setup):
    means = NCMClassifier(metric="mahalanobis")
    for step in setup.stream.steps(setup.data.y_train):
        means.partial_fit(setup.data.X_train[step.rows], setup.data.y_train[step.rows])
    accuracy = means.score(setup.data.X_test, setup.data.y_test)
    assert measure(one("lda"), setup).accuracy == pytest.approx(accuracy)


def test_a_retrained_learner_is_as_accurate_as_one_trained_on_everything(setup):
    data = setup.data
    ridge = RidgeClassifier().fit(data.X_train, data.y_train)
    assert measure(one("ridge"), setup).accuracy == pytest.approx(
        ridge.score(data.X_test, data.y_test)
    )


def test_accuracies_of_classes_are_in_sorted_order(setup):
    data = setup.data
    result = measure(one("class-means"), setup)
    means = NCMClassifier().fit(data.X_train, data.y_train)
    of_three = means.score(data.X_test[data.y_test == 3], data.y_test[data.y_test == 3])
    assert result.class_accuracies[3] == pytest.approx(of_three)


def test_seconds_are_those_of_updates_and_not_of_the_first_batch(setup, monkeypatch):
    ticks = iter(range(10_000))
    monkeypatch.setattr(
        "evergrow.research.streams.evaluation.time.perf_counter", lambda: float(next(ticks))
    )
    result = measure(one("class-means"), setup)
    # Between two looks at the clock around an update lie those of the learner's own clock.
    assert result.seconds_per_update == result.last_seconds


def test_a_learner_whose_time_is_up_is_stopped_between_updates(setup):
    result = measure(one("lda"), setup, time_limit=0.0)
    assert result.stopped_at == setup.points[0]
    assert [point.n_classes for point in result.points] == [setup.points[0]]
    assert np.isnan(result.accuracy)


class _TenSeconds:
    """Takes ten seconds of a fake clock to train."""

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
    timed = module._TimedLearner(Retrained(_TenSeconds), limit)
    X, y = np.zeros((5, 1)), np.zeros(5, dtype=int)
    timed.partial_fit(X, y).predict(X)
    # Twice the examples are expected to take twice as long, after the ten seconds spent.
    timed.partial_fit(X, y)
    with nullcontext() if begun else pytest.raises(module._OutOfTimeError):
        timed.predict(X)
    assert _TenSeconds.now == (20 if begun else 10)


def test_examples_that_a_model_holds_are_counted_once(setup):
    neighbours = measure(one("neighbours"), setup, n_jobs=1)
    assert neighbours.n_bytes == neighbours.model_bytes
    ridge = measure(one("ridge"), setup)
    assert ridge.n_bytes > ridge.model_bytes + setup.data.X_train.nbytes


def test_bytes_are_those_of_the_model_file(setup, tmp_path):
    means = NCMClassifier()
    for step in setup.stream.steps(setup.data.y_train):
        means.partial_fit(setup.data.X_train[step.rows], setup.data.y_train[step.rows])
    means.predict(setup.data.X_test)
    means.save(tmp_path / "model")
    assert measure(one("class-means"), setup).n_bytes == (tmp_path / "model").stat().st_size


def test_a_warning_becomes_a_remark(setup):
    factory = Estimator("sklearn.linear_model", "LogisticRegression", {"max_iter": 1})
    hasty = ComparedLearner("hasty", "hasty", "scikit-learn", factory, way="retrained")
    remarks = measure(hasty, setup).remarks
    assert any(remark.startswith("warned: lbfgs failed to converge") for remark in remarks)


def test_a_class_with_one_sample_takes_part(setup):
    data = setup.data
    keep = (data.y_train != 5) | (np.cumsum(data.y_train == 5) == 1)
    single = replace(data, X_train=data.X_train[keep], y_train=data.y_train[keep])
    for name in ("lda", "least-squares", "ncm-forest", "linear-svc"):
        assert measure(one(name), make_setup(single), n_jobs=1).stopped_at is None


def test_the_same_difference_in_every_class_leaves_only_samples_to_chance():
    gap, noise = difference(standing("a", 0.8, spread=0.1), standing("b", 0.7, spread=0.1))
    assert gap == pytest.approx(0.1)
    # A hundred of the thousand samples of each of ten classes.
    assert noise == pytest.approx((1.96 * np.sqrt(1000) + 1) / 10_000)


def test_differences_that_vary_between_classes_may_be_chance():
    # Ten classes, half of them 0.3 above and half 0.1 below.
    _, noise = difference(standing("a", 0.8, spread=0.2), standing("b", 0.7))
    assert noise == pytest.approx(t.ppf(0.975, 9) * 0.2 * np.sqrt(10 / 9) / np.sqrt(10))


def test_one_sample_more_in_each_of_two_classes_may_be_chance():
    better, worse = (answered(name, [answers(share, 50)] * 2) for name, share in MORE.items())
    gap, noise = difference(better, worse)
    assert gap == pytest.approx(0.02)
    assert noise > gap


MORE = {"better": 0.82, "worse": 0.80}


def test_a_gap_is_the_mean_over_classes_however_large_they_are():
    sizes = (500, 10)
    one, other = (
        answered(name, [answers(share, n) for share, n in zip(shares, sizes, strict=True)])
        for name, shares in {"one": (0.9, 0.2), "other": (0.8, 0.6)}.items()
    )
    assert one.accuracy > other.accuracy
    assert difference(one, other)[0] == pytest.approx(-0.15)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 20])
def test_learners_that_are_equal_are_seldom_called_different(n_classes):
    rng = np.random.default_rng(n_classes)

    def drawn(name):
        right = rng.random((n_classes, 30)) < 0.8
        return answered(name, ["".join("01"[each] for each in row.astype(int)) for row in right])

    pairs = [difference(drawn("a"), drawn("b")) for _ in range(300)]
    assert np.mean([abs(gap) > noise for gap, noise in pairs]) <= 0.06


def test_equal_learners_in_several_orders_are_seldom_called_different():
    rng = np.random.default_rng(0)

    def drawn(name):
        found = [answered(name, _random_answers(rng)) for _ in range(3)]
        return replace(found[0], results=tuple(each.results[0] for each in found))

    pairs = [difference(drawn("a"), drawn("b")) for _ in range(200)]
    assert np.mean([abs(gap) > noise for gap, noise in pairs]) <= 0.06


def _random_answers(rng):
    return ["".join("01"[each] for each in row) for row in (rng.random((4, 20)) < 0.8).astype(int)]


def test_a_difference_is_at_most_a_hundred_points():
    one, other = answered("one", ["1" * 9, "0" * 9]), answered("other", ["0" * 9, "1" * 9])
    assert difference(one, other) == (0.0, 1.0)


def test_classes_without_test_samples_do_not_count():
    one, other = answered("one", ["11", "", "10"]), answered("other", ["10", "", "10"])
    assert difference(one, other)[0] == pytest.approx(0.25)
    assert one.chance == 0.5


def test_what_was_written_is_read_back(setup):
    result = measure(one("lda"), setup)
    assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result


@pytest.mark.parametrize(
    "change",
    [
        {"answers": None},
        {"answers": ["1", "x"]},
        {"answers": []},
        {"points": []},
        {"points": [{"n_classes": 2}]},
        {"n_bytes": "many"},
        {"stopped_at": "never"},
        {"unheard_of": 1},
        {"remarks": [1]},
    ],
    ids=str,
)
def test_damaged_results_are_refused(setup, change):
    entry = {**measure(one("class-means"), setup).to_json(), **change}
    with pytest.raises(ValueError, match="damaged"):
        Result.from_json(entry)


@pytest.mark.parametrize("name", [field.name for field in fields(Result)])
def test_results_that_lack_something_are_refused(setup, name):
    entry = measure(one("class-means"), setup).to_json()
    del entry[name]
    with pytest.raises(ValueError, match="damaged"):
        Result.from_json(entry)


@pytest.mark.parametrize("name", ["lda", "class-means", "least-squares"])
def test_what_is_stored_does_not_depend_on_the_number_of_updates(name):
    data = mixture(9, 30, n_train=20, n_test=10)
    sizes = [
        measure(one(name), make_setup(data, initial=1, chunk=chunk)).n_bytes for chunk in (1, 2, 8)
    ]
    assert max(sizes) == pytest.approx(min(sizes), rel=0.02)


def test_a_long_warning_is_cut_between_words():
    message = module._warning(" ".join(["word"] * 40))
    assert message.startswith("warned: word word")
    assert message.endswith("word\N{HORIZONTAL ELLIPSIS}")


def test_classes_without_test_samples_may_come_first(setup):
    data = setup.data
    first = setup.stream.ordered(data.classes)[: setup.stream.initial]
    tested = ~np.isin(data.y_test, first)
    some = make_setup(replace(data, X_test=data.X_test[tested], y_test=data.y_test[tested]))
    for name in ("lda", "ridge", "ncm-forest"):
        result = measure(one(name), some, n_jobs=1)
        assert np.isnan(result.points[0].class_mean)
        assert 0 < result.on_the_way(some.checkpoints) <= 1
        assert 0 <= result.forgetting <= 1


@pytest.mark.parametrize("name", ["lda", "least-squares", "ncm-forest", "linear-svc", "sgd"])
def test_of_two_classes_the_second_comes_in_an_update(name):
    two = make_setup(mixture(2, 8, n_train=20, n_test=10, distance=1.0))
    result = measure(one(name), two, n_jobs=1)
    assert result.seconds_per_update > 0
    assert result.class_mean > 0.5


def test_a_single_retraining_has_a_time_and_a_single_batch_no_update(setup):
    at_once = make_setup(setup.data, initial=10)
    assert measure(one("ridge"), at_once).seconds_per_update > 0
    alone = measure(one("lda"), at_once)
    assert np.isnan([alone.seconds_per_update, alone.last_seconds, alone.forgetting]).all()


def test_a_learner_is_made_once_before_the_clock_runs_so_that_imports_do_not_count(setup):
    built = []

    class Factory:
        code, package = "RidgeClassifier()", "sklearn"

        def build(self, setting):
            built.append(setting)
            return RidgeClassifier()

    measure(ComparedLearner("late", "late", "scikit-learn", Factory(), way="retrained"), setup)
    assert len(built) == 1 + len(setup.checkpoints)
