"""Text for people: counts, times, sizes, and names with strange characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

# A unit: the least number that is written in it, its size, and its name.
Unit = tuple[float, float, str]

_BYTE_UNITS = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_TIME_UNITS: Sequence[Unit] = (
    (2 * 86400, 86400, "days"),
    (2 * 3600, 3600, "h"),
    (2 * 60, 60, "min"),
    (0.1, 1, "s"),
    (1e-5, 1e-3, "ms"),
)


def format_count(number: int | float, noun: str) -> str:
    """Format a number with its noun, in the plural unless it is one.

    >>> format_count(1, "core"), format_count(2.5, "example"), format_count(3, "fine class")
    ('1 core', '2.5 examples', '3 fine classes')
    """
    plural = noun + ("es" if noun.endswith("s") else "s")
    shown = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{shown} {noun if number == 1 else plural}"


def format_in_units(number: float, units: Sequence[Unit]) -> str:
    """Format a number with two digits in the first unit that it is large enough for.

    >>> format_in_units(1400, [(1000, 1000, "kB"), (0, 1, "bytes")])
    '1.4 kB'
    """
    _, size, name = next(unit for unit in units if number >= unit[0])
    digits = f"{number / size:.0f}" if number / size >= 9.95 else f"{number / size:.2g}"
    return f"{digits} {name}"


def format_seconds(seconds: float) -> str:
    """Format a time in the largest unit that gives at least two, or in milliseconds.

    >>> format_seconds(0.0123), format_seconds(90), format_seconds(150), format_seconds(3e5)
    ('12 ms', '90 s', '2.5 min', '3.5 days')
    """
    return format_in_units(seconds, _TIME_UNITS) if seconds >= 1e-5 else "under 0.01 ms"


def format_bytes(n_bytes: float) -> str:
    """Format bytes in the largest binary unit that gives at least one.

    >>> format_bytes(512), format_bytes(4.8e9), format_bytes(2**21)
    ('512 B', '4.5 GiB', '2.0 MiB')
    """
    for unit, size in _BYTE_UNITS:
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{math.ceil(n_bytes)} B"


def printable(text: str) -> str:
    r"""Return text with control characters and unprintable ones written as escapes.

    >>> print(printable("two\nlines"))
    two\nlines
    """
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode()
        for one in text
    )
