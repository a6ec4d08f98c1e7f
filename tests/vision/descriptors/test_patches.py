"""Positions and sizes of patches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow.vision import DensePatches, RandomPatches
from tests.budget import budget

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


def test_a_full_mask_leaves_the_sizes_as_they_are() -> None:
    plain = RandomPatches(500).boxes((80, 90), 0)
    masked = RandomPatches(500).boxes((80, 90), 0, np.ones((80, 90), dtype=bool))
    np.testing.assert_array_equal(plain[:, 2], masked[:, 2])


def test_a_size_that_fits_nowhere_on_the_mask_gives_way_to_the_largest_that_does() -> None:
    mask = np.zeros((60, 60), dtype=bool)
    mask[4, 30] = True
    boxes = RandomPatches(9, min_size=16).boxes((60, 60), 0, mask)
    assert boxes.tolist() == [[26, 0, 9]] * 9


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


def test_max_size_is_a_share_or_pixels() -> None:
    assert RandomPatches(2000, max_size=0.5).boxes((100, 300), 0)[:, 2].max() == 50
    assert RandomPatches(2000, max_size=70).boxes((100, 300), 0)[:, 2].max() == 70
    assert RandomPatches(2000, max_size=1.0).boxes((100, 300), 0)[:, 2].max() == 100


def test_fewer_random_patches_are_the_first_of_more() -> None:
    many, few = (RandomPatches(n).boxes((80, 90), 5) for n in (50, 7))
    np.testing.assert_array_equal(many[:7], few)


def test_small_images_have_random_patches_as_large_as_their_shorter_side() -> None:
    assert (RandomPatches(5).boxes((7, 30), 0)[:, 2] == 7).all()


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


def test_a_grid_may_miss_the_mask() -> None:
    mask = np.zeros((40, 40), dtype=bool)
    mask[0, 0] = True
    assert DensePatches().boxes((40, 40), 0, mask).shape == (0, 3)


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
def test_wrong_parameters_are_named(patches: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        patches.boxes((50, 50), 0)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_share_may_be_a_float_of_any_precision(kind: Any) -> None:
    sizes = RandomPatches(200, min_size=4, max_size=kind(0.5)).boxes((60, 80), 0)[:, 2]
    assert sizes.max() == 30


@pytest.mark.parametrize("patches", KINDS, ids=repr)
@pytest.mark.parametrize("shape", [(0, 100), (100, 0), (100,), (9, 9, 3), (9.5, 9)])
def test_an_image_without_pixels_is_refused(patches: Any, shape: Any) -> None:
    with pytest.raises(ValueError, match="shape must be a height and a width"):
        patches.boxes(shape, 0)
