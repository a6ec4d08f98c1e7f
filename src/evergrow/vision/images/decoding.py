"""Encoded images and Pillow images as 8-bit RGB, checked before they are decoded."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evergrow.vision.images.extras import vision_module
from evergrow.vision.images.pixels import over_white, rgb_of_array
from evergrow.vision.images.sources import ReadLimits

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "SUFFIXES",
    "ImageHeader",
    "UnknownFormatError",
    "check_encoded_size",
    "decode",
    "decode_with_size",
    "header_of",
    "rgb_of_pillow",
]

# Pillow's module for each format that is read, no others: every decoder is a way in. Pictures of
# phones (MPO) begin as JPEG and come through its module.
_PLUGINS = {
    "JPEG": "PIL.JpegImagePlugin",
    "PNG": "PIL.PngImagePlugin",
    "WEBP": "PIL.WebPImagePlugin",
    "BMP": "PIL.BmpImagePlugin",
    "GIF": "PIL.GifImagePlugin",
    "TIFF": "PIL.TiffImagePlugin",
    "PPM": "PIL.PpmImagePlugin",
}

# What these formats are called on the web; Pillow tells MPO from JPEG, others do not.
_MEDIA_TYPES = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "BMP": "image/bmp",
    "GIF": "image/gif",
    "TIFF": "image/tiff",
    "PPM": "image/x-portable-anymap",
}

# What files of these formats are called.
SUFFIXES = frozenset(
    f".{ending}"
    for endings in (
        ("jpg", "jpeg", "jpe", "jfif", "mpo"),
        ("png", "webp", "bmp", "gif", "tif", "tiff"),
        ("ppm", "pgm", "pbm", "pnm"),
    )
    for ending in endings
)

# What Pillow's openers raise for bytes of another format.
_NOT_THIS_FORMAT = (SyntaxError, IndexError, TypeError, KeyError, EOFError, struct.error)
# As many bytes as the openers look at to know their format.
_PREFIX_BYTES = 16
_ORIENTATION_TAG = 0x0112
# Orientations that lay an image on its side.
_ON_ITS_SIDE = (5, 6, 7, 8)


class UnknownFormatError(ValueError):
    """The bytes begin like no image of a format that is read."""


@dataclass(frozen=True)
class ImageHeader:
    """What an encoded image says of itself before anything is decoded."""

    format: str
    # As it lies in the file, whichever way the camera was held.
    width: int
    height: int

    @property
    def media_type(self) -> str:
        """What the format is called on the web."""
        return _MEDIA_TYPES[self.format]


def header_of(content: bytes) -> ImageHeader:
    """Format and size of an encoded image; a ``ValueError`` says why there is none."""
    try:
        with _opened(content) as image:
            return ImageHeader(image.format, *image.size)
    except UnknownFormatError:
        raise
    except Exception as error:
        raise ValueError(_why(error)) from error


def decode(content: bytes, limits: ReadLimits, max_side: int | None) -> npt.NDArray[np.uint8]:
    """Decode the first frame; a ``ValueError`` says why that is impossible.

    With ``max_side``, a JPEG may come out smaller by a power of two, neither side shorter than
    ``max_side`` unless it was before.
    """
    return decode_with_size(content, limits, max_side)[0]


def decode_with_size(
    content: bytes, limits: ReadLimits, max_side: int | None
) -> tuple[npt.NDArray[np.uint8], tuple[int, int]]:
    """Decode as :func:`decode` does; also width and height of the whole image as it is seen."""
    try:
        with _opened(content) as image:
            width, height = image.size
            limits.check_size(width, height)
            if max_side is not None and image.format in ("JPEG", "MPO"):
                image.draft(None, (max_side, max_side))
            pixels = _rgb(image)
            on_its_side = _orientation(image) in _ON_ITS_SIDE
            return pixels, (height, width) if on_its_side else (width, height)
    # Hostile bytes make decoders raise nearly anything; all of it means one thing here.
    except Exception as error:
        raise ValueError(_why(error)) from error


def check_encoded_size(content: bytes, limits: ReadLimits) -> None:
    """Raise a ``ValueError`` if the header tells of more pixels than allowed."""
    try:
        with _opened(content) as image:
            limits.check_size(*image.size)
    except Exception as error:
        raise ValueError(_why(error)) from error


def rgb_of_pillow(image: Any, limits: ReadLimits) -> npt.NDArray[np.uint8]:
    """A Pillow image as 8-bit RGB; a ``ValueError`` says why that is impossible."""
    try:
        limits.check_size(*image.size)
        return _rgb(image)
    except Exception as error:
        raise ValueError(_why(error)) from error


def _why(error: Exception) -> str:
    text = str(error)
    return text[:1].lower() + text[1:] if text else type(error).__name__


def _opened(content: bytes) -> Any:
    """The image with its header read, nothing decoded.

    ``Image.open`` does the same, then warns of many pixels according to a limit and to filters
    that the whole process shares. Here each call has a limit of its own, which is an error.
    """
    for name in _PLUGINS.values():
        vision_module(name)
    openers = vision_module("PIL.Image").OPEN
    prefix = content[:_PREFIX_BYTES]
    for name in _PLUGINS:
        opener, accepts = openers[name]
        accepted = accepts(prefix) if accepts else True
        if isinstance(accepted, str):
            # Pillow was built without this format, and says so.
            raise ValueError(accepted)  # noqa: TRY004
        if not accepted:
            continue
        try:
            return opener(io.BytesIO(content), "")
        except _NOT_THIS_FORMAT as error:
            raise ValueError(f"the {name} file is damaged: {_why_damaged(error)}") from error
    raise UnknownFormatError(f"it is no image of a known format: {', '.join(_PLUGINS)}")


def _why_damaged(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _rgb(image: Image) -> npt.NDArray[np.uint8]:
    image.load()
    pixels = _pixels(image)
    return np.ascontiguousarray(_upright(pixels, _orientation(image)))


def _pixels(image: Image) -> npt.NDArray[np.uint8]:
    # More than 8 bits: Pillow's own conversion would cut them off at 255.
    if image.mode.startswith(("I", "F")):
        return _deep_grey(image)
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        # Premultiplied modes convert to RGBA only.
        layers = np.asarray(image.convert("RGBA"))
        return over_white(layers[..., :3], layers[..., 3:])
    return np.array(image.convert("RGB"))


def _deep_grey(image: Image) -> npt.NDArray[np.uint8]:
    grey = np.asarray(image)
    if grey.dtype.kind in "iu":
        # Pillow hands out 16-bit grey in 32 bits for some formats; real 32 bits have no white.
        if grey.min() < 0 or grey.max() > np.iinfo(np.uint16).max:
            raise ValueError("its grey values need more than 16 bits")
        grey = grey.astype(np.uint16)
    pixels = rgb_of_array(grey)
    clear = image.info.get("transparency")
    if isinstance(clear, int):
        pixels[grey == clear] = 255
    return pixels


def _orientation(image: Image) -> int:
    try:
        found = image.getexif().get(_ORIENTATION_TAG, 1)
    # Damaged notes about an image are no reason to refuse its pixels.
    except Exception:  # noqa: BLE001
        return 1
    return found if isinstance(found, int) else 1


def _upright(pixels: npt.NDArray[np.uint8], orientation: int) -> npt.NDArray[np.uint8]:
    """Undo how the camera was held: where the first row and column of the file belong."""
    turned = pixels.swapaxes(0, 1)
    views = {
        2: pixels[:, ::-1],
        3: pixels[::-1, ::-1],
        4: pixels[::-1],
        5: turned,
        6: turned[:, ::-1],
        7: turned[::-1, ::-1],
        8: turned[::-1],
    }
    return views.get(orientation, pixels)
