"""Preparation of an image for a network: crop, resize, normalise, and order the axes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Choice, Integer, Number, Rule, check_parameters
from evergrow.vision.images.sources import import_extra

_LARGEST = 1e6
# Larger than the input of any network: a file must not make us allocate more.
_MAX_SIDE = 8192

_INTERPOLATIONS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
# The axes of (height, width, channel) in the order of each layout.
_LAYOUTS = {"nchw": (2, 0, 1), "nhwc": (0, 1, 2)}
_CHANNELS = {"rgb": slice(None), "bgr": slice(None, None, -1)}
# Libraries that resize the whole image and then cut out its centre, at whole pixels: half of an odd
# margin is rounded to even, or down.
_WHOLE_PIXELS: dict[str, Callable[[float], int]] = {
    "torchvision": round,
    "transformers": math.floor,
}

_RULES: dict[str, list[Rule]] = {
    "resize": [Choice(("crop", "stretch", *_WHOLE_PIXELS))],
    "crop_share": [Number(0.0, 1.0, open_low=True)],
    "interpolation": [Choice(_INTERPOLATIONS)],
    "layout": [Choice(tuple(_LAYOUTS))],
    "channels": [Choice(tuple(_CHANNELS))],
}

# Parameters that are one value, or a list of this length.
_LIST_RULES: dict[str, tuple[Rule, int]] = {
    "size": (Integer(1, _MAX_SIDE), 2),
    "mean": (Number(-_LARGEST, _LARGEST), 3),
    "scale": (Number(0.0, _LARGEST, open_low=True), 3),
}

Triple = float | tuple[float, float, float]


@dataclass(frozen=True)
class Preprocessing:
    """How images are prepared for a network.

    Use the values that the network was trained with: wrong values raise no error, but give poor
    features. The defaults are those of most networks trained on ImageNet with PyTorch.

    Parameters
    ----------
    size : int or (int, int), default=224
        Side of the input, or its height and width.
    resize : {"crop", "stretch", "torchvision", "transformers"}, default="crop"
        How the image gets the size of the input:

        - ``"crop"`` cuts out the centre of the image, with the aspect ratio of the input, and
          resizes it;
        - ``"stretch"`` resizes the whole image and may distort it;
        - ``"torchvision"`` and ``"transformers"`` do the same as these libraries: they resize the
          image first and then cut out the centre, both in whole pixels.
    crop_share : float, default=0.875
        Size of the crop, as a share of the largest possible one. Ignored by ``"stretch"``.
    interpolation : {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"}, \
default="bilinear"
        The resampling filter. Reduced images are antialiased.
    mean : float or three floats, default=(123.675, 116.28, 103.53)
        Subtracted from the pixel values, which are from 0 to 255. Three values are for the channels
        in the order of `channels`.
    scale : float or three floats, default=(58.395, 57.12, 57.375)
        Pixel values are divided by this after the subtraction.
    layout : {"nchw", "nhwc"}, default="nchw"
        Whether the channels come before or after height and width.
    channels : {"rgb", "bgr"}, default="rgb"
        Order of the channels.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import Preprocessing
    >>> prepare = Preprocessing(size=2, mean=127, scale=128)
    >>> prepare(np.full((8, 6, 3), 255, np.uint8)).tolist()[0]
    [[1.0, 1.0], [1.0, 1.0]]
    """

    size: int | tuple[int, int] = 224
    resize: str = "crop"
    crop_share: float = 0.875
    interpolation: str = "bilinear"
    mean: Triple = (123.675, 116.28, 103.53)
    scale: Triple = (58.395, 57.12, 57.375)
    layout: str = "nchw"
    channels: str = "rgb"

    def __post_init__(self) -> None:
        check_parameters(vars(self), _RULES)
        for name, (rule, length) in _LIST_RULES.items():
            value = getattr(self, name)
            is_list = _is_list(value)
            entries = value if is_list else (value,)
            if len(entries) != (length if is_list else 1) or not all(
                rule.admits(one) for one in entries
            ):
                raise InvalidInputError(
                    f"{name} must be {rule}, or {length} of these, got {value!r}"
                )
            # JSON has lists, not tuples; equal values must have the same hash.
            object.__setattr__(self, name, tuple(value) if is_list else value)
        height, width = self.height_and_width
        if self.resize in _WHOLE_PIXELS and height != width:
            raise InvalidInputError(
                f"size must be one number if resize is {self.resize!r}, got {self.size!r}"
            )

    @classmethod
    def from_json(cls, values: object) -> Self:
        """Rebuild from :meth:`to_json`; a ``ValueError`` for anything else."""
        names = {one.name for one in dataclasses.fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise InvalidInputError(f"a preprocessing must have the entries {sorted(names)}")
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """The parameters as JSON values."""
        return {name: _to_json(value) for name, value in sorted(vars(self).items())}

    @property
    def height_and_width(self) -> tuple[int, int]:
        """Height and width of the input."""
        size: Any = self.size
        return (int(size[0]), int(size[1])) if _is_list(size) else (int(size), int(size))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one prepared image."""
        shape = (*self.height_and_width, 3)
        return tuple(shape[axis] for axis in _LAYOUTS[self.layout])

    @property
    def min_side(self) -> int | None:
        """An image may be decoded with sides no shorter than this; None for full size only."""
        if self.resize in _WHOLE_PIXELS:
            return None
        share = self.crop_share if self.resize == "crop" else 1.0
        return math.ceil(max(self.height_and_width) / share)

    def __call__(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Prepare one image from :func:`read_image` for the network; float32, in its layout."""
        return self.normalize(self.fit_to_input(image))

    def fit_to_input(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """First half of the preparation: crop and resize the image to the size of the input."""
        pillow = import_extra("PIL.Image")
        height, width = self.height_and_width
        found = pillow.fromarray(image)
        filter_ = pillow.Resampling[self.interpolation.upper()]
        left, top, right, bottom = self._box(image)
        if self.resize not in _WHOLE_PIXELS:
            small = found.resize((width, height), filter_, box=(left, top, right, bottom))
            return np.asarray(small)
        # Each side alone, in the order that Pillow has for the whole image: the first result is
        # rounded and clipped.
        sides = ["width", "height"]
        if can_be_vertical_first() and self._is_vertical_first(image):
            sides.reverse()
        for side in sides:
            if side == "width":
                box = (left, 0.0, right, found.height)
                found = found.resize((width, found.height), filter_, box=box)
            else:
                box = (0.0, top, found.width, bottom)
                found = found.resize((found.width, height), filter_, box=box)
        return np.asarray(found)

    def normalize(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Second half of the preparation: order the axes, subtract the mean, and scale."""
        axes = _LAYOUTS[self.layout]
        # Transposed before the conversion, while a value takes one byte.
        ordered = np.ascontiguousarray(pixels[..., _CHANNELS[self.channels]].transpose(axes))
        values = ordered.astype(np.float32)
        values -= self._per_channel(self.mean)
        values /= self._per_channel(self.scale)
        return values

    def _per_channel(self, numbers: Any) -> npt.NDArray[np.float32]:
        """One number, or three along the axis of the channels."""
        array = np.asarray(numbers, dtype=np.float32)
        return array.reshape(-1, 1, 1) if self.layout == "nchw" and array.ndim else array

    def _box(self, image: npt.NDArray[np.uint8]) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the crop."""
        height, width = image.shape[:2]
        if self.resize == "stretch":
            return (0.0, 0.0, float(width), float(height))
        if self.resize in _WHOLE_PIXELS:
            return self._whole_pixel_box(image)
        target_height, target_width = self.height_and_width
        unit = min(height / target_height, width / target_width) * self.crop_share
        cut_width, cut_height = unit * target_width, unit * target_height
        left, top = (width - cut_width) / 2, (height - cut_height) / 2
        # Rounding must not exceed the image.
        return (
            max(left, 0.0),
            max(top, 0.0),
            min(left + cut_width, float(width)),
            min(top + cut_height, float(height)),
        )

    def _whole_size(self, image: npt.NDArray[np.uint8]) -> tuple[int, int]:
        """Height and width of the resized image, of which the centre is cut out."""
        height, width = image.shape[:2]
        shorter = round(self.height_and_width[0] / self.crop_share)
        return int(shorter * height / min(height, width)), int(shorter * width / min(height, width))

    def _is_vertical_first(self, image: npt.NDArray[np.uint8]) -> bool:
        """Whether the height loses more than twice as many pixels as the width, and loses any."""
        new_height, new_width = self._whole_size(image)
        lost_height, lost_width = len(image) - new_height, int(image.shape[1]) - new_width
        return lost_height > max(0, 2 * lost_width)

    def _whole_pixel_box(self, image: npt.NDArray[np.uint8]) -> tuple[float, float, float, float]:
        """The part of an image that becomes the centre of its resized copy."""
        height, width = image.shape[:2]
        side, place = self.height_and_width[0], _WHOLE_PIXELS[self.resize]
        new_height, new_width = self._whole_size(image)
        top, left = place((new_height - side) / 2), place((new_width - side) / 2)
        return (
            left * width / new_width,
            top * height / new_height,
            min((left + side) * width / new_width, float(width)),
            min((top + side) * height / new_height, float(height)),
        )


@cache
def can_be_vertical_first() -> bool:
    """Whether the installed Pillow resizes some images along the height first."""
    pillow = import_extra("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (97, 23), dtype=np.uint8)
    image, filter_ = pillow.fromarray(pixels), pillow.Resampling.BILINEAR
    found, by_width, by_height = (
        np.asarray(one.resize((17, 19), filter_))
        for one in (image, image.resize((17, 97), filter_), image.resize((23, 19), filter_))
    )
    return bool((found == by_height).all() and not (found == by_width).all())


def _is_list(value: object) -> bool:
    return isinstance(value, (tuple, list))


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_to_json(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
