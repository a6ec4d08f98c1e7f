"""What a patch of an image looks like, as a vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.vision.images.extras import vision_module

__all__ = [
    "DESCRIPTORS",
    "LARGEST",
    "AnyFunction",
    "Descriptor",
    "checked_descriptors",
    "custom_descriptor",
]

RGB = npt.NDArray[np.uint8]
Boxes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.float32]

# Descriptors are at most as large, so that sums of their squares stay finite in single precision.
LARGEST = 1e15
# The core resamples every patch to as many cells along each side.
_SIDE = 16
# Patches of this size OpenCV describes on the image as it is.
_SIFT_SIDE = 16
# OpenCV's descriptor spans six times the size of a key point.
_SPAN = 6.0
# Its pyramid has three levels of blur per halving of the image, and one doubling at most.
_LEVELS = 3
_FIRST_OCTAVE = -1


@dataclass(frozen=True)
class Descriptor:
    """How patches become vectors, and how long those are."""

    n_features: int
    describe: Callable[[RGB, Boxes], Rows]


def _in_core(name: str) -> Callable[[RGB, Boxes], Rows]:
    def describe(image: RGB, boxes: Boxes) -> Rows:
        return _core.describe_patches(np.ascontiguousarray(image), boxes, name)

    return describe


def _pyramid_level(size: int) -> int:
    """The level of OpenCV's pyramid where a patch has about 16 pixels, as a key point names it.

    Blur and resolution then follow the size of the patch, as if it had been cut out and resampled,
    and a large patch costs no more than a small one.
    """
    steps = round(_LEVELS * float(np.log2(size / _SIFT_SIDE)))
    octave, layer = divmod(max(steps, _LEVELS * _FIRST_OCTAVE), _LEVELS)
    return (octave & 0xFF) | (layer << 8)


def _sift(image: RGB, boxes: Boxes) -> Rows:
    rows = np.empty((len(boxes), 128), np.float32)
    cv2 = vision_module("cv2")
    grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
    levels = {int(size): _pyramid_level(int(size)) for size in np.unique(boxes[:, 2])}
    doubled = np.array([levels[size] & 0x80 for size in boxes[:, 2].tolist()], dtype=np.bool_)
    # A small patch would have OpenCV double the image for all others of the call as well.
    for together in (np.flatnonzero(~doubled), np.flatnonzero(doubled)):
        if len(together):
            rows[together] = _sift_of_grey(cv2, grey, boxes[together], levels)
    # OpenCV scales to one length whatever there is, even rounding errors of its blur.
    sums, squares = cv2.integral2(grey, sdepth=cv2.CV_64F)
    rows[_is_plain(sums, squares, boxes)] = 0.0
    return rows


def _sift_of_grey(cv2: Any, grey: RGB, boxes: Boxes, levels: dict[int, int]) -> Rows:
    # To OpenCV, whole numbers are the middles of pixels; to a box, their edges.
    key_points = [
        cv2.KeyPoint(x + size / 2 - 0.5, y + size / 2 - 0.5, size / _SPAN, 0.0, 1.0, levels[size])
        for x, y, size in boxes.tolist()
    ]
    kept, rows = cv2.SIFT_create(nOctaveLayers=_LEVELS).compute(grey, key_points)
    if len(kept) != len(boxes):
        raise RuntimeError(f"OpenCV described {len(kept)} of {len(boxes)} patches")
    described: Rows = rows
    return described


def _is_plain(
    sums: npt.NDArray[np.float64], squares: npt.NDArray[np.float64], boxes: Boxes
) -> npt.NDArray[np.bool_]:
    """Tell which patches are of one grey: their variance is zero but for rounding."""
    x, y, size = boxes.T
    total, of_squares = (
        table[y + size, x + size] - table[y, x + size] - table[y + size, x] + table[y, x]
        for table in (sums, squares)
    )
    n_times_squares = of_squares * size.astype(np.float64) ** 2
    plain: npt.NDArray[np.bool_] = n_times_squares - total**2 <= 1e-12 * n_times_squares
    return plain


# The names that LocalFeatures takes.
DESCRIPTORS: dict[str, Descriptor] = {
    "haar": Descriptor(_SIDE * _SIDE * 3, _in_core("haar")),
    "hsl": Descriptor(_SIDE * _SIDE * 3, _in_core("hsl")),
    "sift": Descriptor(128, _sift),
}


class AnyFunction:
    """Something that can be called, as a rule for parameters."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return callable(value)

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a function"


def custom_descriptor(function: Callable[[Rows], Any]) -> Descriptor:
    """A descriptor from a function of patches of shape (n, 16, 16, 3), RGB in [0, 1]."""
    black = np.zeros((1, _SIDE, _SIDE, 3), np.float32)
    n_features = _row_per_patch(function(black), 1).shape[1]
    return Descriptor(n_features, partial(_describe_by, function))


def _describe_by(function: Callable[[Rows], Any], image: RGB, boxes: Boxes) -> Rows:
    patches = _core.describe_patches(np.ascontiguousarray(image), boxes, "rgb")
    return _row_per_patch(function(patches.reshape(-1, _SIDE, _SIDE, 3)), len(boxes))


def _row_per_patch(described: Any, n_patches: int) -> Rows:
    rows = np.asarray(described)
    if rows.ndim != 2 or len(rows) != n_patches or rows.dtype.kind not in "biuf":
        raise ValueError(
            f"descriptor must give a matrix of numbers with a row per patch, {n_patches}, "
            f"got {rows.dtype} of shape {rows.shape}"
        )
    return checked_descriptors(rows)


def checked_descriptors(rows: npt.NDArray[Any]) -> Rows:
    """Descriptors in single precision; a ``ValueError`` for what cannot be computed with."""
    # Comparisons are false for what is not a number.
    if rows.dtype.kind not in "biuf" or not ((rows >= -LARGEST) & (rows <= LARGEST)).all():
        raise ValueError(f"descriptors must be finite numbers of at most {LARGEST:g}")
    return rows.astype(np.float32, copy=False)
