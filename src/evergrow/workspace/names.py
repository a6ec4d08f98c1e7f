"""Names of classes: which characters are allowed, and one normal form.

Markup is ordinary text. Invisible characters are refused, because names that look the same must be
the same, and because some of them reverse the text next to them. The table of characters is fixed
here and does not depend on Python's Unicode version: a name that was accepted once always is.
"""

from __future__ import annotations

import re
import unicodedata

from evergrow.foundation.errors import WorkspaceError

LONGEST_NAME = 200

# First and last of each range, and what to call it.
_REFUSED: tuple[tuple[int, int, str], ...] = (
    (0x0000, 0x001F, "control character"),
    (0x007F, 0x009F, "control character"),
    (0x00AD, 0x00AD, "hidden character"),
    (0x034F, 0x034F, "hidden character"),
    (0x0600, 0x0605, "hidden character"),
    (0x061C, 0x061C, "bidirectional mark"),
    (0x06DD, 0x06DD, "hidden character"),
    (0x070F, 0x070F, "hidden character"),
    (0x0890, 0x0891, "hidden character"),
    (0x08E2, 0x08E2, "hidden character"),
    (0x115F, 0x1160, "hidden character"),
    (0x17B4, 0x17B5, "hidden character"),
    (0x180B, 0x180F, "hidden character"),
    (0x200B, 0x200B, "hidden character"),
    (0x200E, 0x200F, "bidirectional mark"),
    (0x2028, 0x2029, "line or paragraph separator"),
    (0x202A, 0x202E, "bidirectional mark"),
    (0x2060, 0x2065, "hidden character"),
    (0x2066, 0x2069, "bidirectional mark"),
    (0x206A, 0x206F, "hidden character"),
    (0x2800, 0x2800, "hidden character"),
    (0x3164, 0x3164, "hidden character"),
    (0xD800, 0xDFFF, "half of a surrogate pair"),
    (0xE000, 0xF8FF, "character of private use"),
    (0xFDD0, 0xFDEF, "code that is not a character"),
    (0xFE00, 0xFE0E, "hidden character"),
    (0xFEFF, 0xFEFF, "hidden character"),
    (0xFFA0, 0xFFA0, "hidden character"),
    (0xFFF0, 0xFFFB, "hidden character"),
    (0xFFFE, 0xFFFF, "code that is not a character"),
    (0x110BD, 0x110BD, "hidden character"),
    (0x110CD, 0x110CD, "hidden character"),
    (0x13430, 0x1343F, "hidden character"),
    (0x1BCA0, 0x1BCA3, "hidden character"),
    (0x1D173, 0x1D17A, "hidden character"),
    (0xE0000, 0xE0FFF, "hidden character"),
    (0xF0000, 0x10FFFF, "character of private use"),
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
