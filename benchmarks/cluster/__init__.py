"""What training past one machine must show: the same model, within its memory, whatever fails.

``python -m benchmarks cluster --only NAME`` measures one part.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.cluster import killing, limited, on_ray, planning, resuming, sums, updates

PARTS: dict[str, Callable[[bool], None]] = {
    "limited": limited.run,
    "on-ray": on_ray.run,
    "killing": killing.run,
    "resuming": resuming.run,
    "sums": sums.run,
    "plan": planning.run,
    "updates": updates.run,
}
