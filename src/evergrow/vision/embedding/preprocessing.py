"""How an image becomes what a network expects: cut, resized, shifted, scaled and arranged."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.params import Choice, Integer, Number, Rule, check_parameters
from evergrow.vision.images.extras import vision_module

__all__ = ["Preprocessing"]

_LARGEST = 1e6
# Larger inputs than any network has; a file must not make us allocate more.
_MAX_SIDE = 8192

_INTERPOLATIONS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
# Where the three channels of (height, width, channel) go.
_LAYOUTS = {"nchw": (2, 0, 1), "nhwc": (0, 1, 2)}
_CHANNELS = {"rgb": slice(None), "bgr": slice(None, None, -1)}

_RULES: dict[str, list[Rule]] = {
    "resize": [Choice(("crop", "stretch"))],
    "crop_share": [Number(0.0, 1.0, open_low=True)],
    "interpolation": [Choice(_INTERPOLATIONS)],
    "layout": [Choice(tuple(_LAYOUTS))],
    "channels": [Choice(tuple(_CHANNELS))],
}

# One value or as many as stated.
_RULES_OF_LISTS: dict[str, tuple[Rule, int]] = {
    "size": (Integer(1, _MAX_SIDE), 2),
    "mean": (Number(-_LARGEST, _LARGEST), 3),
    "scale": (Number(0.0, _LARGEST, open_low=True), 3),
}

Triple = float | tuple[float, float, float]


@dataclass(frozen=True)
class Preprocessing:
    """What a network wants its images to be like; it is part of the network.

    Wrong values give no error but poor features: take them from where the network comes from. The
    defaults are those of most networks trained on ImageNet with PyTorch.

    Parameters
    ----------
    size : int or (int, int), default=224
        Side of the input, or its height and width.
    resize : {"crop", "stretch"}, default="crop"
        Cut the middle part of the input's proportions out of the image and resize that, or squeeze
        the whole image into the input. Cutting keeps shapes, squeezing keeps borders.
    crop_share : float, default=0.875
        How much of the largest possible part is cut out. Ignored by "stretch".
    interpolation : {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"}
        How pixels are mixed, "bilinear" by default; smaller images are averaged, not sampled.
    mean : float or three, default=(123.675, 116.28, 103.53)
        Subtracted from the values from 0 to 255, one for all channels or one each, in the order of
        ``channels``.
    scale : float or three, default=(58.395, 57.12, 57.375)
        What they are divided by then.
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
        for name, (rule, length) in _RULES_OF_LISTS.items():
            value = getattr(self, name)
            several = _is_list(value)
            entries = value if several else (value,)
            if len(entries) != (length if several else 1) or not all(
                rule.admits(one) for one in entries
            ):
                raise ValueError(f"{name} must be {rule}, or {length} of these, got {value!r}")
            # JSON has lists only, and what is equal must have the same hash.
            object.__setattr__(self, name, tuple(value) if several else value)

    @classmethod
    def from_plain(cls, values: object) -> Self:
        """From what :meth:`to_plain` gave; a ``ValueError`` for anything else."""
        names = {one.name for one in dataclasses.fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise ValueError(f"a preprocessing must have the entries {sorted(names)}")
        return cls(**values)

    def to_plain(self) -> dict[str, Any]:
        """Names and values, as JSON holds them."""
        plain = {name: _plain(value) for name, value in vars(self).items()}
        return dict(sorted(plain.items()))

    @property
    def height_and_width(self) -> tuple[int, int]:
        """Of the input."""
        size: Any = self.size
        return (int(size[0]), int(size[1])) if _is_list(size) else (int(size), int(size))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one prepared image."""
        whole = (*self.height_and_width, 3)
        return tuple(whole[axis] for axis in _LAYOUTS[self.layout])

    @property
    def needed_side(self) -> int:
        """An image with no shorter side loses nothing that the input could show."""
        share = self.crop_share if self.resize == "crop" else 1.0
        return math.ceil(max(self.height_and_width) / share)

    def __call__(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Prepare one image.

        Parameters
        ----------
        image : ndarray of shape (height, width, 3)
            As :func:`read_image` gives it.

        Returns
        -------
        prepared : ndarray of shape (3, height, width) or (height, width, 3)
            What the network takes, float32.
        """
        return self.values(self.fitted(image))

    def fitted(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The first half of preparing an image: its pixels at the size of the input."""
        pillow = vision_module("PIL.Image")
        height, width = self.height_and_width
        small = pillow.fromarray(image).resize(
            (width, height), pillow.Resampling[self.interpolation.upper()], box=self._box(image)
        )
        return np.asarray(small)

    def values(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """The second half: what the network takes, of what :meth:`fitted` gave."""
        axes = _LAYOUTS[self.layout]
        # Turned while they are small.
        turned = np.ascontiguousarray(pixels[..., _CHANNELS[self.channels]].transpose(axes))
        values = turned.astype(np.float32)
        values -= self._per_channel(self.mean)
        values /= self._per_channel(self.scale)
        return values

    def _per_channel(self, numbers: Any) -> npt.NDArray[np.float32]:
        """One number or three of them, in the axis of the channels."""
        array = np.asarray(numbers, dtype=np.float32)
        return array.reshape(-1, 1, 1) if self.layout == "nchw" and array.ndim else array

    def _box(self, image: npt.NDArray[np.uint8]) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the part that is resized."""
        height, width = image.shape[:2]
        if self.resize == "stretch":
            return (0.0, 0.0, float(width), float(height))
        target_height, target_width = self.height_and_width
        unit = min(height / target_height, width / target_width) * self.crop_share
        cut_width, cut_height = unit * target_width, unit * target_height
        left, top = (width - cut_width) / 2, (height - cut_height) / 2
        # Rounding must not lead outside the image.
        return (
            max(left, 0.0),
            max(top, 0.0),
            min(left + cut_width, float(width)),
            min(top + cut_height, float(height)),
        )


def _is_list(value: object) -> bool:
    return isinstance(value, (tuple, list))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
