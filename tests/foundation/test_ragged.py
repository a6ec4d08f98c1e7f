"""Images with different numbers of rows."""

import numpy as np
import pytest

from evergrow import RaggedArray


def two_images():
    return RaggedArray.of([np.arange(6).reshape(3, 2), np.array([[7, 8]])])


def test_images_come_back_as_they_went_in():
    images = two_images()
    assert [image.tolist() for image in images] == [[[0, 1], [2, 3], [4, 5]], [[7, 8]]]


def test_several_images_can_be_picked_in_any_order():
    picked = two_images()[np.array([1, 0, 1])]
    assert picked.lengths.tolist() == [1, 3, 1]
    assert picked[2].tolist() == [[7, 8]]


def test_a_slice_is_ragged_and_an_empty_one_keeps_the_width():
    assert two_images()[1:].lengths.tolist() == [1]
    assert two_images()[:0].n_features == 2


def test_negative_numbers_count_from_the_end():
    assert two_images()[-1].tolist() == [[7, 8]]
    with pytest.raises(IndexError):
        two_images()[2]


def test_an_image_may_have_no_rows():
    images = RaggedArray.of([np.zeros((0, 2)), np.ones((1, 2))])
    assert images.lengths.tolist() == [0, 1]
    assert images.per_row([3, 4]).tolist() == [4]


@pytest.mark.parametrize(
    "offsets", [[0, 2], [1, 4], [0, 3, 2, 4], [], [[0, 4]], [0, 1.7, 4], [False, 4.0], ["0", "4"]]
)
def test_offsets_that_do_not_fit_are_refused(offsets):
    with pytest.raises(ValueError, match="offsets must"):
        RaggedArray(np.zeros((4, 2)), offsets)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RaggedArray.of([np.zeros((1, 2)), np.zeros((1, 3))]), "number 1 has the shape"),
        (lambda: RaggedArray.of([]), "at least one image"),
        (lambda: two_images().per_row([1, 2, 3]), "2 images, got 3"),
        (lambda: two_images().per_row("abc"), "one value for each of 2 images, got 'abc'"),
    ],
)
def test_wrong_images_and_values_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("images", [[1, 2], [[1, 2], [3, 4]], "ab", [np.zeros((1, 2)), 3]])
def test_images_that_are_not_matrices_are_refused(images):
    with pytest.raises(ValueError, match=r"every image must be a matrix.* number \d has the shape"):
        RaggedArray.of(images)


def test_nothing_is_looked_for_by_equality():
    images = two_images()
    with pytest.raises(TypeError):
        images[0] in images  # noqa: B015
    assert not hasattr(images, "index")
    assert not hasattr(images, "count")
