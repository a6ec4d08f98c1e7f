"""What comes out of making features of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage

__all__ = ["Extraction"]


@dataclass(frozen=True)
class Extraction:
    """Features of images, and the images that have none.

    Attributes
    ----------
    features : ndarray of shape (n_kept, n_features), or RaggedArray of n_kept images
        One row, or one matrix, per image that was read.
    kept : ndarray of shape (n_kept,)
        The place of each of them among the images that were given: ``labels[kept]`` are theirs.
    problems : tuple of BadImage
        Those left out.
    """

    features: Any
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]
