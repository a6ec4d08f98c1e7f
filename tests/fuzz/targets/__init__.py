"""One target per format: a function of bytes that raises for faults only, and its mutator.

A target takes any bytes. What Evergrow refuses with an error of its own, or with a ``ValueError``
about the input, is fine; every other exception is a fault. A mutator changes bytes so that they
stay close to the format, hashes included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from random import Random


@dataclass(frozen=True)
class Target:
    """A format: what reads it, how to change it, and where a corpus begins."""

    run: Callable[[bytes], None]
    mutate: Callable[[bytes, Random], bytes]
    seeds: Callable[[], dict[str, bytes]]


NAMES = (
    "coco", "form", "image", "lesson", "model", "page_lessons", "shards", "table", "tar",
    "workspace",
)  # fmt: skip


def target(name: str) -> Target:
    """The target of a name; imported on use, because one process fuzzes one of them."""
    found: Target = import_module(f"tests.fuzz.targets.{name}").TARGET
    return found
