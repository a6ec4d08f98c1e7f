"""Hooks for schemathesis: readable pictures, and a different key for each request.

Loaded by schemathesis through the environment variable ``SCHEMATHESIS_HOOKS``.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import schemathesis
from hypothesis import strategies as st
from hypothesis.strategies._internal import regex

from tests.harness.pictures import different, photograph

_DRAWN = [photograph(seed, width=48, height=32) for seed in range(4)]

PICTURES = st.builds(different, st.sampled_from(_DRAWN), st.integers(0, 10**6))

schemathesis.openapi.format("binary", PICTURES)

# Strategies of patterns are cached: names allow most of Unicode, which takes seconds to build.
_made: dict[tuple[str, int, str], Any] = {}
_make = regex.base_regex_strategy


def _cached_strategy(pattern: re.Pattern[Any], **options: Any) -> Any:
    key = (str(pattern.pattern), pattern.flags, repr(options["alphabet"]))
    if key not in _made:
        _made[key] = _make(pattern, **options)
        _made[key].validate()
    return _made[key]


regex.base_regex_strategy = _cached_strategy  # type: ignore[assignment]

_KEY = "Idempotency-Key"
_numbers = count()


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: dict[str, Any]) -> None:
    """Give each request its own key: a key that is reused for another request is refused."""
    key = None if case.headers is None else case.headers.get(_KEY)
    # A key that is not valid, or too long for a suffix, is left unchanged.
    if isinstance(key, str) and re.fullmatch(r"[!-~]{1,200}", key):
        case.headers[_KEY] = f"{key}-{next(_numbers)}"


@schemathesis.hook
def filter_body(_context: Any, body: Any) -> bool:
    """Skip forms with numbers: forms have no types, so a number is a valid name."""
    if not isinstance(body, dict) or "image" not in body:
        return True
    return not any(isinstance(body.get(name), (int, float)) for name in ("label", "fine"))
