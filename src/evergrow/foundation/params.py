"""Declared parameters of estimators and their validation.

An estimator lists the rules of each parameter; :func:`check_parameters` raises an error that names
the parameter, the allowed values and the value it got.
"""

from __future__ import annotations

import decimal
import numbers
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import suggest

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kMGT]i?)?B|([0-9]+)")
_UNITS = {"": 1} | {
    prefix + binary: (1024 if binary else 1000) ** (power + 1)
    for power, prefix in enumerate("kMGT")
    for binary in ("", "i")
}


class Rule(Protocol):
    """One kind of value a parameter may take."""

    def admits(self, value: object, /) -> bool:
        """Whether the value is allowed."""

    def __str__(self) -> str:
        """Describe the allowed values, to follow "must be"."""


@dataclass(frozen=True)
class Satisfies:
    """Values that pass a test; ``text`` describes them, to follow "must be".

    >>> check_parameters({"step": 3}, {"step": [Satisfies("even", lambda n: n % 2 == 0)]})
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.InvalidInputError: step must be even, got 3
    """

    text: str
    admits: Callable[[Any], bool]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Integer:
    """An integer from ``low`` to ``high``, both included."""

    low: int
    high: int | None = None

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
            return False
        return self.low <= int(value) and (self.high is None or int(value) <= self.high)

    def __str__(self) -> str:
        if self.high is None:
            return f"an integer of at least {self.low}"
        return f"an integer from {self.low} to {self.high}"


@dataclass(frozen=True)
class Number:
    """A finite float between ``low`` and ``high``; ``open_low`` excludes the lower end."""

    low: float
    high: float = float("inf")
    open_low: bool = False

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        above = number > self.low if self.open_low else number >= self.low
        return above and number <= self.high and number != float("inf")

    def __str__(self) -> str:
        bracket = "(" if self.open_low else "["
        upper = "inf)" if self.high == float("inf") else f"{self.high:g}]"
        return f"a float in {bracket}{self.low:g}, {upper}"


@dataclass(frozen=True)
class Choice:
    """One of a few strings."""

    names: tuple[str, ...]

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return isinstance(value, str) and value in self.names

    def __str__(self) -> str:
        names = [repr(name) for name in sorted(self.names)]
        return names[0] if len(names) == 1 else f"one of [{', '.join(names)}]"


@dataclass(frozen=True)
class Nothing:
    """None."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return value is None

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True)
class Flag:
    """True or False, of Python or NumPy."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return isinstance(value, (bool, np.bool_))

    def __str__(self) -> str:
        return "True or False"


@dataclass(frozen=True)
class Fraction:
    """A float above 0 and up to 1; an integer is not a fraction, not even 1."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        is_float = isinstance(value, (float, np.floating))
        return is_float and Number(0.0, 1.0, open_low=True).admits(value)

    def __str__(self) -> str:
        return "a float in (0, 1]"


@dataclass(frozen=True)
class FilePath:
    """A path that is not empty."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        if not isinstance(value, (str, os.PathLike)):
            return False
        return isinstance(os.fspath(value), str) and str(value) != "" and "\0" not in str(value)

    def __str__(self) -> str:
        return "a path"


_SEED = Integer(0, 2**32 - 1)


@dataclass(frozen=True)
class RandomState:
    """A seed, or a random number generator of NumPy."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return isinstance(value, np.random.RandomState) or _SEED.admits(value)

    def __str__(self) -> str:
        return f"{_SEED} or a numpy.random.RandomState"


@dataclass(frozen=True)
class MemorySize:
    """An amount of memory, at least one byte, which :func:`bytes_of` converts.

    ``example`` is shown in the message.
    """

    example: str = "4GiB"

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        if not isinstance(value, str):
            return Integer(1, 2**62).admits(value)
        found = _SIZE.fullmatch(value.replace("K", "k"))
        return found is not None and 1 <= bytes_of(value) <= 2**62

    def __str__(self) -> str:
        return f"a size such as {self.example!r} or a number of bytes, at least 1"


def bytes_of(size: str | int) -> int:
    """Convert an amount of memory that :class:`MemorySize` admits to bytes.

    >>> bytes_of("1.5KiB"), bytes_of("2GB"), bytes_of("512"), bytes_of(7)
    (1536, 2000000000, 512, 7)
    """
    if not isinstance(size, str):
        return int(size)
    found = _SIZE.fullmatch(size.replace("K", "k"))
    if found is None:
        raise InvalidInputError(f"{size!r} is not a size such as '4GiB'")
    number, unit, n_bytes = found.groups(default="")
    return int(decimal.Decimal(n_bytes or number) * _UNITS[unit])


class Value:
    """A parameter that has parameters of its own, as a frozen dataclass with ``repr=False``.

    Estimators that hold one have its fields as nested parameters, such as ``update__share``.
    """

    # The values that each field may have.
    _rules: ClassVar[dict[str, list[Rule]]] = {}

    def __post_init__(self) -> None:
        kind = type(self).__name__
        rules = {f"{kind}.{name}": allowed for name, allowed in self._rules.items()}
        check_parameters({f"{kind}.{name}": v for name, v in vars(self).items()}, rules)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the fields, as scikit-learn asks for them; ``deep`` is ignored."""
        return dict(vars(self))

    def set_params(self, **changed: Any) -> Self:
        """Return a copy with other fields."""
        unknown = changed.keys() - vars(self).keys()
        if unknown:
            raise InvalidInputError(
                f"{type(self).__name__} has no field {min(unknown)!r}; it has {[*vars(self)]}"
            )
        return cast("Self", replace(cast(Any, self), **changed))

    def __repr__(self) -> str:
        given = [(f, getattr(self, f.name)) for f in fields(cast(Any, self))]
        given.sort(key=lambda entry: bool(entry[0].kw_only))
        changed = [f"{f.name}={value!r}" for f, value in given if value != f.default]
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(frozen=True)
class OneOf:
    """A :class:`Value` of exactly one of these classes, not of a subclass."""

    kinds: tuple[type[Value], ...]

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return type(value) in self.kinds

    def __str__(self) -> str:
        names = [kind.__name__ for kind in self.kinds]
        return f"a value of {' or '.join(names)}"


def check_parameters(values: Mapping[str, Any], rules: Mapping[str, Sequence[Rule]]) -> None:
    """Raise an ``InvalidInputError`` for the first value that none of its rules admits.

    >>> check_parameters({"n_trees": 0}, {"n_trees": [Integer(1)]})
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.InvalidInputError: n_trees must be an integer of at least 1, got 0

    A misspelt choice is named too:

    >>> check_parameters({"mode": "Quik"}, {"mode": [Choice(("quick", "slow"))]})
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.InvalidInputError: mode must be one of ['quick', 'slow'], \
got 'Quik': did you mean 'quick'?
    """
    for name, allowed in rules.items():
        value = values[name]
        if not any(rule.admits(value) for rule in allowed):
            expected = " or ".join(str(rule) for rule in allowed)
            raise InvalidInputError(
                f"{name} must be {expected}, got {value!r}{_hint(value, allowed)}"
            )


def _hint(value: object, allowed: Sequence[Rule]) -> str:
    """Ask whether a similar choice was meant, such as "none" in place of None."""
    if not isinstance(value, (str, type(None))):
        return ""
    choices = [name for rule in allowed if isinstance(rule, Choice) for name in rule.names]
    found = suggest(value, choices)
    return f": {found}" if found else ""
