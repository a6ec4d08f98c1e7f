"""How often what was written is named in the manifest while work goes on."""

from __future__ import annotations

import time

from evergrow.shards.writing import ShardWriter

__all__ = ["Commits"]

# A manifest of many shards takes a while to write: not after each of them.
_PAUSE_SECONDS = 2.0


class Commits:
    """Commits what a writer has finished, now and then: an interrupted run loses no more."""

    def __init__(self, writer: ShardWriter) -> None:
        self._writer = writer
        self._last = time.monotonic()

    def perhaps(self) -> None:
        """Commit if the last time was long enough ago."""
        if time.monotonic() - self._last >= _PAUSE_SECONDS:
            self._writer.commit(all_rows=False)
            self._last = time.monotonic()
