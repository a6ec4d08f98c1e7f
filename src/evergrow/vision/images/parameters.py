"""Parameter rules that several estimators of images share."""

from __future__ import annotations

from typing import Any

from evergrow.foundation.params import Choice, Flag, Integer, Nothing, Rule, Satisfies

JOBS: list[Rule] = [Nothing(), Integer(-(1 << 16), -1), Integer(1, 1 << 16)]
ON_ERROR: list[Rule] = [Choice(("raise", "skip"))]
VERBOSE: list[Rule] = [Integer(0), Flag()]


def instance_of(kind: Any, description: str) -> Satisfies:
    """The rule for instances of a class or union of classes."""
    return Satisfies(description, lambda value: isinstance(value, kind))
