"""Data sets of images turned into features."""

from pathlib import Path

import numpy as np
import pytest

from evergrow import BadImageWarning, DatasetError, ImageError
from evergrow.research import load_dataset, mixture
from evergrow.research.datasets.embedding import embed_images, is_image_dataset
from evergrow.vision import Embedder
from tests.vision.classifier.pictures import folder_of


def mean_colours(images):
    return [image.mean(axis=(0, 1)) for image in images]


@pytest.fixture
def images(tmp_path):
    return load_dataset(folder_of(tmp_path / "photos", "red", "green", n=8))


def test_every_image_becomes_its_vector(images):
    data = embed_images(images, embedder=Embedder(mean_colours))
    assert data.X_train.shape == (12, 3)
    assert np.array_equal(data.y_test, images.y_test)
    # Red pictures have more red than green.
    assert np.array_equal(data.X_test[:, 0] > data.X_test[:, 1], data.y_test == "red")


def test_the_hash_depends_on_the_network(images):
    first, second = (
        embed_images(images, embedder=Embedder(network)).sha256
        for network in (mean_colours, lambda some: [[1.0, 2.0] for _ in some])
    )
    assert len({first, second, images.sha256}) == 3


def test_a_damaged_image_is_left_out_if_asked_for(images):
    with open(images.X_train[0], "wb") as file:
        file.write(b"no picture")
    with pytest.raises(ImageError, match=Path(images.X_train[0]).name):
        embed_images(images, embedder=Embedder(mean_colours))
    with pytest.warns(BadImageWarning):
        data = embed_images(images, embedder=Embedder(mean_colours), on_error="skip")
    assert (len(data.y_train), len(data.y_test)) == (11, 4)


def test_images_none_of_which_can_be_read_are_an_error(images):
    for path in [*images.X_train, *images.X_test]:
        with open(path, "wb") as file:
            file.write(b"no picture")
    with (
        pytest.warns(BadImageWarning),
        pytest.raises(DatasetError, match="no image of 'photos' can be read"),
    ):
        embed_images(images, embedder=Embedder(mean_colours), on_error="skip")


def test_features_are_not_images(images):
    assert is_image_dataset(images)
    assert not is_image_dataset(mixture(2, 3))
