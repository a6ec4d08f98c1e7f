"""Fisher vectors of small images."""

from dataclasses import replace

import numpy as np

from evergrow.research import Dataset, digits
from evergrow.research.papers.cvpr2015.data import _alphabets, _patches, fisher_vectors


def test_patches_of_one_value_are_left_out():
    image = np.zeros((28, 28), dtype=np.float32)
    image[3, 3] = 1.0
    (rows,) = _patches(image.reshape(1, -1))
    # Patches that start at 0 or 2 in either direction show the dot.
    assert rows.shape == (4, 64)
    assert (rows.sum(axis=1) == 1.0).all()


def test_vectors_keep_labels_and_hash_and_tell_classes_apart():
    images = digits().per_class(40, 20)
    found = fisher_vectors(images)
    assert found.sha256 == images.sha256
    assert (found.y_test == images.y_test).all()
    assert np.allclose(np.linalg.norm(found.X_train, axis=1), 1.0, atol=1e-5)
    means = np.array([found.X_train[found.y_train == c].mean(axis=0) for c in found.classes])
    distances = ((found.X_test[:, None] - means) ** 2).sum(axis=2)
    assert (found.classes[distances.argmin(axis=1)] == found.y_test).mean() > 0.6


def test_test_images_do_not_change_the_mixture():
    images = digits().per_class(20, 10)
    other = replace(images, X_test=images.X_test[::-1].copy(), y_test=images.y_test[::-1].copy())
    one, two = (fisher_vectors(each) for each in (images, other))
    assert np.array_equal(one.X_train, two.X_train)
    assert np.array_equal(one.X_test, two.X_test[::-1])


def test_characters_belong_to_their_alphabet():
    X, y = np.zeros((2, 4)), np.array([0, 1])
    names = {0: "Greek/character01", 1: "Latin/character01"}
    data = _alphabets(Dataset("drawn", X, y, X, y, class_names=names))
    assert data.parents == {0: "Greek", 1: "Latin"}
