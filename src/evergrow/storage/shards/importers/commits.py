"""How often what was written is named in the manifest while work goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from evergrow.storage.shards.writing import ShardWriter

__all__ = ["committing"]

# A manifest of many shards takes a while to write: not after each of them.
_PAUSE_SECONDS = 2.0


@contextmanager
def committing(writer: ShardWriter) -> Iterator[Callable[[], None]]:
    """Give a function that commits finished shards if the last time was long enough ago.

    At the end, also that of an interruption, all that is finished is committed: whoever is killed
    loses what came in the last seconds, whoever is interrupted loses nothing. A commit that failed
    is not tried again, and whatever ended the work is the error that is seen.
    """
    last = time.monotonic()
    is_broken = False

    def commit() -> None:
        nonlocal is_broken
        # Files may have their names and no manifest that lists them: that is for others to tidy.
        is_broken = True
        writer.commit(all_rows=False)
        is_broken = False

    def perhaps() -> None:
        nonlocal last
        if time.monotonic() - last >= _PAUSE_SECONDS:
            commit()
            last = time.monotonic()

    try:
        yield perhaps
    except BaseException:
        if not is_broken:
            with suppress(OSError, ValueError):
                commit()
        raise
    commit()
