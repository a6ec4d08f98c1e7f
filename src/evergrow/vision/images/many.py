"""Reading many images: in order, in threads, and with a word about those that cannot be read."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from evergrow.foundation.errors import BadImage, BadImageWarning, ImageError
from evergrow.foundation.params import Choice, Flag, Integer, Nothing, Rule, check_parameters
from evergrow.foundation.progress import progress_bar
from evergrow.vision.images.ahead import in_order_ahead
from evergrow.vision.images.reading import read_image
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits

__all__ = [
    "JOBS",
    "ON_ERROR",
    "ReadImages",
    "check_listed",
    "check_sources",
    "iterate_images",
    "read_images",
    "warn_of",
]

JOBS: list[Rule] = [Nothing(), Integer(-(1 << 16), -1), Integer(1, 1 << 16)]
ON_ERROR: list[Rule] = [Choice(("raise", "skip"))]
_SIDE: list[Rule] = [Nothing(), Integer(1)]
# Values per pixel of an image in colour, without and with transparency.
_CHANNELS = (3, 4)
# A warning names no more than this many images.
_NAMED = 5

RGB = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ReadImages:
    """Images that were read, and those that were not.

    Attributes
    ----------
    images : list of ndarray of shape (height, width, 3)
        The images, each of its own size.
    kept : ndarray of shape (n_images,)
        The place of each among the sources.
    problems : tuple of BadImage
        Those left out.
    """

    images: list[RGB]
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]


def iterate_images(
    sources: Iterable[Any],
    *,
    on_error: str = "raise",
    limits: ReadLimits = DEFAULT_LIMITS,
    n_jobs: int | None = None,
    max_side: int | None = None,
) -> Iterator[tuple[int, RGB | BadImage]]:
    """Read images one after the other, decoding ahead in threads.

    At most a few images per thread are in memory at a time, and sources are taken from an iterator
    only as they are needed. Closing the iterator stops the threads.

    Parameters
    ----------
    sources : iterable
        What :func:`read_image` takes.
    on_error : {"raise", "skip"}, default="raise"
        What to do about an image that cannot be read: raise an error, or give a
        :class:`BadImage` in its place.
    limits : ReadLimits
        How large each may be.
    n_jobs : int, default=None
        Threads that decode; None for one, -1 for one per processor.
    max_side : int, default=None
        As in :func:`read_image`.

    Yields
    ------
    index : int
        The place of the source, from 0.
    image : ndarray of shape (height, width, 3) or BadImage
        The image, or why there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import iterate_images
    >>> sources = [np.zeros((2, 3)), b"text"]
    >>> for index, image in iterate_images(sources, on_error="skip"):
    ...     print(index, getattr(image, "shape", image))
    0 (2, 3, 3)
    1 <4 bytes>: it is no image of a known format: JPEG, PNG, WEBP, BMP, GIF, TIFF, PPM
    """
    given = {"on_error": on_error, "n_jobs": n_jobs, "max_side": max_side}
    check_parameters(given, {"on_error": ON_ERROR, "n_jobs": JOBS, "max_side": _SIDE})
    check_sources(sources)

    def read(item: tuple[int, Any]) -> tuple[int, RGB | BadImage]:
        index, source = item
        try:
            return index, read_image(source, limits=limits, max_side=max_side)
        except ImageError as error:
            if on_error == "raise":
                raise
            return index, BadImage(index, error.source, error.reason)

    return in_order_ahead(read, enumerate(sources), effective_n_jobs(n_jobs))


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
        What :func:`read_image` takes.
    on_error : {"raise", "skip"}, default="raise"
        What to do about an image that cannot be read: raise an error, or leave it out and warn.
    limits : ReadLimits
        How large each may be.
    n_jobs : int, default=None
        Threads that decode; None for one, -1 for one per processor.
    verbose : int, default=0
        Show a progress bar when positive.

    Returns
    -------
    read : ReadImages
        The images, their places among the sources, and the problems.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import read_images
    >>> read = read_images([np.zeros((2, 3)), np.ones((4, 4))])
    >>> [image.shape for image in read.images], read.kept, read.problems
    ([(2, 3, 3), (4, 4, 3)], array([0, 1]), ())
    """
    check_parameters({"verbose": verbose}, {"verbose": [Integer(0), Flag()]})
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
    warn_of(problems)
    return ReadImages(images, np.array(kept, dtype=np.int64), tuple(problems))


def check_listed(sources: object) -> None:
    """Raise a ``TypeError`` for a single file or a number where several things are expected."""
    if isinstance(sources, (str, bytes, bytearray, memoryview, os.PathLike)):
        raise TypeError(
            f"images must be a list of sources, got one {type(sources).__name__}: "
            "put it into a list, or list the images of a folder with find_images"
        )
    if not isinstance(sources, Iterable):
        raise TypeError(f"images must be a list of sources, got {type(sources).__name__}")


def check_sources(sources: object) -> None:
    """Raise a ``TypeError`` for one image where several are expected."""
    check_listed(sources)
    if not isinstance(sources, np.ndarray) or sources.dtype != np.uint8:
        return
    # Else each row of its pixels would count as a grey image of a few columns.
    if sources.ndim == 3 and sources.shape[2] in _CHANNELS:
        raise TypeError(
            f"images must be a list of sources, got one image of shape {sources.shape}: "
            "give a list of images"
        )


def warn_of(problems: Sequence[BadImage], *, stacklevel: int = 3) -> None:
    """Warn once of all images that were left out."""
    if not problems:
        return
    named = "; ".join(str(problem) for problem in problems[:_NAMED])
    more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
    left_out = "1 image was" if len(problems) == 1 else f"{len(problems)} images were"
    warnings.warn(f"{left_out} left out: {named}{more}", BadImageWarning, stacklevel=stacklevel)
