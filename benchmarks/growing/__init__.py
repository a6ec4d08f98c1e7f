"""Forests that grow: how long updates take next to retraining, and what they keep of it."""

from __future__ import annotations

from benchmarks.growing import memory, streams, updates

PARTS = {
    "strategies": streams.strategies,
    "settings": streams.settings,
    "chunks": streams.chunks,
    "one-class": updates.one_class,
    "more-samples": updates.more_samples,
    "memory": memory.run,
}
