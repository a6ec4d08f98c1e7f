"""What the service must show: that nothing is lost, how fast it is and what it withstands.

``python -m benchmarks service --only NAME`` measures one part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.service import (
    disk_full,
    fuzzing,
    hostile,
    killing,
    predicting,
    restarting,
    teaching,
    unknown,
)

__all__ = ["PARTS", "run"]

PARTS: dict[str, Callable[[bool], None]] = {
    "killing": killing.run,
    "disk-full": disk_full.run,
    "teaching": teaching.run,
    "predicting": predicting.run,
    "fuzzing": fuzzing.run,
    "hostile": hostile.run,
    "restarting": restarting.run,
    "unknown": unknown.run,
}


def run(quick: bool, only: Sequence[str] = ()) -> None:
    """Measure all parts, or those that are named."""
    for name in only or PARTS:
        PARTS[name](quick)
