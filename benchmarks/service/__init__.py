"""What the service must show: that nothing is lost, how fast it is and what it withstands.

``python -m benchmarks service --only NAME`` measures one part.
"""

from __future__ import annotations

from collections.abc import Callable

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
