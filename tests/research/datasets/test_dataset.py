"""Generated data sets, and selections of a data set."""

import numpy as np
import pytest

from evergrow.research import Dataset, digits, mixture, spirals


@pytest.mark.parametrize("make", [digits, spirals, mixture])
def test_built_in_data_are_the_same_every_time(make):
    assert make().sha256 == make().sha256


def test_other_seeds_give_other_data():
    assert mixture(random_state=0).sha256 != mixture(random_state=1).sha256


def test_groups_of_a_mixture_are_nearer_than_other_classes():
    data = mixture(40, n_groups=4, n_train=200)
    means = np.array([data.X_train[data.y_train == c].mean(axis=0) for c in range(40)])
    distances = np.linalg.norm(means[:, None] - means[None], axis=2)
    group = np.array([data.parents[c] for c in range(40)])
    same = (group[:, None] == group[None]) & ~np.eye(40, dtype=bool)
    assert distances[same].mean() < 0.85 * distances[group[:, None] != group[None]].mean()


@pytest.mark.parametrize("unknown", [["bbX"], ["c"], [3.7]])
def test_an_unknown_class_is_reported(unknown):
    data = Dataset("odd", np.eye(2), np.array(["a", "bb"]), np.eye(2), np.array(["a", "bb"]))
    with pytest.raises(ValueError, match="has no classes"):
        data.of_classes(unknown)


@pytest.mark.parametrize("numbers", [(0, None), (-1, 2), (2, 0)])
def test_a_class_needs_a_sample(numbers):
    with pytest.raises(ValueError, match="at least one sample"):
        digits().per_class(*numbers)


def test_every_sample_needs_a_label():
    with pytest.raises(ValueError, match="4 train samples and 3 labels"):
        Dataset("odd", np.eye(4), np.arange(3), np.eye(4), np.arange(4))


def test_a_long_tail_keeps_shares_that_fall_geometrically():
    data = mixture(5, 3, n_train=80, n_test=4)
    found = data.long_tailed(16.0, random_state=2)
    assert sorted(np.bincount(found.y_train).tolist()) == [5, 10, 20, 40, 80]
    assert len(found.y_test) == len(data.y_test)
    again, other = (data.long_tailed(16.0, random_state=seed) for seed in (2, 3))
    assert np.array_equal(found.X_train, again.X_train)
    assert not np.array_equal(found.y_train, other.y_train)


def test_a_long_tail_keeps_one_sample_of_every_class():
    assert np.bincount(mixture(4, 3, n_train=2).long_tailed(1000.0).y_train).min() == 1


def test_an_imbalance_below_one_is_refused():
    with pytest.raises(ValueError, match=r"imbalance must be a number of at least 1, got 0\.5"):
        mixture(4, 3).long_tailed(0.5)
