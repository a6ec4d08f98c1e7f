"""Invalid input of an image classifier is rejected early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evergrow import BadImageWarning, ImageClassifier
from tests.vision.classifier.pictures import MeanColours, folder_of, picture, pictures

IMAGES, LABELS = pictures("red", "green")


def model_of(**options: Any) -> ImageClassifier:
    return ImageClassifier(MeanColours(), random_state=0, **options)


@pytest.fixture(scope="module")
def model() -> ImageClassifier:
    """A fitted classifier; tests must not change it."""
    return model_of().fit(IMAGES, LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"features": "pixels"},
            r"features must be one of \['auto', 'embed', 'haar', 'hsl', 'sift'",
        ),
        ({"features": MeanColours}, "features must be"),
        ({"features": 7}, "a transformer or a function of images"),
        ({"learner": "svm"}, r"learner must be one of \['forest', 'lda', .*\] or a classifier"),
        ({"learner": MeanColours()}, "learner must be"),
        ({"on_error": "ignore"}, r"on_error must be one of \['raise', 'skip'\]"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"keep_features": "yes"}, "keep_features must be"),
    ],
)
def test_a_wrong_parameter_says_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of().set_params(**options).fit(IMAGES, LABELS)


@pytest.mark.parametrize(
    ("images", "y", "error", "message"),
    [
        ([], [], ValueError, "at least one image"),
        ("photos", ["red"], TypeError, "folder or a list of sources.*folder not found: .photos."),
        (IMAGES, None, ValueError, "one subfolder per class"),
        (IMAGES, LABELS[1:], ValueError, "one label per image, 12"),
        (IMAGES, LABELS[None], ValueError, "one label per image, 12"),
        (IMAGES[:2], [1, "red"], TypeError, "all strings or all numbers"),
        (IMAGES[:2], [0.1, 0.2], ValueError, "Unknown label type"),
    ],
)
def test_wrong_training_input_is_refused(images: Any, y: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        model_of().fit(images, y)


def test_labels_of_another_kind_are_refused_before_images_are_read(model: Any) -> None:
    with pytest.raises(TypeError, match="labels must be strings"):
        model.partial_fit([b"no image"], [3])


def test_one_image_is_enough() -> None:
    assert model_of().fit(IMAGES[:1], ["red"]).predict(IMAGES[1:2]).tolist() == ["red"]


def test_no_image_that_can_be_read_is_an_error() -> None:
    model = model_of(on_error="skip")
    with (
        pytest.warns(BadImageWarning, match="2 images were left out"),
        pytest.raises(ValueError, match="none of the 2 images could be read"),
    ):
        model.fit([b"x", b"y"], ["a", "b"])


def test_images_of_which_none_can_be_read_get_no_answers(model: Any) -> None:
    with pytest.warns(BadImageWarning):
        answers = model.answer([b"x", b"y"], k=2, on_error="skip")
    assert answers.labels.shape == (0,)
    assert answers.top_labels.shape == answers.top_probabilities.shape == (0, 2)
    assert len(answers.problems) == 2


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        ("picture.png", "str"),
        (Path("picture.png"), "Path|PosixPath|WindowsPath"),
        (b"PNG", "bytes"),
        (Image.fromarray(IMAGES[0]), "Pillow image"),
        (IMAGES[0], "image of shape"),
    ],
)
def test_one_image_is_not_a_list_of_images(model: Any, image: Any, kind: str) -> None:
    for use in (model.predict, model.predict_proba, model.answer, model.predict_top_k):
        with pytest.raises(TypeError, match=f"got one ({kind}).*: put it into a list"):
            use(image)


@pytest.mark.parametrize("k", [0, 3, "2"])
def test_no_more_classes_can_be_named_than_there_are(model: Any, k: Any) -> None:
    with pytest.raises(ValueError, match="k must be an integer from 1 to 2"):
        model.answer(IMAGES, k=k)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["pink"], "unknown class"),
        (["red", "green"], "no class"),
        ([], "at least one class"),
    ],
)
def test_only_some_of_the_known_classes_can_be_forgotten(
    model: Any, classes: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        model.forget(classes=classes)
    assert model.classes_.tolist() == ["green", "red"]


def test_an_empty_class_folder_is_warned_of(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "red", "green", n=2)
    (folder / "empty").mkdir()
    with pytest.warns(BadImageWarning, match="the folder has no images"):
        model = model_of().fit(folder)
    assert model.classes_.tolist() == ["green", "red"]
    assert len(model.report_.problems) == 1


class Flat(MeanColours):
    def transform(self, images: Any) -> Any:
        return np.zeros(len(images))


class Short(MeanColours):
    def transform(self, images: Any) -> Any:
        return np.zeros((len(images) - 1, 2))


@pytest.mark.parametrize("features", [Flat(), Short()])
def test_features_must_be_a_row_per_image(features: Any) -> None:
    with pytest.raises(ValueError, match="must return one row per image, 12"):
        ImageClassifier(features).fit(IMAGES, LABELS)


def test_pictures_of_one_pixel_are_pictures(model: Any) -> None:
    assert model.predict([picture("red", 0)[:1, :1]]).tolist() == ["red"]
