"""Text for people: counts, times, sizes, and names of sources and with strange characters."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import chain
from typing import Any

# A value that is not known.
MISSING = "\N{EN DASH}"

# Names less similar than this, from 0 to 1, are not taken for misspelt ones.
_LEAST_SIMILARITY = 0.65
_MOST_SIMILAR = 3

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


_SIZE_UNITS: Sequence[Unit] = (
    (1e9, 1e9, "GB"),
    (1e6, 1e6, "MB"),
    (1e3, 1e3, "kB"),
    (0.0, 1.0, "bytes"),
)


def format_size(n_bytes: float) -> str:
    """Format a size with two digits in the largest decimal unit that gives at least one.

    >>> format_size(13_250_000), format_size(512), format_size(1_400)
    ('13 MB', '512 bytes', '1.4 kB')
    """
    return format_in_units(n_bytes, _SIZE_UNITS)


def format_percent(share: float | None) -> str:
    """Format a share in percent; a share that is not known is a dash.

    >>> format_percent(0.70071), format_percent(None) == MISSING
    ('70.1%', True)
    """
    return MISSING if share is None or math.isnan(share) else f"{100 * share:.1f}%"


def natural_order(name: object) -> tuple[list[Any], str]:
    """Return a key that sorts names as people do: numbers by value, letters without case.

    >>> sorted(["10", "9b", "Bee", "9", "cat", "ant", "1"], key=natural_order)
    ['1', '9', '9b', '10', 'ant', 'Bee', 'cat']
    """
    text = str(name)
    pieces = re.split("([0-9]+)", text.casefold())
    # Numbers are compared by length, then as text, so that none is too long to convert.
    numbers = [(len(piece.lstrip("0")), piece.lstrip("0")) for piece in pieces[1::2]]
    pairs = zip(pieces[::2], [*numbers, (0, "")], strict=True)
    # Names may be equal but for case or zeros.
    return list(chain.from_iterable(pairs)), text


def list_names(names: Iterable[object], most: int = 10) -> str:
    """List names in quotes, at most ``most`` of them.

    >>> list_names(["ant", "bee", "cat"], 2)
    "'ant', 'bee' and 1 more"
    """
    listed = [repr(name) for name in names]
    more = len(listed) - most
    shown = ", ".join(listed[:most])
    return f"{shown} and {more} more" if more > 0 else shown


def fold_name(name: str) -> str:
    """Return a name without what people overlook: case, spaces and forms of a character.

    >>> fold_name("Sun Flower")
    'sunflower'
    """
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", name)).casefold()


def suggest(
    name: object, known: Iterable[object], *, least: float = _LEAST_SIMILARITY, what: str = ""
) -> str:
    """Ask whether one of the similar names was meant; empty if there is none.

    Case and spaces do not count. ``least`` is the least similarity, from 0 to 1, and ``what`` says
    what the names are.

    >>> suggest("SUNFLWER", ["rose", "sunflower"])
    "did you mean 'sunflower'?"
    >>> suggest("watch", ["ketch"])
    ''
    """
    by_text: dict[str, list[object]] = {}
    for each in known:
        by_text.setdefault(fold_name(str(each)), []).append(each)
    close = get_close_matches(fold_name(str(name)), by_text, _MOST_SIMILAR, least)
    near = [each for text in close for each in by_text[text]][:_MOST_SIMILAR]
    return (
        f"did you mean {f'{what} ' if what else ''}{' or '.join(map(repr, near))}?" if near else ""
    )


def printable(text: str) -> str:
    r"""Return text with control characters and unprintable ones written as escapes.

    >>> print(printable("two\nlines"))
    two\nlines
    """
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode()
        for one in text
    )


def display_name(source: object) -> str:
    """Return the name of a source for messages."""
    named = source if isinstance(source, (str, os.PathLike)) else _file_name(source)
    if named is not None:
        return f"'{printable(os.fsdecode(named))}'"
    if isinstance(source, (bytes, bytearray, memoryview)):
        return f"<{len(source)} bytes>"
    if isinstance(shape := getattr(source, "shape", None), tuple):
        return f"<array of shape {tuple(shape)}>"
    if hasattr(source, "size") and hasattr(source, "mode"):
        return f"<image of size {source.size}>"
    return f"<{type(source).__name__}>"


def _file_name(source: object) -> str | None:
    # Open files have a name, Pillow's images a filename.
    for attribute in ("filename", "name"):
        name = getattr(source, attribute, None)
        if isinstance(name, str) and name:
            return name
    return None
