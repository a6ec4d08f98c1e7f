"""What schemathesis cannot invent by itself: pictures that can be read, keys of one request each.

Loaded by schemathesis, which is told so by the environment variable ``SCHEMATHESIS_HOOKS``.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import schemathesis
from hypothesis import strategies as st
from hypothesis.strategies._internal import regex

from tests.harness.pictures import different, photograph

__all__ = ["PICTURES"]

_DRAWN = [photograph(seed, width=48, height=32) for seed in range(4)]

PICTURES = st.builds(different, st.sampled_from(_DRAWN), st.integers(0, 10**6))

schemathesis.openapi.format("binary", PICTURES)

# What is made of a pattern is made once: names allow most of Unicode, which takes seconds.
_made: dict[tuple[str, int, str], Any] = {}
_make = regex.base_regex_strategy


def _made_once(pattern: re.Pattern[Any], **options: Any) -> Any:
    key = (str(pattern.pattern), pattern.flags, repr(options["alphabet"]))
    if key not in _made:
        _made[key] = _make(pattern, **options)
        _made[key].validate()
    return _made[key]


regex.base_regex_strategy = _made_once  # type: ignore[assignment]

_KEY = "Idempotency-Key"
_numbers = count()


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: dict[str, Any]) -> None:
    """Give each request a key of its own: one that comes with another request is refused."""
    key = None if case.headers is None else case.headers.get(_KEY)
    # A key that is wrong in itself, or too long for an addition, stays what it is.
    if isinstance(key, str) and re.fullmatch(r"[!-~]{1,200}", key):
        case.headers[_KEY] = f"{key}-{next(_numbers)}"


@schemathesis.hook
def filter_body(_context: Any, body: Any) -> bool:
    """Invent no form with numbers: forms have no types, and a number in them is a name."""
    if not isinstance(body, dict) or "image" not in body:
        return True
    return not any(isinstance(body.get(name), (int, float)) for name in ("label", "fine"))
