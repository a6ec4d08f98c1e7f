"""Counts of words, and properties of patches."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from evergrow import ERCForest
from evergrow.research.papers.nips2006.embedded_images import decode, encode, shrink
from evergrow.research.papers.nips2006.fig2 import _surplus, _unmixed, best_leaf
from evergrow.research.papers.nips2006.histograms import (
    Coding,
    centres_on,
    count_words,
    equal_error_score,
    is_plain,
    local_features,
    pool,
    rank_by_svm,
    rank_by_votes,
    training_descriptors,
)
from evergrow.research.papers.nips2006.photographs import Photographs
from evergrow.research.papers.nips2006.scenes import scene_dataset
from evergrow.vision import KMeansCodebook, equal_error_rate


def scenes():
    data = scene_dataset(4)
    images = [*data.X_train, *data.X_test]
    classes = np.concatenate([data.y_train, data.y_test])
    trains = np.arange(len(images)) < len(data.X_train)
    return Photographs("scenes", images, classes, trains).against_background("bicycle")


def test_counts_are_those_that_the_codebook_gives_itself():
    data = scenes()
    given = training_descriptors(data, "haar", 0, 200)
    for codebook in (ERCForest(2, n_words=8, random_state=0), KMeansCodebook(9, random_state=0)):
        codebook.fit(given.rows, given.classes)
        counts = count_words(data, "haar", {"all": Coding(codebook, 30)}, 5)["all"]
        local = local_features("haar", 30, 5)
        expected = codebook.encode([local.describe(image)[0] for image in data.images])
        assert np.array_equal(counts.toarray(), expected.toarray())


def test_informative_words_give_the_full_rate_and_others_half_of_it():
    data = scenes()
    informative = sparse.csr_array((data.classes == "bicycle").astype(np.int32)[:, None])
    assert equal_error_score(data, "bicycle", informative) == 100.0
    silent = sparse.csr_array(np.ones((len(data.classes), 1), dtype=np.int32))
    assert equal_error_score(data, "bicycle", silent) == 50.0


def test_votes_are_the_mean_posterior_of_the_windows():
    data = scenes()
    given = training_descriptors(data, "haar", 0, 200)
    forest = ERCForest(2, n_words=8, random_state=0).fit(given.rows, given.classes)
    counts = count_words(data, "haar", {"all": Coding(forest, 30)}, 5)["all"]
    local = local_features("haar", 30, 5)
    column = forest.classes_.tolist().index("bicycle")
    tests = np.flatnonzero(~data.trains)
    votes = [forest.predict_proba(local.describe(data.images[i])[0])[:, column] for i in tests]
    expected = 100 * equal_error_rate(np.mean(votes, axis=1), data.classes[tests] == "bicycle")
    assert rank_by_votes(data, "bicycle", counts, forest).rate == pytest.approx(expected)


def test_a_perfect_ranking_has_the_whole_area_and_a_silent_one_half():
    data = scenes()
    told = sparse.csr_array((data.classes == "bicycle").astype(np.int32)[:, None])
    silent = sparse.csr_array(np.ones((len(data.classes), 1), dtype=np.int32))
    perfect, chance = (rank_by_svm(data, "bicycle", counts) for counts in (told, silent))
    assert (perfect.area, chance.area) == (100.0, 50.0)
    assert perfect.found([0.0, 1.0]) == [1.0, 1.0]
    assert chance.found([0.0, 0.5, 1.0]) == [0.0, 0.5, 1.0]


def test_shares_of_counts_are_as_long_as_binary_codes():
    counts = sparse.csr_array(np.array([[3, 1, 0], [0, 2, 2]]))
    trains = np.array([True, True])
    shares, binary = (pool(counts, name, trains, trains) for name in ("sum", "binary"))
    assert shares.power(2).sum() == pytest.approx(binary.power(2).sum())
    assert shares.toarray()[0] == pytest.approx(
        3 * shares.toarray()[0, 1] * np.array([1, 1 / 3, 0])
    )


def test_patches_of_a_masked_image_lie_on_the_mask():
    data = scenes()
    # Where a mask covers one colour alone, all descriptors of its image are equal.
    images = [np.zeros((60, 80, 3), np.uint8) for _ in data.images]
    for image in images:
        image[:, 40:] = np.random.default_rng(0).integers(0, 256, (60, 40, 3))
    mask = np.zeros((60, 80), dtype=bool)
    mask[:, :20] = True
    flat = replace(data, images=images)
    rows = training_descriptors(flat, "hsl", 0, 80, masks=[mask] * len(images)).rows
    assert np.ptp(rows, axis=0).max() == 0
    assert np.ptp(training_descriptors(flat, "hsl", 0, 80).rows, axis=0).max() > 0


def test_only_training_images_teach_the_words():
    data = scenes()
    given = training_descriptors(data, "hsl", 0, n_descriptors=80)
    assert given.rows.shape == (80, 768)
    assert given.images.max() == data.trains.sum() - 1


def test_codings_of_fewer_patches_see_the_first_of_the_same_ones():
    data = scenes().where(np.arange(len(scenes().images)) < 2)
    rows = training_descriptors(data, "hsl", 0, n_descriptors=40).rows
    forest = ERCForest(2, n_words=5, supervised=False, random_state=0).fit(rows)
    counts = count_words(data, "hsl", {"few": Coding(forest, 10), "many": Coding(forest, 30)}, 0)
    assert counts["few"].sum(axis=1).tolist() == [20, 20]
    assert ((counts["many"] - counts["few"]).toarray() >= 0).all()


def test_some_descriptors_come_from_all_images():
    given = training_descriptors(scenes(), "hsl", 0, 80).some(8)
    assert np.bincount(given.images).tolist() == [2, 2, 2, 2]


def test_a_patch_lies_on_an_object_by_its_centre():
    outline = np.zeros((10, 20), dtype=bool)
    outline[:, 10:] = True
    boxes = np.array([[0, 0, 10], [8, 0, 8]], dtype=np.float32)
    assert centres_on(boxes, outline).tolist() == [False, True]


def test_a_patch_of_one_grey_is_plain_and_an_edge_is_not():
    image = np.full((20, 40, 3), 200, dtype=np.uint8)
    image[:, 30:] = 0
    boxes = np.array([[0, 0, 20], [20, 0, 20]], dtype=np.float32)
    assert is_plain(image, boxes).tolist() == [True, False]


def test_the_unmixed_leaf_is_the_largest_of_one_class():
    words = np.array([[0], [0], [0], [1], [1], [0], [2]])
    mine = np.array([True, True, True, True, True, False, True])
    assert best_leaf(words, mine, _unmixed) == (0, 1)


def test_the_leaf_of_the_largest_surplus_may_be_mixed():
    words = np.array([[0]] * 12 + [[1]])
    mine = np.array([True] * 10 + [False] * 2 + [True])
    assert best_leaf(words, mine, _surplus) == (0, 0)


def test_a_picture_survives_being_text():
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    assert np.array_equal(decode(encode(pixels)), pixels)


def test_a_smaller_picture_keeps_its_proportions():
    assert shrink(np.zeros((100, 200, 3), np.uint8), 50, 50).shape == (25, 50, 3)
