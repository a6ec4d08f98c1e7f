"""Local features as an estimator."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import BadImage, ImageError
from evergrow.foundation.errors import BadImageWarning
from evergrow.vision import DensePatches, LocalFeatures, RandomPatches
from tests.estimators import model_files
from tests.vision.images.drawn import encoded

RANDOM = np.random.default_rng(0)
IMAGES = [
    RANDOM.integers(0, 256, (height, width, 3)).astype(np.uint8)
    for height, width in [(40, 60), (61, 33), (25, 25), (90, 31)]
]
NAMES = ["haar", "hsl", "sift"]
few = RandomPatches(12)


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
    others = threads.transform([encoded(image) for image in reversed(IMAGES)])
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


PLAIN = LocalFeatures(patches=few)


def masked(mask: Any) -> Any:
    return lambda: PLAIN.extract(IMAGES[:2], masks=[None, mask])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PLAIN.transform([IMAGES[0], b"text"]), ImageError, "cannot read <4 bytes>"),
        (
            masked(np.zeros((61, 33), dtype=bool)),
            ImageError,
            "mask of image 1, <array of shape .*>: the mask is empty",
        ),
        (
            masked(np.ones((33, 61), dtype=bool)),
            ImageError,
            r"image 1, .*: a mask must be a bool array of shape \(61",
        ),
        (masked(np.ones((61, 33))), ImageError, "image 1, .*: a mask must be .* got float64"),
        (lambda: PLAIN.extract(IMAGES, masks=[None]), ValueError, "one mask per image, 4, got 1"),
        *(
            (lambda n=n: PLAIN.describe(IMAGES[0], n_patches=n), ValueError, "n_patches must be")
            for n in (0, -1, 2.5)
        ),
        (lambda: PLAIN.iterate(IMAGES, on_error="ignore"), ValueError, "on_error must be one of"),
        (lambda: PLAIN.transform("picture.jpg"), TypeError, "put it into a list"),
        (lambda: PLAIN.transform(IMAGES[0]), TypeError, "put it into a list"),
    ],
)
def test_wrong_calls_are_named(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


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


@pytest.mark.parametrize(
    "patches", [RandomPatches(np.int64(7), max_size=40), DensePatches(size=(8, 12), n=5)], ids=repr
)
def test_saved_features_describe_the_same(patches: Any, tmp_path: Path) -> None:
    features = LocalFeatures("hsl", patches=patches, max_side=50, random_state=3)
    loaded = model_files.reload(features, tmp_path)
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
    LocalFeatures().save(tmp_path / "features.evergrow")
    model_files.check_refused(
        tmp_path / "features.evergrow", model_files.edit_part("parameters", **change)
    )


def test_a_file_of_a_folder_is_read(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(encoded(IMAGES[0]))
    features = LocalFeatures(patches=few)
    np.testing.assert_array_equal(features.describe(path)[0], features.describe(IMAGES[0])[0])
