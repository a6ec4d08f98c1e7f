"""What transforming images gives: a row for each that could be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.features.many import BadImage

__all__ = ["Extraction"]


@dataclass(frozen=True)
class Extraction:
    """Features of the images that could be read, and why there are none of the others."""

    features: Any
    kept: npt.NDArray[np.int64]
    problems: tuple[BadImage, ...]
