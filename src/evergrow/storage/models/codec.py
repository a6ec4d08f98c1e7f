"""One codec for the values in model files: declared fields become a header and arrays, and back.

A value lists its fields in ``_stored``. An entry of the header is declared by the rules of its
values, as a parameter is; other fields are an :class:`Array`, a :class:`Nested`, a :class:`Model`
or :class:`ClassNames`. A value whose attributes are not what its file holds has ``stored_fields``,
which returns those that differ, and ``from_stored``, which makes the value from all fields. What no
field shows alone is tested by ``check_stored``, which raises an ``InvalidInputError``.

Files are untrusted, so every field is checked when it is read. Entries, whole numbers and what has
limits are checked when they are written too: sums grow, and no file is written that would be
refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Number, Rule
from evergrow.storage.models.header import (
    Build,
    Tensors,
    arrays_inside,
    class_list,
    classes_to_json,
)
from evergrow.storage.models.pipelines import to_file

# The most that anything is counted: sums of such counts fit into 64 bits, and doubles hold them.
MOST_COUNTED = 2**53
_LARGEST = float(np.finfo(np.float64).max)


def encode(value: Any) -> tuple[dict[str, Any], Tensors]:
    """Return the header and the arrays of a value; an error if they could not be read again."""
    content = Content({}, is_read=False)
    return _write("", value, content), content.arrays


def decode(kind: Any, header: Any, arrays: Tensors, build: Build | None = None) -> Any:
    """Rebuild a value from :func:`encode`; a ``ModelFileError`` that names what is wrong.

    ``build`` makes the models inside.
    """
    return _read("", kind, header, Content(arrays, build=build))


@dataclass(frozen=True)
class Content:
    """The arrays of a file that is read or written, and how large what they share is, by name."""

    arrays: Tensors
    _: KW_ONLY
    is_read: bool = True
    build: Build | None = None
    sizes: dict[str, int] = field(default_factory=dict)

    def refuse(self, problem: str) -> NoReturn:
        """Raise an error that says what is wrong with the file, or with what is to be written."""
        if self.is_read:
            raise ModelFileError(f"the model file is inconsistent: {problem}")
        raise InvalidInputError(f"the model cannot be saved: {problem}")


class Field(Protocol):
    """One kind of field; ``name`` is the path to it from the outermost value."""

    def write(self, name: str, value: Any, content: Content, /) -> Any:
        """Return what is in the header; arrays are added to the content."""

    def read(self, name: str, entry: Any, content: Content, /) -> Any:
        """Return the value of the field, checked."""


Fields = Mapping[str, Sequence[Rule] | Field]


def _write(prefix: str, value: Any, content: Content) -> dict[str, Any]:
    others = value.stored_fields() if hasattr(value, "stored_fields") else {}
    header = {}
    for name, kind in value._stored.items():
        found = others[name] if name in others else getattr(value, name)
        header[name] = _field(kind).write(prefix + name, found, content)
    # Arrays have no entry.
    return {name: entry for name, entry in header.items() if entry is not None}


def _read(prefix: str, kind: Any, header: Any, content: Content) -> Any:
    if not isinstance(header, dict) or set(header) - set(kind._stored):
        path, allowed = prefix.removesuffix(".") or "header", ", ".join(kind._stored)
        content.refuse(f"{path} must have {allowed}, got {_shown(header)}")
    fields = {
        name: _field(each).read(prefix + name, header.get(name), content)
        for name, each in kind._stored.items()
    }
    try:
        value = kind.from_stored(fields) if hasattr(kind, "from_stored") else kind(**fields)
        if hasattr(value, "check_stored"):
            value.check_stored()
    except ModelFileError:
        raise
    except KeyError as error:
        content.refuse(f"it lacks {error}")
    # The core raises them for arrays that are not what it expects.
    except (ValueError, TypeError) as error:
        content.refuse(str(error))
    return value


def _field(kind: Sequence[Rule] | Field) -> Field:
    return Entry(tuple(kind)) if isinstance(kind, Sequence) else kind


def _shown(entry: Any) -> str:
    text = repr(entry)
    return text if len(text) <= 80 else f"{text[:80]}..."


@dataclass(frozen=True)
class Entry:
    """A value in the header that one of the rules admits."""

    rules: tuple[Rule, ...]

    def write(self, name: str, value: Any, content: Content) -> Any:
        """Return the value as JSON holds it."""
        plain = value.item() if isinstance(value, np.generic) else value
        whole = type(plain) is int and not isinstance(plain, bool)
        is_number = any(isinstance(rule, Number) for rule in self.rules)
        return self.read(name, float(plain) if whole and is_number else plain, content)

    def read(self, name: str, entry: Any, content: Content) -> Any:
        """Return the entry."""
        is_float = type(entry) is float
        if not any(r.admits(entry) and (is_float or type(r) is not Number) for r in self.rules):
            allowed = " or ".join(str(rule) for rule in self.rules)
            content.refuse(f"{name} must be {allowed}, got {_shown(entry)}")
        return entry


@dataclass(frozen=True)
class Several:
    """A list of entries of one kind; a tuple in the value."""

    kind: Sequence[Rule] | Field

    def write(self, name: str, value: Sequence[Any], content: Content) -> list[Any]:
        """Return the list."""
        return [_field(self.kind).write(name, each, content) for each in value]

    def read(self, name: str, entry: Any, content: Content) -> tuple[Any, ...]:
        """Return the entries."""
        if not isinstance(entry, list):
            content.refuse(f"{name} must be a list, got {_shown(entry)}")
        return tuple(_field(self.kind).read(name, each, content) for each in entry)


@dataclass(frozen=True)
class Array:
    """An array of finite values; sizes in its shape have names if arrays share them.

    The first array decides how large such a size is; None stands for any. Values lie between
    ``low``, which ``open_low`` excludes, and ``high``, which may be the name of a size of which
    they are indices. They add up to at most ``total``.
    """

    dtypes: type | tuple[type, ...]
    shape: tuple[int | str | None, ...]
    low: float = -_LARGEST
    high: float | str = _LARGEST
    _: KW_ONLY
    open_low: bool = False
    total: float = _LARGEST
    order: Literal["any", "ascending", "distinct"] = "any"
    filled: bool = False
    optional: bool = False

    def write(self, name: str, value: npt.NDArray[Any] | None, content: Content) -> None:
        """Add the array to the content."""
        if value is None and self.optional:
            return
        assert value is not None  # noqa: S101
        if value.dtype.kind in "iu" or self.low > -_LARGEST:
            self._check(name, value, content)
        content.arrays[name] = value

    def read(self, name: str, _entry: Any, content: Content) -> npt.NDArray[Any] | None:
        """Return the array."""
        found = content.arrays.get(name)
        if found is not None:
            self._check(name, found, content)
        elif not self.optional:
            raise ModelFileError(f"the model file lacks the array {name!r}")
        return found

    def _check(self, name: str, array: npt.NDArray[Any], content: Content) -> None:
        sizes, dtypes = content.sizes, np.atleast_1d(np.array(self.dtypes, dtype=object))
        fits = array.dtype in dtypes.tolist() and array.ndim == len(self.shape)
        for size, found in zip(self.shape, array.shape, strict=False):
            wanted = sizes.setdefault(size, found) if isinstance(size, str) else size
            fits = fits and wanted in (None, found)
        if not fits or (self.filled and not array.size):
            shape = ", ".join("any" if n is None else f"{sizes.get(str(n), n)}" for n in self.shape)
            content.refuse(
                f"the array {name} must be {' or '.join(kind.__name__ for kind in dtypes)} of "
                f"shape ({shape}){' and not empty' if self.filled else ''}, got "
                f"{array.dtype} of shape {array.shape}"
            )
        if not array.size:
            return
        high = sizes[self.high] - 1 if isinstance(self.high, str) else self.high
        least, most = array.min().item(), array.max().item()
        # Comparisons with what is not a number are false.
        if not (self.low <= least and most <= high) or (self.open_low and least == self.low):
            above = "above" if self.open_low else "from"
            content.refuse(
                f"the array {name} must have values {above} {self.low:g} to {high:g}, got {least} "
                f"to {most}"
            )
        if self.total < _LARGEST and array.sum(dtype=np.float64) > self.total:
            content.refuse(f"the array {name} must add up to at most {self.total:g}")
        earlier, later = array[:-1], array[1:]
        ordered = later >= earlier if self.order == "ascending" else later > earlier
        if self.order != "any" and not ordered.all():
            content.refuse(f"the array {name} must be {self.order} and sorted")


@dataclass(frozen=True)
class Nested:
    """A value inside another one; ``apart`` if its sizes are its own."""

    kind: Any
    optional: bool = False
    apart: bool = False

    def write(self, name: str, value: Any, content: Content) -> Any:
        """Return the header of the value."""
        absent = value is None and self.optional
        return None if absent else _write(f"{name}.", value, self._inside(content))

    def read(self, name: str, entry: Any, content: Content) -> Any:
        """Return the value."""
        absent = entry is None and self.optional
        return None if absent else _read(f"{name}.", self.kind, entry, self._inside(content))

    def _inside(self, content: Content) -> Content:
        return replace(content, sizes={}) if self.apart else content


@dataclass(frozen=True)
class Model:
    """A fitted model with its own header and arrays, of the kind that a rule admits."""

    rule: Rule
    optional: bool = False

    def write(self, name: str, value: Any, content: Content) -> Any:
        """Return the header of the model."""
        if value is None and self.optional:
            return None
        header, arrays = to_file(value)
        content.arrays.update({f"{name}/{key}": array for key, array in arrays.items()})
        return header

    def read(self, name: str, entry: Any, content: Content) -> Any:
        """Return the model."""
        if entry is None and self.optional:
            return None
        if not isinstance(entry, dict) or content.build is None:
            content.refuse(f"{name} must be a model, got {_shown(entry)}")
        model = content.build(entry, arrays_inside(content.arrays, f"{name}/"))
        if not self.rule.admits(model):
            content.refuse(f"{name} must be {self.rule}, got a {type(model).__name__}")
        return model


@dataclass(frozen=True)
class ClassNames:
    """A list of classes, whose number is a size."""

    size: str = "classes"
    optional: bool = False

    def write(self, _name: str, value: ClassList | None, content: Content) -> Any:
        """Return the classes."""
        content.sizes[self.size] = 0 if value is None else len(value)
        return None if value is None else classes_to_json(value.classes)

    def read(self, _name: str, entry: Any, content: Content) -> ClassList | None:
        """Return the classes."""
        found = None if entry is None and self.optional else class_list(entry)
        content.sizes[self.size] = 0 if found is None else len(found)
        return found
