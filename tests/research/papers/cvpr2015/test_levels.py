"""Which samples are used for training, and which have fine labels."""

from dataclasses import replace

import numpy as np
import pytest

from evergrow.research import Dataset, mixture
from evergrow.research.papers.cvpr2015.levels import MISSING, TwoLevels, draw


def rows_of(shown):
    return {row.tobytes() for row in shown}


def test_a_number_names_one_class_only(data):
    assert not set(data.parents) & set(data.fine)
    assert data.coarse.tolist() == [data.parents[fine] for fine in data.fine]


def test_classes_of_any_name_are_numbered():
    plain = mixture(4, 3, 5, 2, n_groups=2)
    names = np.array(["d", "c", "b", "a"])
    parents = {"a": "x", "b": "x", "c": "y", "d": "y"}
    named = replace(
        plain, y_train=names[plain.y_train], y_test=names[plain.y_test], parents=parents
    )
    levels = TwoLevels.of(named)
    assert levels.parents.tolist() == [4, 4, 5, 5]
    assert levels.fine_test.tolist() == [3, 3, 2, 2, 1, 1, 0, 0]


def test_test_samples_of_unknown_classes_are_left_out():
    plain = mixture(4, 3, 5, 2, n_groups=2)
    levels = TwoLevels.of(replace(plain, y_test=np.where(plain.y_test == 3, 9, plain.y_test)))
    assert levels.fine_test.tolist() == [0, 0, 1, 1, 2, 2]


def test_near_classes_make_a_coarse_one_where_the_data_name_none():
    centres = np.array([[0.0, 0], [9, 9], [0, 1], [9, 8]])
    X, y = np.repeat(centres, 3, axis=0), np.repeat(np.arange(4), 3)
    levels = TwoLevels.of(Dataset("plain", X, y, X, y))
    assert levels.parents[0] == levels.parents[2]
    assert levels.parents[1] == levels.parents[3]
    assert levels.parents[0] != levels.parents[1]


def test_a_class_without_a_coarse_one_is_named():
    plain = mixture(4, 3, 5, 2, n_groups=2)
    with pytest.raises(ValueError, match="class 3 has no coarse class"):
        TwoLevels.of(replace(plain, parents={0: 0, 1: 0, 2: 1}))


def test_too_few_classes_to_group_are_refused():
    with pytest.raises(ValueError, match="3 classes make no groups"):
        TwoLevels.of(mixture(3, 3, 5, 2))


def test_pictures_are_refused_with_the_reason():
    paths = np.array(["a.jpg", "b.jpg"])
    with pytest.raises(ValueError, match="need features"):
        TwoLevels.of(Dataset("folder", paths, np.array([0, 1]), paths, np.array([0, 1])))


def test_the_same_share_of_every_class_has_fine_labels(data):
    shown = draw(data, seed=0, fine_share=0.1, coarse_share=0.5)
    assert np.bincount(shown.fine[shown.known]).tolist() == [4] * 6
    assert np.bincount(shown.fine[~shown.known]).tolist() == [20] * 6
    assert (shown.labels[~shown.known, 1] == MISSING).all()
    assert (shown.labels[:, 0] == data.parents[shown.fine]).all()


def test_every_class_has_a_fine_label_however_small_the_share(data):
    shown = draw(data, seed=0, fine_share=0.001, coarse_share=0.5)
    assert np.bincount(shown.fine[shown.known]).tolist() == [1] * 6


def test_all_samples_may_have_fine_labels(data):
    shown = draw(data, seed=0, fine_share=1.0, coarse_share=0.5)
    assert shown.known.all()
    assert rows_of(shown.X) == rows_of(data.X)


def test_more_labels_are_those_of_fewer_and_others(data):
    few, many = (draw(data, 3, share, 0.5) for share in (0.1, 0.5))
    assert rows_of(few.X[few.known]) < rows_of(many.X[many.known])
    assert rows_of(few.X[~few.known]) == rows_of(many.X[~many.known])


def test_samples_with_fine_labels_keep_their_order(data):
    few, many = (draw(data, 3, 0.5, share) for share in (0.1, 0.5))
    assert np.array_equal(few.X[few.known], many.X[many.known])


def test_rows_are_shuffled(data):
    shown = draw(data, 3, 0.5, 0.5)
    assert (np.diff(shown.fine) != 0).mean() > 0.5


def test_no_sample_is_drawn_twice(data):
    shown = draw(data, 1, 0.5, 0.5)
    assert len(rows_of(shown.X)) == len(shown.X) == len(data.X)


def test_another_seed_is_another_draw(data):
    one, other = (draw(data, seed, 0.2, 0.5) for seed in (0, 1))
    assert rows_of(one.X[one.known]) != rows_of(other.X[other.known])
