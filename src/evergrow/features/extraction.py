"""What features were extracted from images, and from which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.features.many import BadImage

__all__ = ["Extraction"]


@dataclass(frozen=True)
class Extraction:
    """Features of the images that could be read, and the problems of the others.

    Attributes
    ----------
    features : ndarray of shape (n_kept, n_features) or RaggedArray
        A row, or a matrix, per image that was kept.
    kept : ndarray of shape (n_kept,)
        The place of each among the images given.
    problems : tuple of BadImage
        Those left out.
    """

    features: Any
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]
