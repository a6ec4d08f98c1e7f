"""Reading one image, whatever it comes from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ImageError
from evergrow.vision.images.decoding import check_encoded_size, decode, rgb_of_pillow
from evergrow.vision.images.pixels import rgb_of_array
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits, content_of, name_of

__all__ = ["check_size", "pixels_of", "read_image"]


def read_image(
    source: Any, *, limits: ReadLimits = DEFAULT_LIMITS, max_side: int | None = None
) -> npt.NDArray[np.uint8]:
    """Read one image as 8-bit RGB.

    JPEG, PNG, WebP, BMP, GIF, TIFF and PPM are read, by content and not by name. The image is
    turned as its camera says, transparent parts lie on white, 16 bits per channel are scaled to 8,
    and of an animation the first frame is taken.

    Parameters
    ----------
    source : path, bytes, binary file, Pillow image or ndarray
        Where the image comes from. Arrays have the shape (height, width) or (height, width,
        channels) with 1, 3 or 4 channels, and the type uint8, uint16, bool, or float in [0, 1].
    limits : ReadLimits
        How large it may be. Change it for larger images, or for less trusted sources.
    max_side : int, default=None
        The side of what will be made of the image: a JPEG may then be decoded smaller, neither
        side shorter than this. None for the full size.

    Returns
    -------
    image : ndarray of shape (height, width, 3)
        Red, green and blue, uint8.

    Raises
    ------
    evergrow.ImageError
        If there is no whole image of a known kind within the limits. It names source and reason.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import read_image
    >>> read_image(np.array([[True, False]]))[0].tolist()
    [[255, 255, 255], [0, 0, 0]]
    >>> read_image(b"no image")
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.ImageError: cannot read <8 bytes>: it is no image of a known ...
    """
    return pixels_of(source, content_of(source, limits), limits=limits, max_side=max_side)


def check_size(source: object, content: bytes, limits: ReadLimits) -> None:
    """Raise an ``ImageError`` if an encoded image is larger than allowed; nothing is decoded."""
    try:
        check_encoded_size(content, limits)
    except ValueError as error:
        raise ImageError(name_of(source), str(error)) from error


def pixels_of(
    source: object, content: Any, *, limits: ReadLimits, max_side: int | None
) -> npt.NDArray[np.uint8]:
    """The pixels of what a source was found to contain."""
    try:
        if isinstance(content, bytes):
            return decode(content, limits, max_side)
        if isinstance(content, np.ndarray):
            if content.ndim >= 2:
                limits.check_size(content.shape[1], content.shape[0])
            return rgb_of_array(content)
        return rgb_of_pillow(content, limits)
    except ValueError as error:
        raise ImageError(name_of(source), str(error)) from error
