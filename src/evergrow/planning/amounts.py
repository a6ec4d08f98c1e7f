"""Amounts of memory and time as people write and read them."""

from __future__ import annotations

import math
import numbers
import re

__all__ = ["as_bytes", "said_bytes", "said_seconds"]

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_WRITTEN = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([A-Za-z]*)\s*", re.ASCII)
# No machine has so much; above it are typing errors.
_MOST_BYTES = 2**60

_SHOWN_BYTES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_SHOWN_SECONDS = (("days", 86400), ("h", 3600), ("min", 60))


def as_bytes(value: object, name: str) -> int:
    """A number of bytes, or one with a unit such as ``"4GiB"``, as a number of bytes.

    >>> as_bytes("4GiB", "memory_limit"), as_bytes("1.5 GB", "memory_limit")
    (4294967296, 1500000000)
    >>> as_bytes("much", "memory_limit")
    Traceback (most recent call last):
    ...
    ValueError: memory_limit must be a number of bytes or a text such as '4GiB', got 'much'
    """
    wrong = ValueError(f"{name} must be a number of bytes or a text such as '4GiB', got {value!r}")
    if isinstance(value, str):
        found = _WRITTEN.fullmatch(value[:64])
        unit = None if found is None else _UNITS.get(found[2].upper())
        if found is None or unit is None or len(value) > 64:
            raise wrong
        number = float(found[1]) * unit
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
    else:
        raise wrong
    if not 1 <= number <= _MOST_BYTES:
        raise wrong
    return round(number)


def said_bytes(n_bytes: float) -> str:
    """Bytes in the largest unit of which there is at least one.

    >>> said_bytes(512), said_bytes(4.8e9), said_bytes(2**21)
    ('512 B', '4.5 GiB', '2.0 MiB')
    """
    for unit, size in _SHOWN_BYTES:
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{math.ceil(n_bytes)} B"


def said_seconds(seconds: float) -> str:
    """Seconds in the largest unit of which there are at least two.

    >>> said_seconds(0.0123), said_seconds(90), said_seconds(150), said_seconds(3e5)
    ('0.012 s', '90 s', '2.5 min', '3.5 days')
    """
    for unit, size in _SHOWN_SECONDS:
        if seconds >= 2 * size:
            return f"{_two_digits(seconds / size)} {unit}"
    return f"{_two_digits(seconds)} s"


def _two_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 9.95 else f"{number:.2g}"
