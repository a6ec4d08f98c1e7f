"""The label of rejected examples, next to those of the known classes."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import ClassList


@dataclass(frozen=True)
class IsLabel:
    """Rule: a string or a finite number."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return isinstance(value, str) or (isinstance(value, numbers.Real) and math.isfinite(value))

    def __str__(self) -> str:
        """Describe the allowed values."""
        return "a string or a number"


def predicted_labels(
    labels: ClassList, unknown_label: str | float | None
) -> tuple[Any, npt.NDArray[Any]]:
    """Return the unknown label, and an array of all labels of a type that holds them exactly.

    >>> predicted_labels(ClassList.of(np.array([3, 5], dtype=np.uint8))[0], None)
    (-1, array([ 3,  5, -1], dtype=int16))
    """
    are_strings = labels.classes.dtype.kind in "UOT"
    unknown: Any = unknown_label
    if unknown is None:
        unknown = "unknown" if are_strings else -1
    if isinstance(unknown, str) != are_strings:
        kind = "a string" if are_strings else "a number"
        raise InvalidTypeError(f"unknown_label must be {kind} like the classes, got {unknown!r}")
    if unknown in labels.classes.tolist():
        raise InvalidInputError(
            f"unknown_label must differ from all classes, but there is a class {unknown!r}"
        )
    grown, _ = labels.extend(_smallest(unknown))
    return unknown, grown.classes


def _smallest(unknown: Any) -> npt.NDArray[Any]:
    # NumPy would use 64 bits for a Python integer, whatever the type of the classes.
    whole = isinstance(unknown, numbers.Integral) and not isinstance(unknown, (bool, np.bool_))
    return np.array([unknown], dtype=np.min_scalar_type(unknown) if whole else None)
