"""Images that an image classifier has learnt before, known by their content."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evergrow import BadImageWarning, ImageClassifier
from tests.vision.classifier.pictures import (
    MeanColours,
    encode_png,
    folder_of,
    picture,
    pictures,
)

IMAGES = [encode_png(image) for image in pictures("red", "green", n=3)[0]]
LABELS = np.repeat(np.array(["red", "green"]), 3)
BLUE = [encode_png(image) for image in pictures("blue", n=2)[0]]


@pytest.fixture
def model() -> ImageClassifier:
    return ImageClassifier(MeanColours(), random_state=0).fit(IMAGES, LABELS)


def learn(model: ImageClassifier, images: Any, labels: Any) -> tuple[int, int]:
    """Numbers of images that were learnt, and that were known."""
    report = model.partial_fit(images, labels, skip_known=True).report_
    assert report is not None
    return report.n_images, report.n_known_images


def test_what_is_given_is_learnt_unless_known_images_are_skipped(model: ImageClassifier) -> None:
    assert model.partial_fit(IMAGES, LABELS).class_counts_.tolist() == [6, 6]
    expected = model.predict_proba(BLUE)
    assert learn(model, IMAGES, LABELS) == (0, 6)
    assert model.class_counts_.tolist() == [6, 6]
    np.testing.assert_array_equal(model.predict_proba(BLUE), expected)


def test_copies_in_a_class_count_and_are_reported(model: ImageClassifier) -> None:
    assert model.report_ is not None
    assert model.report_.n_copies == 0
    # Arrays are not compared, and a copy in another class is a contradiction.
    images = [BLUE[0], BLUE[0], BLUE[0], BLUE[1], *pictures("blue", n=1)[0] * 2]
    report = model.partial_fit(images, ["blue"] * 6, skip_known=True).report_
    assert report is not None
    assert (report.n_images, report.n_copies) == (6, 2)
    with pytest.warns(UserWarning, match="1 image learnt in two classes"):
        model.fit([*IMAGES, IMAGES[0]], [*LABELS, "green"])
    assert model.report_.n_copies == 0


def test_only_new_images_are_learnt(model: ImageClassifier) -> None:
    assert learn(model, [*IMAGES[:2], *BLUE], ["red", "red", "blue", "blue"]) == (2, 2)
    assert dict(zip(model.classes_.tolist(), model.class_counts_.tolist(), strict=True)) == {
        "green": 3,
        "red": 3,
        "blue": 2,
    }
    once = ImageClassifier(MeanColours(), random_state=0).fit(IMAGES, LABELS)
    once.partial_fit(BLUE, ["blue", "blue"])
    np.testing.assert_array_equal(model.predict_proba(IMAGES), once.predict_proba(IMAGES))


def test_an_image_of_another_class_is_left_out_and_named(model: ImageClassifier) -> None:
    with pytest.warns(BadImageWarning, match="1 image was left out: .*'red' has it already"):
        assert learn(model, [IMAGES[0], BLUE[0]], ["green", "blue"]) == (1, 0)
    assert model.report_ is not None
    (problem,) = model.report_.problems
    assert problem.index == 0
    assert problem.reason == "the class 'red' has it already, so 'green' does not get it"


def test_an_image_that_was_taught_as_two_classes_is_known_in_both(model: ImageClassifier) -> None:
    model.partial_fit(IMAGES[:1], ["green"])
    assert learn(model, [IMAGES[0], IMAGES[0]], ["red", "green"]) == (0, 2)


def test_an_image_given_in_two_classes_is_warned_of(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", "red", "green", n=2)
    (folder / "green" / "same.png").write_bytes((folder / "red" / "0.png").read_bytes())
    model = ImageClassifier(MeanColours(), random_state=0)
    text = "1 image learnt in two classes.*'.*0.png' is the same as '.*same.png'"
    with pytest.warns(UserWarning, match=text):
        model.fit(folder)
    assert model.class_counts_.tolist() == [3, 2]
    with pytest.warns(UserWarning, match="1 image learnt in two classes"):
        model.partial_fit([BLUE[0], BLUE[1], BLUE[0]], ["blue", "blue", "navy"], skip_known=True)


def test_files_bytes_and_open_files_with_one_content_are_one_image(
    model: ImageClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(IMAGES[0])
    with path.open("rb") as file:
        assert learn(model, [path, str(path), file], ["red"] * 3) == (0, 3)


def test_arrays_and_pillow_images_are_always_new(model: ImageClassifier) -> None:
    images = [picture("blue", 0), Image.fromarray(picture("blue", 1))]
    for _ in range(2):
        assert learn(model, images, ["blue", "blue"]) == (2, 0)


def test_a_forgotten_class_can_be_learnt_again(model: ImageClassifier) -> None:
    model.forget(classes=["green"])
    assert learn(model, IMAGES, LABELS) == (3, 3)
    assert model.class_counts_.tolist() == [3, 3]


def test_renamed_and_merged_classes_keep_their_images(model: ImageClassifier) -> None:
    model.partial_fit(IMAGES[:1], ["green"])
    model.rename_classes({"red": "colour", "green": "colour"})
    assert learn(model, IMAGES, ["colour"] * 6) == (0, 6)
    with pytest.warns(BadImageWarning, match="'colour' has it already"):
        assert learn(model, IMAGES[:1], ["red"]) == (0, 0)


def test_an_image_that_was_skipped_as_unreadable_is_not_known(model: ImageClassifier) -> None:
    model.set_params(on_error="skip")
    images, labels = [b"no image", BLUE[0]], ["blue", "blue"]
    for expected in ((1, 0), (0, 1)):
        with pytest.warns(BadImageWarning, match="1 image was left out"):
            assert learn(model, images, labels) == expected
    assert model.class_counts_.sum() == 7


def test_a_copy_knows_the_same_images(model: ImageClassifier) -> None:
    assert learn(pickle.loads(pickle.dumps(model)), IMAGES, LABELS) == (0, 6)


def test_a_folder_is_learnt_once(tmp_path: Path) -> None:
    photos = folder_of(tmp_path, "red", "green", n=2)
    model = ImageClassifier(MeanColours(), random_state=0).partial_fit(photos, skip_known=True)
    assert learn(model, photos, None) == (0, 4)


def test_skip_known_is_true_or_false(model: ImageClassifier) -> None:
    with pytest.raises(ValueError, match="skip_known must be"):
        model.partial_fit(IMAGES, LABELS, skip_known="yes")  # type: ignore[arg-type]
