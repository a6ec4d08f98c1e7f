"""Patches of an image and their descriptors, as the definitions read: one cell at a time."""

from __future__ import annotations

import colorsys
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

SIDE = 16

Floats = npt.NDArray[np.float64]


def overlap(pixel: int, first: Fraction, last: Fraction) -> Fraction:
    """How much of a pixel, one wide, lies between two places."""
    return max(Fraction(0), min(Fraction(pixel + 1), last) - max(Fraction(pixel), first))


def shares(first: int, size: int, n_pixels: int) -> npt.NDArray[Any]:
    """What each pixel along one side counts in each of the 16 cells; the sum of a cell is 1."""
    width = Fraction(size, SIDE)
    return np.array(
        [
            [
                overlap(p, first + k * width, first + (k + 1) * width) / width
                for p in range(n_pixels)
            ]
            for k in range(SIDE)
        ]
    )


def resampled(image: npt.NDArray[np.uint8], box: npt.NDArray[np.int32]) -> Floats:
    """Mean colour of the cells of one patch in [0, 1], of shape (16, 16, 3)."""
    x, y, size = (int(value) for value in box)
    down, across = shares(y, size, image.shape[0]), shares(x, size, image.shape[1])
    exact = image.astype(int).astype(object)
    cells = [down @ exact[:, :, c] @ across.T / Fraction(255) for c in range(3)]
    return np.stack(cells, axis=-1).astype(np.float64)


def hsl(cells: Floats) -> Floats:
    """Hue, saturation and lightness in [0, 1], of shape (3, 16, 16)."""
    planes = np.empty((3, SIDE, SIDE))
    for i in range(SIDE):
        for j in range(SIDE):
            hue, lightness, saturation = colorsys.rgb_to_hls(*cells[i, j])
            planes[:, i, j] = hue, saturation, lightness
    return planes


def haar(plane: Floats) -> Floats:
    """The orthonormal Haar transform of a square plane, means to the top left, all levels."""
    side = len(plane)
    if side == 1:
        return plane
    first, second = plane[:, 0::2], plane[:, 1::2]
    along_rows = np.hstack([first + second, first - second]) / np.sqrt(2)
    first, second = along_rows[0::2], along_rows[1::2]
    both = np.vstack([first + second, first - second]) / np.sqrt(2)
    half = side // 2
    both[:half, :half] = haar(both[:half, :half])
    transformed: Floats = both
    return transformed


def describe(image: npt.NDArray[np.uint8], box: npt.NDArray[np.int32], descriptor: str) -> Floats:
    """The descriptor of one patch."""
    cells = resampled(image, box)
    if descriptor == "rgb":
        return cells.ravel()
    planes = hsl(cells)
    if descriptor == "hsl":
        return planes.ravel()
    return np.concatenate([haar(plane).ravel() for plane in planes])
