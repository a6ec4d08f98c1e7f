"""Descriptors: how the patches of an image become vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.images.sources import import_extra

RGB = npt.NDArray[np.uint8]
Boxes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.float32]

# The largest value of a descriptor: sums of squares must stay finite in single precision.
MAX_VALUE = 1e15
# The core resamples every patch to this many cells per side.
_SIDE = 16
# OpenCV describes patches of this size at the original resolution.
_SIFT_SIDE = 16
# The descriptor of OpenCV spans six times the size of a key point.
_SPAN = 6.0
# Its pyramid has three levels of blur per octave; the first octave doubles the image.
_LEVELS = 3
_FIRST_OCTAVE = -1


@dataclass(frozen=True)
class Descriptor:
    """A function from patches to vectors, and the length of a vector."""

    n_features: int
    describe: Callable[[RGB, Boxes], Rows]


def _in_core(name: str) -> Callable[[RGB, Boxes], Rows]:
    def describe(image: RGB, boxes: Boxes) -> Rows:
        return _core.describe_patches(np.ascontiguousarray(image), boxes, name)

    return describe


def _pyramid_level(size: int) -> int:
    """The pyramid level at which a patch has about 16 pixels, in the encoding of a key point.

    Blur and resolution then depend on the size of the patch, as if it had been cut out and
    resampled, and a large patch takes no longer than a small one.
    """
    steps = round(_LEVELS * float(np.log2(size / _SIFT_SIDE)))
    octave, layer = divmod(max(steps, _LEVELS * _FIRST_OCTAVE), _LEVELS)
    return (octave & 0xFF) | (layer << 8)


def _describe_sift(image: RGB, boxes: Boxes) -> Rows:
    rows = np.empty((len(boxes), 128), np.float32)
    cv2 = import_extra("cv2")
    grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
    levels = {int(size): _pyramid_level(int(size)) for size in np.unique(boxes[:, 2])}
    doubled = np.array([levels[size] & 0x80 for size in boxes[:, 2].tolist()], dtype=np.bool_)
    # Separate calls, because one small patch makes OpenCV double the image for all of its call.
    for chosen in (np.flatnonzero(~doubled), np.flatnonzero(doubled)):
        if len(chosen):
            rows[chosen] = _sift_rows(cv2, grey, boxes[chosen], levels)
    # OpenCV normalises every descriptor, even if it only consists of rounding errors.
    sums, squares = cv2.integral2(grey, sdepth=cv2.CV_64F)
    rows[_is_uniform(sums, squares, boxes)] = 0.0
    return rows


def _sift_rows(cv2: Any, grey: RGB, boxes: Boxes, levels: dict[int, int]) -> Rows:
    # For OpenCV, integers are the centres of pixels; for boxes, their edges.
    key_points = [
        cv2.KeyPoint(x + size / 2 - 0.5, y + size / 2 - 0.5, size / _SPAN, 0.0, 1.0, levels[size])
        for x, y, size in boxes.tolist()
    ]
    kept, rows = cv2.SIFT_create(nOctaveLayers=_LEVELS).compute(grey, key_points)
    if len(kept) != len(boxes):
        raise RuntimeError(f"OpenCV described {len(kept)} of {len(boxes)} patches")
    return cast("Rows", rows)


def _is_uniform(
    sums: npt.NDArray[np.float64], squares: npt.NDArray[np.float64], boxes: Boxes
) -> npt.NDArray[np.bool_]:
    """Tell which patches have a single grey value: zero variance up to rounding."""
    x, y, size = boxes.T
    total, total_squares = (
        table[y + size, x + size] - table[y, x + size] - table[y + size, x] + table[y, x]
        for table in (sums, squares)
    )
    n_times_squares = total_squares * size.astype(np.float64) ** 2
    return np.asarray(n_times_squares - total**2 <= 1e-12 * n_times_squares)


# The values of ``LocalFeatures(descriptor=...)``.
DESCRIPTORS: dict[str, Descriptor] = {
    "haar": Descriptor(_SIDE * _SIDE * 3, _in_core("haar")),
    "hsl": Descriptor(_SIDE * _SIDE * 3, _in_core("hsl")),
    "sift": Descriptor(128, _describe_sift),
}


def custom_descriptor(function: Callable[[Rows], Any]) -> Descriptor:
    """Make a descriptor from a function of patches of shape (n, 16, 16, 3), RGB in [0, 1]."""
    black = np.zeros((1, _SIDE, _SIDE, 3), np.float32)
    n_features = _check_rows(function(black), 1).shape[1]
    return Descriptor(n_features, partial(_describe_custom, function))


def _describe_custom(function: Callable[[Rows], Any], image: RGB, boxes: Boxes) -> Rows:
    patches = _core.describe_patches(np.ascontiguousarray(image), boxes, "rgb")
    return _check_rows(function(patches.reshape(-1, _SIDE, _SIDE, 3)), len(boxes))


def _check_rows(described: Any, n_patches: int) -> Rows:
    rows = np.asarray(described)
    if rows.ndim != 2 or len(rows) != n_patches or rows.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"descriptor must return a matrix of numbers with one row per patch, {n_patches}, "
            f"got {rows.dtype} of shape {rows.shape}"
        )
    return check_descriptors(rows)


def check_descriptors(rows: npt.NDArray[Any]) -> Rows:
    """Return descriptors as float32; a ``ValueError`` for values that are invalid or too large."""
    # Comparisons are false for NaN.
    if rows.dtype.kind not in "biuf" or not ((rows >= -MAX_VALUE) & (rows <= MAX_VALUE)).all():
        raise InvalidInputError(f"descriptors must be finite numbers of at most {MAX_VALUE:g}")
    return rows.astype(np.float32, copy=False)
