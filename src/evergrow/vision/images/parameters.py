"""Parameter rules that several estimators of images share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evergrow.foundation.params import Choice, Flag, Integer, Nothing, Rule

JOBS: list[Rule] = [Nothing(), Integer(-(1 << 16), -1), Integer(1, 1 << 16)]
ON_ERROR: list[Rule] = [Choice(("raise", "skip"))]
VERBOSE: list[Rule] = [Integer(0), Flag()]


@dataclass(frozen=True)
class Instance:
    """An instance of a class or union of classes, described in messages by ``description``."""

    kind: Any
    description: str

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        """Say what is allowed."""
        return self.description
