"""Pixels of any usual kind as 8-bit RGB."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["over_white", "rgb_of_array"]

_WHITE = 255


def rgb_of_array(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """A new 8-bit RGB image of grey, RGB or RGBA pixels; a ``ValueError`` for anything else.

    >>> rgb_of_array(np.array([[0.0, 1.0]])).tolist()
    [[[0, 0, 0], [255, 255, 255]]]
    """
    shape = array.shape
    if array.ndim not in (2, 3) or (array.ndim == 3 and shape[2] not in (1, 3, 4)):
        raise ValueError(
            "an array must have the shape (height, width), or (height, width, channels) with "
            f"1, 3 or 4 channels, got {shape}"
        )
    pixels = _as_bytes(array.reshape(*shape[:2], -1))
    n_channels = pixels.shape[2]
    if n_channels == 4:
        return over_white(pixels[..., :3], pixels[..., 3:])
    # A copy even where nothing changes: the caller's pixels stay the caller's.
    return np.array(np.broadcast_to(pixels, (*shape[:2], 3)), order="C")


def over_white(
    colours: npt.NDArray[np.uint8], opacity: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Lay partly transparent pixels on white, rounding to nearest."""
    share = opacity.astype(np.uint16)
    mixed = (colours * share + _WHITE * (_WHITE - share) + _WHITE // 2) // _WHITE
    return mixed.astype(np.uint8)


def _as_bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if array.dtype == np.uint8:
        return array
    if array.dtype == bool:
        return array.astype(np.uint8) * np.uint8(_WHITE)
    if array.dtype == np.uint16:
        # 65535 / 257 = 255: the whole range is used, and nothing is cut off.
        return ((array.astype(np.uint32) + 128) // 257).astype(np.uint8)
    if array.dtype.kind == "f":
        return _from_float(array)
    raise ValueError(
        f"an array must be of type uint8, uint16, bool or float in [0, 1], got {array.dtype}"
    )


def _from_float(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    low, high = (array.min(), array.max()) if array.size else (0.0, 0.0)
    # Also false for NaN.
    if not (low >= 0 and high <= 1):
        raise ValueError(
            "an array of floats must lie in [0, 1], got values from "
            f"{low:g} to {high:g}: use uint8 for 0 to 255"
        )
    return np.rint(array.astype(np.float32) * _WHITE).astype(np.uint8)
