"""Numbers and text in the form in which people read them."""

from __future__ import annotations

import math

from evergrow.foundation.formatting import MISSING, format_in_units, format_percent, format_size

percent = format_percent


def points(share: float) -> str:
    """Format a difference of shares.

    >>> points(0.0123)
    '1.2 points'
    """
    return f"{100 * share:.1f} points"


def compared_with(gap: float, name: str) -> str:
    """Say how a learner compares with a named one, given the difference of their accuracies.

    >>> [compared_with(gap, "LDA") for gap in (0.0123, -0.01, -0.0001)]
    ['1.2 points above LDA', '1.0 points below LDA', 'as accurate as LDA']
    """
    if points(abs(gap)) == points(0.0):
        return f"as accurate as {name}"
    return f"{points(abs(gap))} {'above' if gap > 0 else 'below'} {name}"


def shortened(words: str, length: int = 100) -> str:
    """Cut a text for a table, between two words.

    >>> shortened("the solver did not converge", 20)
    'the solver did not…'
    """
    if len(words) <= length:
        return words
    kept = words[:length].rpartition(" ")[0] or words[: length - 1]
    return kept.rstrip(" ,;:") + "\N{HORIZONTAL ELLIPSIS}"


_TIMES = ((1.0, 1.0, "s"), (1e-3, 1e-3, "ms"), (0.0, 1e-6, "µs"))


def duration(seconds: float) -> str:
    """Format a duration with two digits.

    >>> duration(0.0254), duration(12.34), duration(4e-6), duration(125)
    ('25 ms', '12 s', '4 µs', '125 s')
    """
    return MISSING if math.isnan(seconds) else format_in_units(seconds, _TIMES)


def size(n_bytes: float) -> str:
    """Format a number of bytes with two digits.

    >>> size(13_250_000), size(512), size(1_400)
    ('13 MB', '512 bytes', '1.4 kB')
    """
    return MISSING if math.isnan(n_bytes) else format_size(n_bytes)
