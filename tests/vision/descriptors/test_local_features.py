"""Local features as an estimator."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

import evergrow
from evergrow import BadImage, ImageError, ModelFileError
from evergrow.foundation.errors import BadImageWarning
from evergrow.storage.files import read_model, write_model
from evergrow.vision import DensePatches, LocalFeatures, RandomPatches

RANDOM = np.random.default_rng(0)
IMAGES = [
    RANDOM.integers(0, 256, (height, width, 3)).astype(np.uint8)
    for height, width in [(40, 60), (61, 33), (25, 25), (90, 31)]
]
NAMES = ["haar", "hsl", "sift"]
few = RandomPatches(12)


def png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_every_image_has_a_row_per_patch(name: str) -> None:
    features = LocalFeatures(name, patches=few)
    rows = features.fit(IMAGES).transform(IMAGES)
    assert rows.lengths.tolist() == [12] * 4
    assert rows.n_features == features.n_features_out_
    assert rows.values.dtype == np.float32
    np.testing.assert_array_equal(rows[2], features.describe(IMAGES[2])[0])


@pytest.mark.parametrize("name", NAMES)
def test_neither_order_nor_threads_nor_source_change_the_patches(name: str) -> None:
    plain = LocalFeatures(name, patches=few).transform(IMAGES)
    threads = LocalFeatures(name, patches=few, n_jobs=3)
    others = threads.transform([png(image) for image in reversed(IMAGES)])
    for first, second in zip(plain, reversed(list(others)), strict=True):
        np.testing.assert_array_equal(first, second)


def test_the_seed_and_the_pixels_decide() -> None:
    def boxes(image: np.ndarray, seed: Any) -> Any:
        return LocalFeatures(patches=few, random_state=seed).describe(image)[1].tolist()

    changed = IMAGES[0].copy()
    changed[0, 0, 0] ^= 1
    assert boxes(IMAGES[0], 1) == boxes(IMAGES[0].copy(), 1)
    assert boxes(IMAGES[0], 1) != boxes(IMAGES[0], 2)
    assert boxes(IMAGES[0], 1) != boxes(changed, 1)
    assert boxes(IMAGES[0], None) != boxes(IMAGES[0], None)
    seeded = [boxes(IMAGES[0], np.random.RandomState(4)) for _ in range(2)]
    assert seeded[0] == seeded[1]


def test_the_number_of_patches_can_be_limited() -> None:
    features = LocalFeatures(patches=few)
    rows, boxes = features.describe(IMAGES[0], n_patches=5)
    assert rows.shape == (5, 768)
    assert boxes.shape == (5, 3)
    grid = LocalFeatures(patches=DensePatches(step=2))
    assert [len(rows) for _, rows in grid.iterate(IMAGES, n_patches=7)] == [7] * 4


def test_boxes_are_in_pixels_of_the_image_as_given() -> None:
    image = np.zeros((200, 400, 3), np.uint8)
    features = LocalFeatures("hsl", patches=DensePatches(step=10, size=20), max_side=100)
    _, boxes = features.describe(image)
    assert boxes.dtype == np.float32
    assert boxes[0].tolist() == [0, 0, 80]
    assert boxes[-1].tolist() == [320, 120, 80]


def test_large_images_are_reduced_and_small_ones_unchanged() -> None:
    halves = np.repeat(np.repeat(IMAGES[0], 2, axis=0), 2, axis=1)
    features = LocalFeatures("hsl", patches=DensePatches(step=16, size=16), max_side=60)
    large, small = features.describe(halves)[0], features.describe(IMAGES[0])[0]
    assert large.shape == small.shape
    # Lightness only: hue changes much with little colour.
    differences = abs(large[:, 512:] - small[:, 512:]).mean()
    assert differences < 0.5 * abs(small[:, 512:] - small[::-1, 512:]).mean()


def test_patches_lie_on_the_object() -> None:
    image = np.zeros((50, 50, 3), np.uint8)
    mask = np.zeros((50, 50), dtype=bool)
    mask[10:40, 20:30] = True
    _, boxes = LocalFeatures(patches=RandomPatches(50, 4)).describe(image, mask=mask)
    x, y, size = boxes.astype(int).T
    assert mask[y + size // 2, x + size // 2].all()


def test_a_thin_mask_does_not_vanish_when_the_image_is_reduced() -> None:
    mask = np.zeros((400, 400), dtype=bool)
    mask[201, 203] = True
    features = LocalFeatures(patches=few, max_side=40)
    _, boxes = features.describe(np.zeros((400, 400, 3), np.uint8), mask=mask)
    centres = boxes[:, :2] + boxes[:, 2:] / 2
    assert abs(centres - [203, 201]).max() <= 10


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_images_come_in_order_and_few_are_read_ahead(n_jobs: int) -> None:
    read = []

    def sources() -> Any:
        for i in range(1000):
            read.append(i)
            yield IMAGES[i % 4]

    stream = LocalFeatures(patches=few, n_jobs=n_jobs).iterate(sources())
    assert [next(stream)[0] for _ in range(5)] == [0, 1, 2, 3, 4]
    assert len(read) < 30
    stream.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("evergrow-prefetch")]


def test_bad_images_and_masks_are_skipped_if_requested() -> None:
    images = [IMAGES[0], b"text", IMAGES[1], IMAGES[2]]
    masks = [None, None, np.zeros((61, 33), dtype=bool), np.ones((25, 25), dtype=bool)]
    features = LocalFeatures(patches=few)
    with pytest.warns(BadImageWarning, match="2 images were left out"):
        extraction = features.extract(images, masks=masks, on_error="skip")
    assert extraction.kept.tolist() == [0, 3]
    assert extraction.features.lengths.tolist() == [12, 12]
    assert [problem.index for problem in extraction.problems] == [1, 2]
    assert "the mask is empty" in extraction.problems[1].reason
    streamed = dict(features.iterate(images, masks=masks, on_error="skip"))
    assert isinstance(streamed[1], BadImage)


def test_a_bad_image_is_raised_by_default() -> None:
    with pytest.raises(ImageError, match="cannot read <4 bytes>"):
        LocalFeatures(patches=few).transform([IMAGES[0], b"text"])


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros((61, 33), dtype=bool), "mask of image 1, <array of shape .*>: the mask is empty"),
        (np.ones((33, 61), dtype=bool), r"image 1, .*: a mask must be a bool array of shape \(61"),
        (np.ones((61, 33)), r"image 1, .*: a mask must be a bool array .* got float64"),
    ],
)
def test_a_wrong_mask_is_raised_with_the_name_of_its_image(mask: Any, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        LocalFeatures(patches=few).extract(IMAGES[:2], masks=[None, mask])


def test_there_must_be_a_mask_per_image() -> None:
    with pytest.raises(ValueError, match="one mask per image, 4, got 1"):
        LocalFeatures(patches=few).extract(IMAGES, masks=[None])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (3, 2)])
def test_the_smallest_images_have_features(name: str, shape: tuple[int, int]) -> None:
    image = RANDOM.integers(0, 256, (*shape, 3)).astype(np.uint8)
    for patches in (few, DensePatches()):
        rows, boxes = LocalFeatures(name, patches=patches).describe(image)
        assert len(rows) == len(boxes) > 0
        assert np.isfinite(rows).all()
        assert (boxes[:, 2] == min(shape)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"descriptor": "lbp"},
            "descriptor must be one of .*'haar', 'hsl', 'sift'.* or a function",
        ),
        ({"descriptor": None}, "descriptor must be"),
        ({"patches": 5}, r"patches must be RandomPatches\(...\) or DensePatches\(...\), got 5"),
        ({"patches": RandomPatches(0)}, "n must be an integer from 1"),
        ({"max_side": 0}, "max_side must be None or an integer"),
        ({"random_state": -1}, "random_state must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"verbose": -1}, "verbose must be"),
    ],
)
def test_wrong_parameters_are_named(options: dict[str, Any], message: str) -> None:
    features = LocalFeatures(**options)
    for call in (features.fit, features.transform, features.iterate):
        with pytest.raises(ValueError, match=message):
            call(IMAGES)


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_a_wrong_number_of_patches_is_refused(n: Any) -> None:
    with pytest.raises(ValueError, match="n_patches must be"):
        LocalFeatures().describe(IMAGES[0], n_patches=n)


def test_a_wrong_way_to_take_errors_is_refused() -> None:
    with pytest.raises(ValueError, match="on_error must be one of"):
        LocalFeatures().iterate(IMAGES, on_error="ignore")


def test_one_image_is_not_a_list_of_images() -> None:
    with pytest.raises(TypeError, match="put it into a list"):
        LocalFeatures().transform("picture.jpg")


def mean_colour(patches: np.ndarray) -> np.ndarray:
    return patches.mean(axis=(1, 2))


def test_a_function_can_describe() -> None:
    features = LocalFeatures(mean_colour, patches=few, n_jobs=2)
    assert features.n_features_out_ == 3
    rows = features.transform(IMAGES)
    assert rows.n_features == 3
    assert 0.3 < rows.values.mean() < 0.7


def test_features_with_a_function_refuse_to_be_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a model file contains no functions"):
        LocalFeatures(mean_colour).save(tmp_path / "features.evergrow")


def test_copies_describe_the_same() -> None:
    features = LocalFeatures("sift", patches=few, random_state=3)
    expected = features.describe(IMAGES[0])[0]
    for other in (
        clone(features),
        copy.deepcopy(features),
        pickle.loads(pickle.dumps(features)),
    ):
        assert other.get_params() == features.get_params()
        np.testing.assert_array_equal(other.describe(IMAGES[0])[0], expected)


@pytest.mark.parametrize(
    "patches", [RandomPatches(np.int64(7), max_size=40), DensePatches(size=(8, 12), n=5)], ids=repr
)
def test_saved_features_describe_the_same(patches: Any, tmp_path: Path) -> None:
    features = LocalFeatures("hsl", patches=patches, max_side=50, random_state=3)
    features.save(tmp_path / "features.evergrow")
    loaded = evergrow.load(tmp_path / "features.evergrow")
    assert loaded.get_params() == features.get_params()
    np.testing.assert_array_equal(loaded.describe(IMAGES[3])[0], features.describe(IMAGES[3])[0])


@pytest.mark.parametrize(
    "change",
    [
        {"descriptor": "lbp"},
        {"descriptor": None},
        {"patches": {"kind": "os.system"}},
        {"patches": {"kind": ["RandomPatches"]}},
        {"patches": {"kind": "RandomPatches", "n": 0}},
        {"patches": {"kind": "RandomPatches", "speed": 1}},
        {"patches": {"kind": "DensePatches", "size": [3, "x"]}},
        {"patches": None},
        {"max_side": -1},
        {"speed": 1},
    ],
    ids=repr,
)
def test_a_hostile_file_with_a_valid_checksum_is_refused(
    change: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "features.evergrow"
    LocalFeatures().save(path)
    header, tensors = read_model(path)
    header["parameters"].update(change)
    write_model(path, header, tensors)
    with pytest.raises(ModelFileError):
        evergrow.load(path)


def test_progress_is_shown_if_requested(capsys: pytest.CaptureFixture[str]) -> None:
    LocalFeatures(patches=few, verbose=1).transform(IMAGES)
    assert "Describing images" in capsys.readouterr().err


def test_a_file_of_a_folder_is_read(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(png(IMAGES[0]))
    features = LocalFeatures(patches=few)
    np.testing.assert_array_equal(features.describe(path)[0], features.describe(IMAGES[0])[0])


def test_one_array_of_pixels_is_not_taken_for_a_list_of_images() -> None:
    with pytest.raises(TypeError, match="give a list of images"):
        LocalFeatures(patches=few).transform(IMAGES[0])
