"""Numbers as people read them."""

from __future__ import annotations

import math

__all__ = ["MISSING", "duration", "percent", "points", "size"]

MISSING = "\N{EN DASH}"


def percent(share: float) -> str:
    """A share.

    >>> percent(0.70071)
    '70.1 %'
    """
    return MISSING if math.isnan(share) else f"{100 * share:.1f} %"


def points(share: float) -> str:
    """A difference of shares.

    >>> points(0.0123)
    '1.2 points'
    """
    return f"{100 * share:.1f} points"


_DURATIONS = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "µs"))


def duration(seconds: float) -> str:
    """A time, to two digits.

    >>> duration(0.0254), duration(12.34), duration(4e-6), duration(125)
    ('25 ms', '12 s', '4 µs', '125 s')
    """
    if math.isnan(seconds):
        return MISSING
    _, factor, unit = next(each for each in _DURATIONS if seconds >= each[0])
    return f"{_two_digits(seconds * factor)} {unit}"


_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (0.0, "bytes"))


def size(n_bytes: float) -> str:
    """A number of bytes, to two digits.

    >>> size(13_250_000), size(512), size(1_400)
    ('13 MB', '512 bytes', '1.4 kB')
    """
    if math.isnan(n_bytes):
        return MISSING
    least, unit = next(each for each in _SIZES if n_bytes >= each[0])
    return f"{_two_digits(n_bytes / (least or 1))} {unit}"


def _two_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 9.95 else f"{number:.2g}"
