"""Names of classes: which characters are allowed, and one normal form.

Markup is ordinary text. Invisible characters are refused, because names that look the same must be
the same, and because some of them reverse the text next to them. The table of characters is fixed
here and does not depend on Python's Unicode version: a name that was accepted once always is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from evergrow.foundation.errors import WorkspaceError
from evergrow.foundation.formatting import fold_name

LONGEST_NAME = 200

# Ranges of code points, by what to call them.
_REFUSED_BY_KIND = {
    "control character": "0000-001F 007F-009F",
    "hidden character": (
        "00AD 034F 0600-0605 06DD 070F 0890-0891 08E2 115F-1160 17B4-17B5 180B-180F 200B "
        "2060-2065 206A-206F 2800 3164 FE00-FE0E FEFF FFA0 FFF0-FFFB 110BD 110CD "
        "13430-1343F 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
    ),
    "bidirectional mark": "061C 200E-200F 202A-202E 2066-2069",
    "line or paragraph separator": "2028-2029",
    "half of a surrogate pair": "D800-DFFF",
    "character of private use": "E000-F8FF F0000-10FFFF",
    "code that is not a character": "FDD0-FDEF FFFE-FFFF",
}
# First and last of each range, and its kind, in ascending order.
_REFUSED: tuple[tuple[int, int, str], ...] = tuple(
    sorted(
        (int(ends.split("-")[0], 16), int(ends.split("-")[-1], 16), kind)
        for kind, ranges in _REFUSED_BY_KIND.items()
        for ends in ranges.split()
    )
)
# Needed within words of some scripts and within some emoji; refused at either end of a name.
_JOINERS = "\u200c\u200d"
_SPACES = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# White space that is often pasted around a name by accident.
_AROUND = f"\\t\\n\\r{_SPACES}"


def _literal(code: int) -> str:
    # Only escapes that all dialects of regular expressions share; others are written literally.
    return f"\\x{code:02x}" if code < 0xA0 else chr(code)


def _in_brackets(ranges: tuple[tuple[int, int, str], ...]) -> str:
    # JSON text has no lone surrogates, and most dialects of regular expressions cannot name them.
    kept = [(low, high) for low, high, _ in ranges if not 0xD800 <= low <= 0xDFFF]
    return "".join(
        _literal(low) if low == high else f"{_literal(low)}-{_literal(high)}" for low, high in kept
    )


# Often pasted along with a name, and then hard to find.
_UNSEEN = ("bidirectional mark", "hidden character")
# Variation selector for the coloured form of a symbol; after a letter it has no effect.
_COLOURED = "\ufe0f"
_SYMBOLS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u2300-\u23ff\u24c2\u25a0-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# These become symbols only as part of a key cap.
_KEYS = "0-9#*"
_KEY_CAP = "\u20e3"
_STRAY = f"[^{_SYMBOLS}{_KEYS}]{_COLOURED}|[{_KEYS}]{_COLOURED}(?!{_KEY_CAP})"

_NOT_INSIDE = _in_brackets(_REFUSED)
_FIRST = f"[^{_NOT_INSIDE}{_JOINERS}{_SPACES}{_COLOURED}]"
_LAST = f"[^{_NOT_INSIDE}{_JOINERS}{_SPACES}]"
# Repeated white space counts once; written so that each text matches in one way only.
_ONCE = f"(?:[{_SPACES}](?=[{_SPACES}]))*(?![{_SPACES}][{_SPACES}])"
_INSIDE = f"(?:{_ONCE}[^{_NOT_INSIDE}]){{0,{LONGEST_NAME - 2}}}"

# The same rule as a regular expression for JSON schemas.
NAME_PATTERN = f"^(?![\\s\\S]*(?:{_STRAY}))[{_AROUND}]*{_FIRST}(?:{_INSIDE}{_LAST})?[{_AROUND}]*$"

_refused = re.compile(f"[{_NOT_INSIDE}\ud800-\udfff]")
_stray = re.compile(f"\\A{_COLOURED}|{_STRAY}")
_around = re.compile(f"\\A[{_AROUND}]+|[{_AROUND}]+\\Z")
_inside = re.compile(f"[{_SPACES}]+")


def normalise_name(text: str, what: str = "label") -> str:
    r"""A name in normal form: NFC, no white space around it, single spaces between words.

    Parameters
    ----------
    text : str
        The name as it was entered.
    what : str
        What the name is for, for the error message.

    Returns
    -------
    name : str
        The name as it is stored and compared; case matters.

    Raises
    ------
    evergrow.WorkspaceError
        If it is empty, too long, or contains an invisible character.

    Examples
    --------
    >>> normalise_name("  Cafe\u0301 ") == "Caf\u00e9"
    True
    >>> normalise_name("red \u00a0cup")
    'red cup'
    >>> normalise_name("<b>bold</b>")
    '<b>bold</b>'
    >>> normalise_name("a\tb")
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.WorkspaceError: label contains U+0009 at position 2, a control ...
    """
    if not isinstance(text, str):
        raise WorkspaceError(f"{what} must be text, got {type(text).__name__}")
    name = _inside.sub(" ", _around.sub("", text))
    if not name:
        raise WorkspaceError(f"{what} must not be empty: it needs at least 1 visible character")
    if len(name) > LONGEST_NAME:
        raise WorkspaceError(f"{what} must have at most {LONGEST_NAME} characters, got {len(name)}")
    wrong = _refused.search(name)
    if wrong is not None:
        kind = _kind_of(wrong[0])
        hint = ": it is invisible, type the name again" if kind in _UNSEEN else ""
        raise WorkspaceError(
            f"{what} contains U+{ord(wrong[0]):04X} at position {wrong.start() + 1}, "
            f"a {kind}, which is not allowed{hint}"
        )
    stray = _stray.search(name)
    if stray is not None:
        raise WorkspaceError(
            f"{what} contains U+{ord(_COLOURED):04X} at position {stray.end()}, which is invisible "
            "there and not allowed"
        )
    for end, place in ((name[0], 1), (name[-1], len(name))):
        if end in _JOINERS:
            raise WorkspaceError(
                f"{what} must not begin or end with an invisible character, "
                f"got U+{ord(end):04X} at position {place}"
            )
    return unicodedata.normalize("NFC", name)


def _kind_of(character: str) -> str:
    """The kind of a refused character."""
    return next(kind for low, high, kind in _REFUSED if low <= ord(character) <= high)


def similar_names(new: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """New names that differ from a known one, or from each other, only by case or spaces.

    >>> similar_names(["Sun flower", "rose", "Rose", "pen"], ["sunflower", "pen"])
    {'Sun flower': 'sunflower', 'Rose': 'rose'}
    """
    taken = dict.fromkeys(known)
    seen = {fold_name(name): name for name in taken}
    found = {}
    for name in dict.fromkeys(new):
        if name not in taken:
            other = seen.setdefault(fold_name(name), name)
            if other != name:
                found[name] = other
    return found
