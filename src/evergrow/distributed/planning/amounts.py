"""Amounts of memory and time as people read them."""

from __future__ import annotations

import math

__all__ = ["said_bytes", "said_count", "said_seconds"]

_SHOWN_BYTES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_SHOWN_SECONDS = (("days", 86400), ("h", 3600), ("min", 60))


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
    """Seconds in the largest unit of which there are at least two, or in milliseconds.

    >>> said_seconds(0.0123), said_seconds(90), said_seconds(150), said_seconds(3e5)
    ('12 ms', '90 s', '2.5 min', '3.5 days')
    """
    for unit, size in _SHOWN_SECONDS:
        if seconds >= 2 * size:
            return f"{_two_digits(seconds / size)} {unit}"
    if seconds >= 0.1:
        return f"{_two_digits(seconds)} s"
    return f"{_two_digits(1000 * seconds)} ms" if seconds >= 1e-5 else "under 0.01 ms"


def said_count(number: int, what: str) -> str:
    """A number and the word for what it counts.

    >>> said_count(1, "core"), said_count(2, "core")
    ('1 core', '2 cores')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _two_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 9.95 else f"{number:.2g}"
