"""Reading images: one image, a stream of images, or all images into memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from evergrow.foundation.errors import BadImage, ImageError, InvalidTypeError
from evergrow.foundation.formatting import display_name
from evergrow.foundation.params import Integer, Nothing, Rule, check_parameters
from evergrow.foundation.progress import progress_bar
from evergrow.vision.images.decoder import array_to_rgb, decode_image, pillow_to_rgb, read_header
from evergrow.vision.images.parameters import JOBS, ON_ERROR, VERBOSE
from evergrow.vision.images.prefetch import prefetch
from evergrow.vision.images.results import ReadImages, read_or_skip, warn_about
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits, is_pillow, read_content

_SIDE: list[Rule] = [Nothing(), Integer(1)]
# Large enough that all of a JPEG is read, small enough that it is fast.
_CHECKED_SIDE = 64
# Channels of a colour image, without and with transparency.
_CHANNELS = (3, 4)

RGB = npt.NDArray[np.uint8]


def read_image(
    source: Any, *, limits: ReadLimits = DEFAULT_LIMITS, max_side: int | None = None
) -> RGB:
    """Read one image as 8-bit RGB.

    The formats JPEG, PNG, WebP, HEIC, AVIF, BMP, GIF, TIFF and PPM are recognised by content.
    The image is rotated upright by its EXIF orientation, transparent pixels are blended with white,
    16 bits per channel are scaled to 8, and of an animation the first frame is read.

    Parameters
    ----------
    source : path, bytes, binary file, Pillow image or ndarray
        The image. Arrays have the shape (height, width) or (height, width, channels) with 1, 3 or 4
        channels, and the type uint8, uint16, bool, or float in [0, 1].
    limits : ReadLimits
        The largest image to accept. Raise it for larger images, lower it for untrusted sources.
    max_side : int, default=None
        The size that the image will be reduced to later. A JPEG may then be decoded at a smaller
        size, with neither side shorter than this. None for full size.

    Returns
    -------
    image : ndarray of shape (height, width, 3)
        Red, green and blue, uint8.

    Raises
    ------
    evergrow.ImageError
        If the source is not a complete image of a supported format within the limits. The error
        names the source and the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import read_image
    >>> read_image(np.array([[True, False]]))[0].tolist()
    [[255, 255, 255], [0, 0, 0]]
    >>> read_image(b"no image")
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.ImageError: cannot read <8 bytes>: it is not an image of a known ...
    """
    return to_rgb(source, read_content(source, limits), limits=limits, max_side=max_side)


def to_rgb(source: object, content: Any, *, limits: ReadLimits, max_side: int | None) -> RGB:
    """Convert the content of a source to pixels; errors name the source."""
    try:
        if isinstance(content, bytes):
            return decode_image(content, limits, max_side).pixels
        if isinstance(content, np.ndarray):
            if content.ndim >= 2:
                limits.check_size(content.shape[1], content.shape[0])
            return array_to_rgb(content)
        return pillow_to_rgb(content, limits)
    except ValueError as error:
        raise ImageError(display_name(source), str(error)) from error


def check_size(source: object, content: bytes, limits: ReadLimits) -> None:
    """Raise an ``ImageError`` if an encoded image is too large, without decoding it."""
    try:
        header = read_header(content)
        limits.check_size(header.width, header.height)
    except ValueError as error:
        raise ImageError(display_name(source), str(error)) from error


def iterate_images(
    sources: Iterable[Any],
    *,
    on_error: str = "raise",
    limits: ReadLimits = DEFAULT_LIMITS,
    n_jobs: int | None = None,
    max_side: int | None = None,
) -> Iterator[tuple[int, RGB | BadImage]]:
    """Read images one at a time; threads decode the next ones in advance.

    At most a few images per thread are in memory at the same time, and sources are taken from an
    iterator only when they are needed. Closing the iterator stops the threads.

    Parameters
    ----------
    sources : iterable
        Images as in :func:`read_image`.
    on_error : {"raise", "skip"}, default="raise"
        What to do if an image cannot be read: raise an error, or yield a :class:`BadImage` in its
        place.
    limits : ReadLimits
        The largest image to accept.
    n_jobs : int, default=None
        Number of threads that decode: None is 1, -1 uses all processors.
    max_side : int, default=None
        As in :func:`read_image`.

    Yields
    ------
    index : int
        The index of the source, from 0.
    image : ndarray of shape (height, width, 3) or BadImage
        The image, or why it could not be read.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import iterate_images
    >>> sources = [np.zeros((2, 3)), b"text"]
    >>> for index, image in iterate_images(sources, on_error="skip"):
    ...     print(index, getattr(image, "shape", image))
    0 (2, 3, 3)
    1 <4 bytes>: it is not an image of a known format: JPEG, PNG, ...
    """
    given = {"on_error": on_error, "n_jobs": n_jobs, "max_side": max_side}
    check_parameters(given, {"on_error": ON_ERROR, "n_jobs": JOBS, "max_side": _SIDE})
    check_sources(sources)

    def read(item: tuple[int, Any]) -> tuple[int, RGB | BadImage]:
        index, source = item
        read_one = partial(read_image, source, limits=limits, max_side=max_side)
        return read_or_skip(read_one, index, on_error)

    return prefetch(read, enumerate(sources), effective_n_jobs(n_jobs))


def read_images(
    sources: Sequence[Any],
    *,
    on_error: str = "raise",
    limits: ReadLimits = DEFAULT_LIMITS,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> ReadImages:
    """Read all images into memory.

    Parameters
    ----------
    sources : sequence
        Images as in :func:`read_image`.
    on_error : {"raise", "skip"}, default="raise"
        What to do if an image cannot be read: raise an error, or skip it and warn.
    limits : ReadLimits
        The largest image to accept.
    n_jobs : int, default=None
        Number of threads that decode: None is 1, -1 uses all processors.
    verbose : int, default=0
        Show a progress bar if positive.

    Returns
    -------
    read : ReadImages
        The images, their indices among the sources, and the problems.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import read_images
    >>> read = read_images([np.zeros((2, 3)), np.ones((4, 4))])
    >>> [image.shape for image in read.images], read.kept, read.problems
    ([(2, 3, 3), (4, 4, 3)], array([0, 1]), ())
    """
    check_parameters({"verbose": verbose}, {"verbose": VERBOSE})
    images: list[RGB] = []
    kept: list[int] = []
    problems: list[BadImage] = []
    stream = iterate_images(sources, on_error=on_error, limits=limits, n_jobs=n_jobs)
    with progress_bar("Reading images", len(sources), verbose) as show:
        for index, image in stream:
            if isinstance(image, BadImage):
                problems.append(image)
            else:
                images.append(image)
                kept.append(index)
            if show is not None:
                show(index + 1)
    warn_about(problems)
    return ReadImages(images, np.array(kept, dtype=np.int64), tuple(problems))


def find_bad_images(sources: Iterable[Any], n_jobs: int | None = None) -> list[BadImage]:
    """The images that cannot be read; all of them are decoded to find out."""
    read = iterate_images(sources, on_error="skip", n_jobs=n_jobs, max_side=_CHECKED_SIDE)
    return [image for _, image in read if isinstance(image, BadImage)]


def check_is_list(sources: object) -> None:
    """Raise a ``TypeError`` for a single file or a number instead of a list."""
    if isinstance(sources, (str, os.PathLike)):
        raise InvalidTypeError(
            f"images must be a list of sources, got one {type(sources).__name__}: put it into a "
            "list; evergrow.vision.find_images lists the images of a folder"
        )
    is_one = isinstance(sources, (bytes, bytearray, memoryview)) or is_pillow(sources)
    if is_one or not isinstance(sources, Iterable):
        kind = "Pillow image" if is_pillow(sources) else type(sources).__name__
        got = f"one {kind}: put it into a list" if is_one else kind
        raise InvalidTypeError(f"images must be a list of sources, got {got}")


def check_sources(sources: object) -> None:
    """Raise a ``TypeError`` for a single image instead of a list of images."""
    check_is_list(sources)
    if not isinstance(sources, np.ndarray) or sources.dtype != np.uint8:
        return
    # Otherwise each row of its pixels would be read as a grey image of a few columns.
    if sources.ndim == 3 and sources.shape[2] in _CHANNELS:
        raise InvalidTypeError(
            f"images must be a list of sources, got one image of shape {sources.shape}: "
            "put it into a list"
        )
