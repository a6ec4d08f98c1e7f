"""What the benchmark of codebooks computes is what its tables say."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.codebook.parameters import others
from benchmarks.codebook.protocol import (
    BACKGROUND,
    Coding,
    Photographs,
    drawn_pictures,
    equal_error_score,
    every_other,
    histograms,
    training_descriptors,
)
from evergrow import ERCForest


def some_pictures() -> Photographs:
    images, classes = drawn_pictures(4)
    return Photographs("drawn", images, classes, every_other(classes))


def test_every_other_image_of_each_class_trains() -> None:
    classes = np.array(["b", "b", "b", "a", "a"])
    assert every_other(classes).tolist() == [True, False, True, True, False]


def test_words_that_tell_the_class_give_the_full_rate_and_words_that_do_not_half_of_it() -> None:
    data = some_pictures()
    telling = sparse.csr_array((data.classes == "ring").astype(np.int32)[:, None])
    assert equal_error_score(data, "ring", telling) == 100.0
    silent = sparse.csr_array(np.ones((len(data.classes), 1), dtype=np.int32))
    assert equal_error_score(data, "ring", silent) == 50.0


def test_only_training_images_teach_the_words() -> None:
    data = some_pictures()
    given = training_descriptors(data, "hsl", 0, n_descriptors=80)
    assert given.rows.shape == (80, 768)
    assert given.images.max() == data.trains.sum() - 1


def test_codings_of_fewer_patches_see_the_first_of_the_same_ones() -> None:
    data = some_pictures().where(np.arange(16) < 2)
    rows = training_descriptors(data, "hsl", 0, n_descriptors=40).rows
    forest = ERCForest(2, n_words=5, supervised=False, random_state=0).fit(rows)
    counts = histograms(data, "hsl", {"few": Coding(forest, 10), "many": Coding(forest, 30)}, 0)
    assert counts["few"].sum(axis=1).tolist() == [20, 20]
    assert ((counts["many"] - counts["few"]).toarray() >= 0).all()


def test_a_task_holds_one_object_and_background() -> None:
    task = some_pictures().against_background("cross")
    assert set(task.classes) == {"cross", BACKGROUND}
    assert len(task.images) == len(task.trains) == 8


def test_codebooks_that_are_compared_have_as_many_words() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 5)).astype(np.float32)
    words = {name: codebook.fit(rows).n_words_ for name, codebook in others(8, 0).items()}
    assert words == {"k-means": 40, "hierarchical k-means": 40, "random kd-trees": 40}
