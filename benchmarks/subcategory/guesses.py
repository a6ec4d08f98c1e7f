"""How often guessed fine labels are right, how often a model thinks so, and what comes of them."""

from __future__ import annotations

from benchmarks.subcategory.data import TwoLevels
from benchmarks.subcategory.runs import Bench

__all__ = ["forests_after_guessing", "how_often_right"]


def how_often_right(bench: Bench, data: TwoLevels) -> None: ...
def forests_after_guessing(bench: Bench, data: TwoLevels) -> None: ...
