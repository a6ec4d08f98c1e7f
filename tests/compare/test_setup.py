"""Streams and subsamples for a data set, and data that are refused."""

from dataclasses import replace

import numpy as np
import pytest

from evergrow.compare.learners import choose
from evergrow.compare.setup import Facts, make_setups
from tests.compare.made import mixture


@pytest.fixture(scope="module")
def data():
    return mixture(40, 6, n_train=12, n_test=5)


def test_ten_updates_are_the_default(data):
    setup, _ = make_setups(data)
    assert setup.points == (4, 8, 12, 16, 20, 24, 28, 32, 36, 40)
    svc, lda = (choose(only=[name])[0] for name in ("linear-svc", "lda"))
    assert setup.stream_for(svc, 0).measure_at == (4, 20, 40)
    assert setup.stream_for(lda, 0).measure_at == setup.points


def test_many_updates_are_measured_at_a_few_points(data):
    points = make_setups(data, initial=2, chunk=1)[0].points
    assert (len(points), points[0], points[-1]) == (11, 2, 40)


def test_one_of_two_classes_comes_first(data):
    setup, sample = make_setups(data.of_classes([3, 4]))
    assert (setup.points, setup.checkpoints, sample.points) == ((1, 2), (2,), (1, 2))


def test_quick_runs_and_subsamples_take_part_of_the_data(data):
    setup, _ = make_setups(data, quick=True)
    assert (len(setup.data.classes), setup.data.sha256) == (20, data.sha256)
    _, small = make_setups(mixture(40, 2000, n_train=12, n_test=5))
    assert len(small.data.y_train) * 2000 <= 256_000


def test_one_class_at_a_time_follows_the_first_two(data):
    setup, _ = make_setups(data, protocol="single")
    steps = [*setup.stream.steps(setup.data.y_train)]
    assert [len(step.classes) for step in steps] == [2] + [1] * 38
    assert len(setup.points) == 11


def test_a_blurry_stream_mixes_classes_of_unequal_sizes(data):
    setup, _ = make_setups(data, protocol="blurry")
    y = setup.data.y_train
    counts = np.bincount(y)
    assert (counts.min(), counts.max()) == (1, 12)
    assert len(setup.data.y_test) == len(data.y_test)
    returning = [np.setdiff1d(y[s.rows], s.classes) for s in setup.stream.steps(y)]
    assert sum(len(each) > 0 for each in returning) > len(returning) / 2


def with_nan(data):
    X = data.X_test.copy()
    X[7, 2] = np.nan
    return replace(data, X_test=X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_nan, r"X_test of 'mixture' .* first in row 7"),
        (lambda data: replace(data, X_train=data.y_train.astype(str)), "turn images into features"),
        (lambda data: data.of_classes([3]), "has 1 class; at least 2"),
        (lambda data: replace(data, X_test=data.X_test[:0], y_test=data.y_test[:0]), "no test"),
    ],
    ids=["not finite", "images", "one class", "no test samples"],
)
def test_data_that_cannot_be_compared_are_refused(data, change, message):
    with pytest.raises(ValueError, match=message):
        make_setups(change(data))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 41}, "begins with 41 classes, but there are only 40"),
        ({"protocol": "blury"}, r"protocol must be one of \['batches', 'single', 'blurry'\]"),
        ({"protocol": "single", "chunk": 2}, "leave initial and chunk at None"),
    ],
)
def test_a_stream_that_cannot_be_made_is_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        make_setups(data, **options)


def test_facts_count_single_and_untested_classes(data):
    keep = (data.y_train != 5) | (np.cumsum(data.y_train == 5) == 1)
    tested = data.y_test != 6
    facts = Facts.of(
        replace(
            data,
            X_train=data.X_train[keep],
            y_train=data.y_train[keep],
            X_test=data.X_test[tested],
            y_test=data.y_test[tested],
        )
    )
    assert (facts.n_single, facts.n_untested, facts.examples_per_class) == (1, 1, 12.0)
    assert facts.largest_class == 12
