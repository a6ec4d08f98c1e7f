"""Descriptors of patches compared with their definitions."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import pywt

from evergrow import _core
from evergrow.vision import RandomPatches
from evergrow.vision.descriptors.kinds import DESCRIPTORS, custom_descriptor
from tests.reference import patches as twin

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.integers(0, 256, (37, 45, 3)).astype(np.uint8)
# Larger than 16 pixels, smaller, one pixel, and up to the last row and column.
BOXES = np.array(
    [[0, 0, 37], [8, 5, 32], [3, 2, 16], [5, 1, 7], [44, 36, 1], [22, 14, 23]], np.int32
)
SIFT = DESCRIPTORS["sift"]
KINDS = ["rgb", "hsl", "haar"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_core_describes_patches_as_the_definition_does(kind: str) -> None:
    found = _core.describe_patches(IMAGE, BOXES, kind)
    expected = np.array([twin.describe(IMAGE, box, kind) for box in BOXES])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6)


def test_wavelets_are_those_of_pywavelets() -> None:
    hsl = _core.describe_patches(IMAGE, BOXES, "hsl").reshape(-1, 3, 16, 16)
    levels = pywt.wavedec2(hsl.astype(np.float64), "haar", level=4, axes=(2, 3))
    expected, _ = pywt.coeffs_to_array(levels, axes=(2, 3))
    found = _core.describe_patches(IMAGE, BOXES, "haar")
    np.testing.assert_allclose(found, expected.reshape(len(BOXES), -1), rtol=0, atol=3e-6)


@pytest.mark.parametrize("size", [1, 5, 16, 19, 37])
def test_grey_has_no_hue_and_no_saturation_at_any_size(size: int) -> None:
    grey = np.repeat(IMAGE[:, :, :1], 3, axis=2)
    hsl = _core.describe_patches(grey, np.array([[2, 0, size]], np.int32), "hsl")
    hsl = hsl.reshape(3, 256)
    assert (hsl[:2] == 0).all()
    assert (hsl[2] > 0).any()


def test_pure_colours_have_their_hues() -> None:
    colours = np.zeros((1, 6, 3), np.uint8)
    colours[0] = [[9, 0, 0], [9, 9, 0], [0, 9, 0], [0, 9, 9], [0, 0, 9], [9, 0, 9]]
    boxes = np.array([[x, 0, 1] for x in range(6)], np.int32)
    hue, saturation, _ = _core.describe_patches(colours, boxes, "hsl").reshape(6, 3, 256)[:, :, 0].T
    np.testing.assert_allclose(hue, np.arange(6) / 6, atol=1e-6)
    np.testing.assert_array_equal(saturation, 1)


def test_sums_beyond_32_bits_are_exact() -> None:
    # White, so that the sums grow fastest; the last patch lies where they are largest.
    large = np.full((3000, 3000, 3), 255, np.uint8)
    large[2999, 2999] = 0
    found = _core.describe_patches(large, np.array([[2984, 2984, 16]], np.int32), "rgb")
    assert found[0, -3:].tolist() == [0, 0, 0]
    assert (found[0, :-3] == 1).all()


@pytest.mark.parametrize("box", [[-1, 0, 4], [0, -1, 4], [0, 0, 0], [42, 0, 4], [0, 34, 4]])
def test_the_core_refuses_boxes_that_leave_the_image(box: list[int]) -> None:
    with pytest.raises(ValueError, match="box 1 leaves the image"):
        _core.describe_patches(IMAGE, np.array([[0, 0, 1], box], np.int32), "haar")


def test_the_core_refuses_unknown_names() -> None:
    with pytest.raises(ValueError, match="unknown descriptor 'lbp'"):
        _core.describe_patches(IMAGE, BOXES, "lbp")


def test_no_boxes_give_no_rows() -> None:
    assert _core.describe_patches(IMAGE, BOXES[:0], "haar").shape == (0, 768)


def photograph() -> np.ndarray:
    """Soft shapes of all sizes, as photographs have."""
    random = np.random.default_rng(3)
    image = np.zeros((240, 320, 3))
    for side in (4, 8, 16, 32, 64):
        coarse = random.random((-(-240 // side) + 2, -(-320 // side) + 2, 3)).astype(np.float32)
        image += side * cv2.resize(coarse, None, fx=side, fy=side)[:240, :320]
    image -= image.min()
    return (255 * image / image.max()).astype(np.uint8)


def similarity(first: np.ndarray, second: np.ndarray) -> float:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return float(np.median((first * second).sum(axis=1) / lengths))


@pytest.mark.parametrize("size", [16, 20, 32, 45, 64, 100])
def test_sift_of_a_patch_is_that_of_the_patch_resampled_to_16_pixels(size: int) -> None:
    image = photograph()
    places = np.random.default_rng(size).integers(0, (240 - size, 320 - size), (12, 2))
    found, expected = [], []
    for y, x in places.tolist():
        found.append(SIFT.describe(image, np.array([[x, y, size]], np.int32))[0])
        # The surroundings come along: blur reaches across the edge of a patch.
        top, left = max(0, y - size), max(0, x - size)
        around = image[top : y + 2 * size, left : x + 2 * size]
        shape = [round(side * 16 / size) for side in around.shape[1::-1]]
        small = cv2.resize(around, shape, interpolation=cv2.INTER_AREA)
        at = [round((x - left) * 16 / size), round((y - top) * 16 / size), 16]
        expected.append(SIFT.describe(small, np.array([at], np.int32))[0])
    assert similarity(np.array(found), np.array(expected)) > 0.93


def test_sift_distinguishes_an_edge_from_its_mirror_image() -> None:
    edge = np.zeros((32, 32, 3), np.uint8)
    edge[:, 16:] = 200
    box = np.array([[8, 8, 16]], np.int32)
    rows = [SIFT.describe(np.ascontiguousarray(image), box) for image in (edge, edge[:, ::-1])]
    assert rows[0].shape == (1, 128)
    assert similarity(*rows) < 0.5


def test_sift_of_a_patch_does_not_depend_on_other_patches() -> None:
    image = photograph()
    boxes = RandomPatches(200, min_size=4, max_size=1.0).boxes((240, 320), 0)
    boxes[3] = boxes[1]
    rows = SIFT.describe(image, boxes)
    np.testing.assert_array_equal(rows[1], rows[3])
    alone = np.concatenate([SIFT.describe(image, box[None]) for box in boxes[:20]])
    np.testing.assert_array_equal(rows[:20], alone)


def test_sift_of_a_patch_of_one_grey_is_zero() -> None:
    image = photograph()
    image[100:160, 100:160] = 93
    boxes = np.array([[100, 100, 60], [110, 103, 17], [99, 100, 60]], np.int32)
    assert SIFT.describe(image, boxes).any(axis=1).tolist() == [False, False, True]


def test_a_function_sees_patches_as_they_are() -> None:
    seen = []

    def mean_colour(patches: np.ndarray) -> np.ndarray:
        seen.append(patches)
        return patches.mean(axis=(1, 2))

    descriptor = custom_descriptor(mean_colour)
    rows = descriptor.describe(IMAGE, BOXES)
    assert descriptor.n_features == 3
    assert rows.dtype == np.float32
    assert seen[-1].shape == (len(BOXES), 16, 16, 3)
    expected = IMAGE[5:37, 8:40].mean(axis=(0, 1)) / 255
    np.testing.assert_allclose(rows[1], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda patches: patches,
        lambda patches: np.zeros((len(patches) + 1, 2)),
        lambda patches: [["a"]] * len(patches),
        lambda patches: None,
    ],
)
def test_a_function_must_return_a_matrix(wrong: Any) -> None:
    with pytest.raises(ValueError, match="descriptor must return a matrix of numbers"):
        custom_descriptor(wrong)


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e300, np.iinfo(np.int64).min])
def test_a_function_that_gives_numbers_beyond_use_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="descriptors must be finite numbers of at most"):
        custom_descriptor(lambda patches: np.full((len(patches), 2), value))
