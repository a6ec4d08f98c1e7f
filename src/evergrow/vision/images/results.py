"""Results for many images, some of which could not be read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage, BadImageWarning, ImageError

Result = TypeVar("Result")

# A warning names at most this many images.
_MAX_NAMED = 5


@dataclass(frozen=True)
class ReadImages:
    """Images that were read, and the problems with those that were not.

    Attributes
    ----------
    images : list of ndarray of shape (height, width, 3)
        The images, each in its own size.
    kept : ndarray of shape (n_images,)
        The index of each image among the sources.
    problems : tuple of BadImage
        The images that were skipped, and why.
    """

    images: list[npt.NDArray[np.uint8]]
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]


@dataclass(frozen=True)
class Extraction:
    """Features of images, and the problems with images that have none.

    Attributes
    ----------
    features : ndarray of shape (n_kept, n_features), or RaggedArray of n_kept images
        One row, or one matrix, per image that was read.
    kept : ndarray of shape (n_kept,)
        The index of each of these images in the input: ``labels[kept]`` are their labels.
    problems : tuple of BadImage
        The images that were skipped, and why.
    """

    features: Any
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]


def warn_about(problems: Sequence[BadImage], *, stacklevel: int = 3) -> None:
    """Issue one warning for all images that were left out."""
    if not problems:
        return
    named = "; ".join(str(problem) for problem in problems[:_MAX_NAMED])
    more = f"; and {len(problems) - _MAX_NAMED} more" if len(problems) > _MAX_NAMED else ""
    if any(problem.index is None for problem in problems):
        # Found in a search: folders and links too, of which it is not known how many images.
        text = f"skipped in the search for images: {named}{more}"
    else:
        left_out = "1 image was" if len(problems) == 1 else f"{len(problems)} images were"
        text = f"{left_out} left out: {named}{more}"
    warnings.warn(text, BadImageWarning, stacklevel=stacklevel)


def read_or_skip(
    read: Callable[[], Result], index: int, on_error: str
) -> tuple[int, Result | BadImage]:
    """The index of an image with its result, or with the reason if bad images are skipped."""
    try:
        return index, read()
    except ImageError as error:
        if on_error == "raise":
            raise
        return index, BadImage(index, error.source, error.reason)
