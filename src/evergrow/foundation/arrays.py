"""Types of arrays in annotations."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
"""An array of any type and shape."""
