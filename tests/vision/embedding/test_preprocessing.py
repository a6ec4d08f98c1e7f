"""Crops in whole pixels: those of torchvision and transformers, in bounded memory."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision import Preprocessing

SIDE = 32


def smooth(height: int, width: int) -> Any:
    coarse = np.random.default_rng(height * width).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def resize_then_crop(image: Any, shorter: int, library: str) -> Any:
    """What the libraries do, in their own steps."""
    height, width = image.shape[:2]
    size = tuple(int(shorter * side / min(height, width)) for side in (width, height))
    found = Image.fromarray(image).resize(size, Image.Resampling.BICUBIC)
    margins = [(side - SIDE) / 2 for side in size]
    left, top = (round(one) if library == "torchvision" else int(one) for one in margins)
    return np.asarray(found.crop((left, top, left + SIDE, top + SIDE)))


@settings(max_examples=60)
@given(
    height=st.integers(20, 300),
    width=st.integers(20, 300),
    shorter=st.integers(SIDE, 48),
    library=st.sampled_from(["torchvision", "transformers"]),
)
def test_the_pixels_are_those_of_the_library(
    height: int, width: int, shorter: int, library: str
) -> None:
    image = smooth(height, width)
    prepare = Preprocessing(
        size=SIDE, resize=library, crop_share=SIDE / shorter, interpolation="bicubic"
    )
    found = prepare.fit_to_input(image).astype(int)
    differences = np.abs(found - resize_then_crop(image, shorter, library))
    # Pillow has the ends of a part in single precision; each of two passes rounds.
    assert differences.max() <= 2
    assert (differences > 0).mean() < 0.05


@pytest.mark.parametrize("shape", [(1, 200_000, 3), (200_000, 1, 3), (1, 1, 3)])
def test_extreme_shapes_take_no_more_memory_than_the_image(shape: tuple[int, ...]) -> None:
    """The libraries would make an image of seven million columns."""
    start = time.monotonic()
    prepare = Preprocessing(size=SIDE, resize="torchvision")
    assert prepare.fit_to_input(np.zeros(shape, np.uint8)).shape == (SIDE, SIDE, 3)
    assert time.monotonic() - start < 5


def test_only_squares_are_cut_in_whole_pixels() -> None:
    with pytest.raises(InvalidInputError, match="size must be one number"):
        Preprocessing(size=(32, 48), resize="torchvision")


def test_images_are_decoded_in_full_size() -> None:
    """A smaller decoded image has other pixels than the library sees."""
    assert Preprocessing(resize="transformers").min_side is None
