"""What the service must show: that nothing is lost, how fast it is and what it withstands.

``python -m benchmarks service --only NAME`` measures one part.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.service import (
    attacks,
    downloads,
    predictions,
    restarts,
    robustness,
    stages,
    teaching,
    unknown,
)

PARTS: dict[str, Callable[[bool], None]] = {
    "crashes": robustness.measure_crashes,
    "two-services": robustness.measure_two_services,
    "full-disk": robustness.measure_full_disk,
    "teaching": teaching.run,
    "predictions": predictions.run,
    "fuzzing": robustness.measure_fuzzing,
    "malicious-requests": robustness.measure_malicious_requests,
    "attacks": attacks.run,
    "downloads": downloads.run,
    "restarts": restarts.run,
    "stages": stages.run,
    "unknown": unknown.run,
}
