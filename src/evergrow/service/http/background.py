"""What follows teaching without anybody waiting for it: assessments, and the forest beside."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

__all__ = ["Background"]

_log = logging.getLogger("evergrow.service")
# Requests go first.
_NICENESS = 10
# Between two looks at what is due: while many examples come, one look serves many of them.
_PAUSE_SECONDS = 0.25
# And this many times as long as the work took: a tenth of one processor at most, however many
# classes there are.
_PAUSE_SHARE = 9.0


class Background:
    """A thread that works whenever it was told that something changed; a context manager.

    Parameters
    ----------
    tasks : sequence of callable
        Each decides itself whether there is anything to do.
    clock : callable
        Gives the seconds since some moment.
    """

    def __init__(
        self, tasks: Sequence[Callable[[], Any]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tasks = tuple(tasks)
        self._clock = clock
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="background", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread after the task that it is at."""
        self._stopping.set()
        self._changed.set()
        self._thread.join()

    def tell(self) -> None:
        """Say that something changed."""
        self._changed.set()

    def _work(self) -> None:
        _step_back()
        while True:
            self._changed.wait()
            self._changed.clear()
            began = self._clock()
            for task in self._tasks:
                if self._stopping.is_set():
                    return
                _try(task)
            taken = self._clock() - began
            if self._stopping.wait(max(_PAUSE_SECONDS, _PAUSE_SHARE * taken)):
                return


def _try(task: Callable[[], Any]) -> None:
    try:
        task()
    # Nobody asked for it, nobody is answered: the log is the place to say so.
    except Exception:  # noqa: BLE001
        _log.exception("work in the background failed")


def _step_back() -> None:
    # Threads have priorities of their own on Linux only.
    if sys.platform != "linux":
        return
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
    except OSError:
        return
