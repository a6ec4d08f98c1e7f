"""Names of classes: what may be in one, and one spelling for what looks the same.

Markup is text like any other. What cannot be seen is refused, because two names that look alike
must be one name, and because some of it turns around the text beside it. The list is fixed and
asks no table of the Python that runs: a name that one version took is taken by all.
"""

from __future__ import annotations

import re
import unicodedata

from evergrow.foundation.errors import WorkspaceError

__all__ = ["LONGEST_NAME", "NAME_PATTERN", "checked_name"]

LONGEST_NAME = 200

# First and last of each range, and what to call it.
_REFUSED: tuple[tuple[int, int, str], ...] = (
    (0x0000, 0x001F, "control character"),
    (0x007F, 0x009F, "control character"),
    (0x00AD, 0x00AD, "invisible character"),
    (0x034F, 0x034F, "invisible character"),
    (0x0600, 0x0605, "invisible character"),
    (0x061C, 0x061C, "bidirectional mark"),
    (0x06DD, 0x06DD, "invisible character"),
    (0x070F, 0x070F, "invisible character"),
    (0x0890, 0x0891, "invisible character"),
    (0x08E2, 0x08E2, "invisible character"),
    (0x115F, 0x1160, "invisible character"),
    (0x17B4, 0x17B5, "invisible character"),
    (0x180B, 0x180F, "invisible character"),
    (0x200B, 0x200B, "invisible character"),
    (0x200E, 0x200F, "bidirectional mark"),
    (0x2028, 0x2029, "line or paragraph separator"),
    (0x202A, 0x202E, "bidirectional mark"),
    (0x2060, 0x2065, "invisible character"),
    (0x2066, 0x2069, "bidirectional mark"),
    (0x206A, 0x206F, "invisible character"),
    (0x2800, 0x2800, "invisible character"),
    (0x3164, 0x3164, "invisible character"),
    (0xD800, 0xDFFF, "half of a surrogate pair"),
    (0xE000, 0xF8FF, "character of private use"),
    (0xFDD0, 0xFDEF, "code that is no character"),
    (0xFE00, 0xFE0E, "invisible character"),
    (0xFEFF, 0xFEFF, "invisible character"),
    (0xFFA0, 0xFFA0, "invisible character"),
    (0xFFF0, 0xFFFB, "invisible character"),
    (0xFFFE, 0xFFFF, "code that is no character"),
    (0x110BD, 0x110BD, "invisible character"),
    (0x110CD, 0x110CD, "invisible character"),
    (0x13430, 0x1343F, "invisible character"),
    (0x1BCA0, 0x1BCA3, "invisible character"),
    (0x1D173, 0x1D17A, "invisible character"),
    (0xE0000, 0xE0FFF, "invisible character"),
    (0xF0000, 0x10FFFF, "character of private use"),
)
# Parts of words in some scripts and of some emoji; never at an end, where nothing is joined.
_JOINERS = "\u200c\u200d"
_SPACES = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# What people paste around a name by accident.
_AROUND = f"\\t\\n\\r{_SPACES}"


def _literal(code: int) -> str:
    # Escapes that all dialects of regular expressions share; other characters stand for themselves.
    return f"\\x{code:02x}" if code < 0xA0 else chr(code)


def _in_brackets(ranges: tuple[tuple[int, int, str], ...]) -> str:
    # Text as services get it has no halves of surrogate pairs, and most dialects cannot name them.
    kept = [(low, high) for low, high, _ in ranges if not 0xD800 <= low <= 0xDFFF]
    return "".join(
        _literal(low) if low == high else f"{_literal(low)}-{_literal(high)}" for low, high in kept
    )


# Most often pasted along with a name, and then hard to find.
_UNSEEN = ("bidirectional mark", "invisible character")
# Asks for the coloured picture of a symbol, which looks different; after a letter it does nothing.
_COLOURED = "\ufe0f"
_SYMBOLS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u2300-\u23ff\u24c2\u25a0-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# These become symbols only within a key cap.
_KEYS = "0-9#*"
_KEY_CAP = "\u20e3"
_STRAY = f"[^{_SYMBOLS}{_KEYS}]{_COLOURED}|[{_KEYS}]{_COLOURED}(?!{_KEY_CAP})"

_NOT_INSIDE = _in_brackets(_REFUSED)
_FIRST = f"[^{_NOT_INSIDE}{_JOINERS}{_SPACES}{_COLOURED}]"
_LAST = f"[^{_NOT_INSIDE}{_JOINERS}{_SPACES}]"
# White space in a row counts once; said so that there is one way only to read it.
_ONCE = f"(?:[{_SPACES}](?=[{_SPACES}]))*(?![{_SPACES}][{_SPACES}])"
_INSIDE = f"(?:{_ONCE}[^{_NOT_INSIDE}]){{0,{LONGEST_NAME - 2}}}"

# The same rule as a regular expression of the kind that JSON schemas hold.
NAME_PATTERN = f"^(?![\\s\\S]*(?:{_STRAY}))[{_AROUND}]*{_FIRST}(?:{_INSIDE}{_LAST})?[{_AROUND}]*$"

_refused = re.compile(f"[{_NOT_INSIDE}\ud800-\udfff]")
_stray = re.compile(f"\\A{_COLOURED}|{_STRAY}")
_around = re.compile(f"\\A[{_AROUND}]+|[{_AROUND}]+\\Z")
_inside = re.compile(f"[{_SPACES}]+")


def checked_name(text: str, what: str = "label") -> str:
    r"""A name in its one spelling: composed, no white space around it, one space between words.

    Parameters
    ----------
    text : str
        What someone typed.
    what : str
        What the name is for, to be said in the error.

    Returns
    -------
    name : str
        The name as it is kept and compared; case matters.

    Raises
    ------
    evergrow.WorkspaceError
        If it is empty, too long, or holds a character that cannot be seen.

    Examples
    --------
    >>> checked_name("  Cafe\u0301 ") == "Caf\u00e9"
    True
    >>> checked_name("red \u00a0cup")
    'red cup'
    >>> checked_name("<b>bold</b>")
    '<b>bold</b>'
    >>> checked_name("a\tb")
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.WorkspaceError: label must have no control character, got U+0009...
    """
    if not isinstance(text, str):
        raise WorkspaceError(f"{what} must be text, got {type(text).__name__}")
    name = _inside.sub(" ", _around.sub("", text))
    if not name:
        raise WorkspaceError(f"{what} must not be empty: at least 1 visible character is needed")
    if len(name) > LONGEST_NAME:
        raise WorkspaceError(f"{what} must have at most {LONGEST_NAME} characters, got {len(name)}")
    wrong = _refused.search(name)
    if wrong is not None:
        kind = _kind_of(wrong[0])
        hint = ", which cannot be seen: type the name anew" if kind in _UNSEEN else ""
        raise WorkspaceError(
            f"{what} must have no {kind}, "
            f"got U+{ord(wrong[0]):04X} at place {wrong.start() + 1}{hint}"
        )
    stray = _stray.search(name)
    if stray is not None:
        raise WorkspaceError(
            f"{what} must have no invisible character, "
            f"got U+{ord(_COLOURED):04X} at place {stray.end()}"
        )
    for end, place in ((name[0], 1), (name[-1], len(name))):
        if end in _JOINERS:
            raise WorkspaceError(
                f"{what} must not begin or end with an invisible character, "
                f"got U+{ord(end):04X} at place {place}"
            )
    return unicodedata.normalize("NFC", name)


def _kind_of(character: str) -> str:
    """What to call a character that is refused."""
    return next(kind for low, high, kind in _REFUSED if low <= ord(character) <= high)
