"""The label that means "unknown", among those of the known classes."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.labels import ClassList

__all__ = ["IsLabel", "answers_of"]


@dataclass(frozen=True)
class IsLabel:
    """A string or a finite number."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, str) or (isinstance(value, numbers.Real) and math.isfinite(value))

    def __str__(self) -> str:
        """Say what is allowed."""
        return "a string or a number"


def answers_of(
    labels: ClassList, unknown_label: str | float | None
) -> tuple[Any, npt.NDArray[Any]]:
    """The unknown label, and all answers there are in an array that holds them exactly.

    >>> answers_of(ClassList.of(np.array([3, 5], dtype=np.uint8))[0], None)
    (-1, array([ 3,  5, -1], dtype=int16))
    """
    are_strings = labels.classes.dtype.kind in "UOT"
    unknown: Any = unknown_label
    if unknown is None:
        unknown = "unknown" if are_strings else -1
    if isinstance(unknown, str) != are_strings:
        kind = "a string" if are_strings else "a number"
        raise TypeError(f"unknown_label must be {kind} like the classes, got {unknown!r}")
    if unknown in labels.classes.tolist():
        raise ValueError(
            f"unknown_label must not be the name of a class, and there is a class {unknown!r}"
        )
    grown, _ = labels.extend(_smallest(unknown))
    return unknown, grown.classes


def _smallest(unknown: Any) -> npt.NDArray[Any]:
    # A Python integer is 64 bits wide to NumPy, whatever the classes are.
    whole = isinstance(unknown, numbers.Integral) and not isinstance(unknown, (bool, np.bool_))
    return np.array([unknown], dtype=np.min_scalar_type(unknown) if whole else None)
