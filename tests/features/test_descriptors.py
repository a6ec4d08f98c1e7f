"""Descriptors of patches against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import pywt

from evergrow import _core
from tests.reference import patches as twin

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.integers(0, 256, (37, 45, 3)).astype(np.uint8)
# Larger than 16 pixels, smaller, one pixel, and up to the last row and column.
BOXES = np.array(
    [[0, 0, 37], [8, 5, 32], [3, 2, 16], [5, 1, 7], [44, 36, 1], [22, 14, 23]], np.int32
)
KINDS = ["rgb", "hsl", "haar"]


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


def test_wavelets_keep_the_length_of_a_descriptor() -> None:
    lengths = [
        np.linalg.norm(_core.describe_patches(IMAGE, BOXES, kind), axis=1) for kind in KINDS[1:]
    ]
    np.testing.assert_allclose(*lengths, rtol=1e-6)


def test_a_patch_of_16_pixels_is_taken_as_it_is() -> None:
    found = _core.describe_patches(IMAGE, np.array([[3, 2, 16]], np.int32), "rgb")
    expected = IMAGE[2:18, 3:19].astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(found.reshape(16, 16, 3), expected)


@pytest.mark.parametrize("size", [1, 5, 16, 19, 37])
def test_grey_has_no_hue_and_no_saturation_at_any_size(size: int) -> None:
    grey = np.repeat(IMAGE[:, :, :1], 3, axis=2)
    hsl = _core.describe_patches(grey, np.array([[2, 0, size]], np.int32), "hsl")
    hsl = hsl.reshape(3, 256)
    assert (hsl[:2] == 0).all()
    assert (hsl[2] > 0).any()


@pytest.mark.parametrize("size", [3, 16, 37])
def test_white_is_exactly_white(size: int) -> None:
    hsl = _core.describe_patches(
        np.full_like(IMAGE, 255), np.array([[1, 0, size]], np.int32), "hsl"
    )
    assert hsl.reshape(3, 256).tolist() == [[0.0] * 256, [0.0] * 256, [1.0] * 256]


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
    with pytest.raises(ValueError, match="no descriptor is called lbp"):
        _core.describe_patches(IMAGE, BOXES, "lbp")


def test_no_boxes_give_no_rows() -> None:
    assert _core.describe_patches(IMAGE, BOXES[:0], "haar").shape == (0, 768)
