"""Local features as an estimator, and the positions and sizes of their patches."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import BadImage, ImageError
from evergrow.foundation.errors import BadImageWarning
from evergrow.vision import DensePatches, LocalFeatures, RandomPatches
from tests.budget import budget
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


def test_boxes_are_in_pixels_of_the_image_as_given() -> None:
    image = np.zeros((200, 400, 3), np.uint8)
    features = LocalFeatures("hsl", patches=DensePatches(step=10, size=20), max_side=100)
    _, boxes = features.describe(image)
    assert boxes.dtype == np.float32
    assert boxes[0].tolist() == [0, 0, 80]
    assert boxes[-1].tolist() == [320, 120, 80]


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
        tmp_path / "features.evergrow", model_files.forge("parameters", lambda p: p | change)
    )


KINDS = [
    RandomPatches(40),
    RandomPatches(40, min_size=3, max_size=0.9),
    RandomPatches(40, min_size=5, max_size=200),
    DensePatches(),
    DensePatches(step=3, size=(7, 12)),
]


@pytest.mark.parametrize("patches", KINDS, ids=repr)
@settings(max_examples=budget(30))
@given(height=st.integers(1, 90), width=st.integers(1, 90), seed=st.integers(0, 99))
def test_patches_lie_inside_the_image(patches: Any, height: int, width: int, seed: int) -> None:
    boxes = patches.boxes((height, width), seed)
    assert boxes.dtype == np.int32
    assert len(boxes) > 0
    x, y, size = boxes.T
    assert (boxes[:, :2] >= 0).all()
    assert (size >= 1).all()
    assert (x + size <= width).all()
    assert (y + size <= height).all()


@pytest.mark.parametrize("patches", KINDS, ids=repr)
@settings(max_examples=budget(30))
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 99), st.integers(0, 10**6))
def test_centres_lie_on_the_mask(
    patches: Any, height: int, width: int, seed: int, pixel: int
) -> None:
    mask = np.random.default_rng(seed).random((height, width)) < 0.1
    mask.flat[pixel % mask.size] = True
    x, y, size = patches.boxes((height, width), seed, mask).T
    assert mask[y + size // 2, x + size // 2].all()
    assert (np.minimum(x, y) >= 0).all()
    assert ((x + size <= width) & (y + size <= height)).all()


def test_random_sizes_are_log_uniform() -> None:
    sizes = RandomPatches(40_000, min_size=16, max_size=64).boxes((100, 100), 0)[:, 2]
    assert (sizes.min(), sizes.max()) == (16, 64)
    for size in (20, 32, 50):
        assert abs((sizes < size).mean() - np.log(size / 16) / np.log(65 / 16)) < 0.01


def test_random_places_reach_every_pixel_evenly() -> None:
    boxes = RandomPatches(40_000, min_size=10, max_size=10).boxes((30, 20), 0)
    across, down = np.bincount(boxes[:, 0]), np.bincount(boxes[:, 1])
    assert (len(across), len(down)) == (11, 21)
    assert abs(across / 40_000 * 11 - 1).max() < 0.1
    assert abs(down / 40_000 * 21 - 1).max() < 0.15


def test_fewer_random_patches_are_the_first_of_more() -> None:
    many, few = (RandomPatches(n).boxes((80, 90), 5) for n in (50, 7))
    np.testing.assert_array_equal(many[:7], few)


@pytest.mark.parametrize(
    ("size", "shape", "boxes"),
    [
        (20, (7, 30), [[1, 0, 7], [11, 0, 7], [21, 0, 7]]),
        (20, (1, 1), [[0, 0, 1]]),
        (20, (25, 46), [[3, 2, 20], [13, 2, 20], [23, 2, 20]]),
        ((20, 30), (30, 30), [[0, 0, 20], [10, 0, 20], [0, 10, 20], [10, 10, 20], [0, 0, 30]]),
    ],
)
def test_every_size_has_a_grid_in_the_middle(size: Any, shape: Any, boxes: list[Any]) -> None:
    assert DensePatches(step=10, size=size).boxes(shape, 0).tolist() == boxes


def test_a_sample_of_the_grid_keeps_its_order() -> None:
    every = DensePatches(step=5).boxes((80, 90), 0).tolist()
    some = DensePatches(step=5).limited(30).boxes((80, 90), 3).tolist()
    assert len(some) == 30
    assert [box for box in every if box in some] == some
    assert DensePatches(step=5).limited(10**6).boxes((80, 90), 3).tolist() == every


@pytest.mark.parametrize("patches", [RandomPatches(), DensePatches()], ids=repr)
def test_an_empty_mask_is_refused(patches: Any) -> None:
    with pytest.raises(ValueError, match="the mask is empty"):
        patches.boxes((4, 5), 0, np.zeros((4, 5), dtype=bool))


@pytest.mark.parametrize("mask", [np.ones((5, 4), dtype=bool), np.ones((4, 5)), np.True_])
def test_a_wrong_mask_is_refused(mask: Any) -> None:
    with pytest.raises(ValueError, match=r"bool array of shape \(4, 5\), got"):
        RandomPatches().boxes((4, 5), 0, mask)


@pytest.mark.parametrize(
    ("patches", "message"),
    [
        (RandomPatches(0), "n must be an integer from 1"),
        (RandomPatches(min_size=0), "min_size must be"),
        (RandomPatches(max_size=1.5), "max_size must be a float in"),
        (RandomPatches(max_size=0), "max_size must be"),
        (RandomPatches(min_size=20, max_size=10), "max_size must be at least min_size, 20"),
        (DensePatches(step=0), "step must be"),
        (DensePatches(size=()), "at least one value"),
        (DensePatches(size=(3, 0.5)), "size must be an integer"),  # type: ignore[arg-type]
        (DensePatches(n=0), "n must be an integer"),
    ],
)
def test_wrong_choices_of_patches_are_named(patches: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        patches.boxes((50, 50), 0)


@pytest.mark.parametrize("patches", KINDS, ids=repr)
@pytest.mark.parametrize("shape", [(0, 100), (100, 0), (100,), (9, 9, 3), (9.5, 9)])
def test_an_image_without_pixels_is_refused(patches: Any, shape: Any) -> None:
    with pytest.raises(ValueError, match="shape must be a height and a width"):
        patches.boxes(shape, 0)
