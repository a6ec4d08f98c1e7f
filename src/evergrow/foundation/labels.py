"""The growing list of classes.

Classes are sorted within one call and appended across calls, so a class never changes its
column: column k means one class for the life of the model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.foreign_arrays import from_other_library
from evergrow.foundation.formatting import list_names, natural_order, suggest

# The new column of a class that is removed.
GONE = -1

_FAMILIES: dict[str, tuple[type, ...]] = {
    "numbers": (bool, int, float, np.bool_, np.integer, np.floating),
    "strings": (str, np.str_),
    "bytes": (bytes, np.bytes_),
}


# As Python writes integers: 07 and 7 are two folder names but one number.
_WHOLE = re.compile("0|-?[1-9][0-9]*")


@runtime_checkable
class NumberedLabels(Protocol):
    """Labels stored as indices into a list of classes, none missing."""

    codes: npt.NDArray[np.int32]
    classes: npt.NDArray[Any]


def check_label_types(y: object) -> None:
    """Raise an ``InvalidTypeError`` if labels mix strings and numbers, or some are missing.

    NumPy would silently convert ``[1, "cat"]`` to strings; the number 1 and the string "1" would
    then be one class.
    """
    values: Any = from_other_library(y)
    values = getattr(values, "to_numpy", lambda: values)()
    if isinstance(values, np.ndarray):
        if values.dtype != object:
            return
        values = values.ravel()
    elif not isinstance(values, (list, tuple)):
        return
    kinds = {type(value) for value in values}
    found = {_family_of(kind) for kind in kinds}
    if len(found) > 1 or found == {None}:
        names = sorted(kind.__name__ for kind in kinds)
        raise InvalidTypeError(
            f"labels must be all strings or all numbers, none missing; got {' and '.join(names)}"
        )


def as_classes(classes: object) -> npt.NDArray[Any]:
    """Convert a list of classes to an array; None is an empty list.

    >>> as_classes("cat"), as_classes([2, 1])
    (array(['cat'], dtype='<U3'), array([2, 1]))
    """
    check_label_types(classes)
    found = np.atleast_1d(np.asarray([] if classes is None else classes))
    # A set or a generator is one object to NumPy.
    check_label_types(found)
    if found.ndim != 1:
        raise InvalidInputError(f"classes must be a flat list, got {found.ndim} dimensions")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise InvalidInputError("classes must not be NaN or infinite")
    return found


def _family_of(kind: type) -> str | None:
    return next((name for name, types in _FAMILIES.items() if issubclass(kind, types)), None)


def _check_exact(classes: npt.NDArray[Any], names: list[Any]) -> None:
    # Two classes must never become one: 2**60 and 2**60 + 1 are the same floating point number.
    if classes.tolist() != names:
        raise InvalidInputError(
            f"the classes cannot be stored exactly as {classes.dtype}: use labels of one type"
        )


def describe_unknown(unknown: Sequence[Any], known: Sequence[Any]) -> str:
    """Return the message for classes that a model does not know, with similar names that it knows.

    >>> describe_unknown(["sunflwer"], ["rose", "sunflower"])
    "unknown class 'sunflwer': did you mean 'sunflower'? The model knows 'rose', 'sunflower'"
    """
    noun = "class" if len(unknown) == 1 else "classes"
    hint = suggest(unknown[0], known)
    between = f": {hint} The" if hint else "; the"
    known_names = list_names(sorted(known, key=natural_order))
    return f"unknown {noun} {list_names(unknown)}{between} model knows {known_names}"


def _family(dtype: np.dtype[Any]) -> str:
    return "strings" if dtype.kind in "UOT" else "numbers"


def _distinct(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The distinct labels, sorted, and the index of each label among them."""
    if isinstance(y, NumberedLabels):
        # An array of names would need many times the memory of the indices.
        present, inverse = _unique(y.codes)
        classes, place = _unique(y.classes[present])
        return classes, place[inverse]
    return _unique(y)


def _unique(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Distinct values, sorted, and the index of each; without sorting where numbers are small.

    >>> _unique(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    if values.dtype.kind in "iu" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * values.size and low > -(2**62) and high < 2**62:
            offsets = values.reshape(-1).astype(np.int64) - low
            present = np.bincount(offsets) > 0
            found = (np.flatnonzero(present) + low).astype(values.dtype)
            return found, (np.cumsum(present) - 1)[offsets]
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct, inverse.reshape(-1)


def _joined(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    joined = np.concatenate([first, second])
    names = first.tolist() + second.tolist()
    if joined.dtype.kind == "f" and first.dtype.kind in "iu" and second.dtype.kind in "iu":
        # NumPy joins uint64 and int64 as floating point numbers even where integers suffice.
        if max(names) < 2**63:
            joined = np.array(names, dtype=np.int64)
        elif min(names) >= 0:
            joined = np.array(names, dtype=np.uint64)
    _check_exact(joined, names)
    return joined


@dataclass(frozen=True)
class ClassList:
    """The classes known to a model, in the order of their columns.

    Examples
    --------
    >>> known, codes = ClassList.of(np.array(["dog", "cat", "dog"]))
    >>> known.classes, codes
    (array(['cat', 'dog'], dtype='<U3'), array([1, 0, 1], dtype=int32))
    >>> grown, codes = known.extend(np.array(["bird", "dog"]))
    >>> grown.classes, codes
    (array(['cat', 'dog', 'bird'], dtype='<U4'), array([2, 1], dtype=int32))
    """

    classes: npt.NDArray[Any]

    def __post_init__(self) -> None:
        """Make the list read-only: estimators return it to callers."""
        self.classes.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle through the constructor, which makes the list read-only."""
        return (ClassList, (self.classes,))

    @cached_property
    def _column_of(self) -> dict[Any, int]:
        return {label: k for k, label in enumerate(self.classes.tolist())}

    def __len__(self) -> int:
        """Count the classes."""
        return len(self.classes)

    @classmethod
    def of(cls, y: npt.NDArray[Any]) -> tuple[ClassList, npt.NDArray[np.int32]]:
        """Return the list of the classes of ``y`` and the column of each label."""
        classes, codes = _distinct(y)
        if classes.dtype.kind == "U":  # as wide as its longest, whatever y was
            classes = np.array(classes.tolist())
        return cls(classes), codes.astype(np.int32)

    def extend_with(
        self, y: npt.NDArray[Any], classes: npt.NDArray[Any]
    ) -> tuple[ClassList, npt.NDArray[np.int32]]:
        """Append the classes of ``y`` and those listed, sorted together; return a column per label.

        >>> known, _ = ClassList.of(np.array(["m"]))
        >>> grown, codes = known.extend_with(np.array(["c", "m"]), np.array(["a", "z"]))
        >>> grown.classes.tolist(), codes.tolist()
        (['m', 'a', 'c', 'z'], [2, 0])
        """
        if not len(classes):
            return self.extend(y)
        present, _ = ClassList.of(y)
        named, _ = present.extend(classes)
        grown, _ = self.extend(named.classes)
        return grown.extend(y)

    @classmethod
    def named(cls, names: list[Any], *, like: ClassList) -> ClassList:
        """Return a list of classes with these names, of the same type as another list.

        >>> known, _ = ClassList.of(np.array(["cat", "dog"]))
        >>> ClassList.named(["lion", "dog"], like=known).classes
        array(['lion', 'dog'], dtype='<U4')
        """
        check_label_types(names)
        names = [name.item() if isinstance(name, np.generic) else name for name in names]
        odd = [n for n in names if isinstance(n, float) and not (n.is_integer() or math.isnan(n))]
        if odd:
            raise InvalidInputError(f"classes must be integers or strings, got {odd[0]}")
        found = np.array(names, dtype=object if like.classes.dtype == object else None)
        if _family(found.dtype) != _family(like.classes.dtype):
            raise InvalidTypeError(
                f"classes must be {_family(like.classes.dtype)} like the known ones, "
                f"got {_family(found.dtype)}"
            )
        if found.dtype.kind in "biuf":
            found = found.astype(np.result_type(found.dtype, like.classes.dtype))
        _check_exact(found, names)
        return cls(found)

    def columns_of(self, names: list[Any]) -> list[int]:
        """Return the columns of classes; raise ``InvalidInputError`` for unknown ones."""
        column = self._column_of
        unknown = list(dict.fromkeys(name for name in names if name not in column))
        if unknown:
            raise InvalidInputError(describe_unknown(unknown, self.classes.tolist()))
        return [column[name] for name in names]

    @cached_property
    def column_by_text(self) -> dict[str, int]:
        """Columns by the text of classes, as in folder names and on the command line."""
        return {str(label): k for k, label in enumerate(self.classes.tolist())}

    def from_text(self, names: Sequence[str]) -> npt.NDArray[Any]:
        """Convert names to labels of the same type as the list.

        Folder names are strings, while classes may be numbers. An unknown integer is a new class;
        a name that is not a number is an error.

        >>> known, _ = ClassList.of(np.array([0, 7]))
        >>> known.from_text(["7", "12"])
        array([ 7, 12])
        """
        if _family(self.classes.dtype) == "strings":
            return np.array(names, dtype=np.str_)
        column = self.column_by_text
        distinct = dict.fromkeys(names)
        known = self.classes.tolist()
        whole = self.classes.dtype.kind in "iu"
        odd = [n for n in distinct if n not in column and not (whole and _WHOLE.fullmatch(n))]
        if odd:
            raise InvalidTypeError(
                f"the known classes are numbers, {list_names(known)}; names must be numbers too, "
                f"got {list_names(odd)}"
            )
        labels = {name: known[column[name]] if name in column else int(name) for name in distinct}
        return np.array([labels[name] for name in names])

    def without(self, columns: Sequence[int]) -> tuple[ClassList, list[int]]:
        """Return the list without some columns, and the new column of each old one or -1.

        >>> known, _ = ClassList.of(np.array(["ant", "cat", "dog"]))
        >>> left, place = known.without([1])
        >>> left.classes.tolist(), place
        (['ant', 'dog'], [0, -1, 1])
        """
        remaining = [k for k in range(len(self)) if k not in set(columns)]
        place = {k: i for i, k in enumerate(remaining)}
        return ClassList(self.classes[remaining]), [place.get(k, GONE) for k in range(len(self))]

    def renamed(self, names: Mapping[Any, Any]) -> tuple[ClassList, list[int]]:
        """Return the list with other names, and the new column of each old one.

        Classes that get the same name are merged into the first of their columns.

        >>> known, _ = ClassList.of(np.array(["ant", "cat", "dog"]))
        >>> changed, place = known.renamed({"dog": "ant", "cat": "lion"})
        >>> changed.classes.tolist(), place
        (['ant', 'lion'], [0, 1, 0])
        """
        if not isinstance(names, Mapping):
            raise InvalidTypeError(f"names must map old to new names, got {names!r}")
        self.columns_of(list(names))
        wanted = [names.get(label, label) for label in self.classes.tolist()]
        unique = list(dict.fromkeys(wanted))
        place = {label: k for k, label in enumerate(unique)}
        return ClassList.named(unique, like=self), [place[label] for label in wanted]

    def extend(self, y: npt.NDArray[Any]) -> tuple[ClassList, npt.NDArray[np.int32]]:
        """Append the new classes of ``y``; return the list and the column of each label."""
        if _family(y.dtype) != _family(self.classes.dtype):
            raise InvalidTypeError(
                f"labels must be {_family(self.classes.dtype)} like the known classes, "
                f"got {_family(y.dtype)}"
            )
        found, inverse = _distinct(y)
        new = [label not in self._column_of for label in found.tolist()]
        # If nothing is new, the same list, which has its columns cached.
        grown = ClassList(_joined(self.classes, found[new])) if any(new) else self
        column = grown._column_of
        codes = np.array([column[label] for label in found.tolist()], dtype=np.int32)
        return grown, codes[inverse]
