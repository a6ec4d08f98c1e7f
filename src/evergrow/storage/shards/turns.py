"""One at a time appends to a folder of shards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evergrow.foundation.errors import ShardError
from evergrow.foundation.locks import lock_path, locked
from evergrow.storage.shards.manifest import MANIFEST

__all__ = ["own_turn"]


class _Held(threading.local):
    """The folders that this thread is appending to."""

    def __init__(self) -> None:
        self.folders: set[Path] = set()


_HELD = _Held()


@contextmanager
def own_turn(folder: Path, say_waiting: Callable[[], None] | None) -> Iterator[None]:
    """Wait until nobody else appends to a folder, and keep others waiting meanwhile.

    ``say_waiting`` is called before waiting. A ``ShardError`` if this very thread is appending to
    the folder: it would wait for itself.
    """
    lock = lock_path(folder / MANIFEST)
    if lock in _HELD.folders:
        raise ShardError(
            f"{str(folder)!r} is being appended to already, and what makes the batches tries to do "
            "the same: append one after the other, or to another folder"
        )
    with locked(folder / MANIFEST, say_waiting or (lambda: None)):
        _HELD.folders.add(lock)
        try:
            yield
        finally:
            _HELD.folders.discard(lock)
