"""The thread that makes all changes of the workspace, and the thread for follow-up work."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, Self

from evergrow.service.http.responses import unavailable
from evergrow.workspace.records import Change, NewExample, TeachResult

# Examples written in one transaction: enough to be fast, few enough to respond soon.
_MAX_BATCH = 64

# Follow-up work has a lower priority than requests.
_NICENESS = 10
# Pause between two rounds of follow-up work: one round serves all changes of this time.
_PAUSE_SECONDS = 0.25
# The pause is also this many times as long as the work took, so that follow-up work uses at most a
# tenth of one processor, however many classes there are.
_PAUSE_RATIO = 9.0

_log = logging.getLogger("evergrow.service")


class _Teachable(Protocol):
    def teach(self, examples: list[NewExample], /) -> list[TeachResult]: ...


@dataclass(frozen=True, eq=False)
class _QueuedExample:
    example: NewExample
    result: Future[TeachResult] = field(default_factory=Future)


@dataclass(frozen=True, eq=False)
class _QueuedChange:
    change: Callable[[], Change]
    result: Future[Change] = field(default_factory=Future)


class WriterThread:
    """A queue of changes and the thread that makes them; a context manager.

    Queued examples are written together in one transaction. If that fails, each is tried by itself,
    so that only the invalid one fails. Nothing else may change the workspace. After each
    transaction ``on_written`` is called with its number of changes.
    """

    def __init__(
        self, workspace: _Teachable, *, max_queue: int, on_written: Callable[[int], None]
    ) -> None:
        self._workspace = workspace
        self._queue: queue.Queue[_QueuedExample | _QueuedChange | None] = queue.Queue(max_queue)
        self._on_written = on_written
        self._stopping = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Make the queued changes and stop the thread."""
        self.finish()

    def finish(self) -> None:
        """Refuse further changes, make the queued ones, stop the thread."""
        self.refuse()
        if self._thread.is_alive():
            # Under the lock: a change that was not refused is queued before the end mark.
            with self._lock:
                self._queue.put(None)
            self._thread.join()

    def refuse(self) -> None:
        """Refuse further changes; queued ones are still made.

        This takes no lock: a signal handler may call it while the interrupted thread holds the
        lock.
        """
        self._stopping = True

    @property
    def n_waiting(self) -> int:
        """Number of queued changes."""
        return self._queue.qsize()

    def teach(self, example: NewExample) -> Future[TeachResult]:
        """Queue one example."""
        item = _QueuedExample(example)
        self._put(item)
        return item.result

    def change(self, change: Callable[[], Change]) -> Future[Change]:
        """Queue another change: ``change`` is called in the writer thread."""
        item = _QueuedChange(change)
        self._put(item)
        return item.result

    def check_open(self) -> None:
        """Raise a ``ProblemError`` if no change is accepted now."""
        if self._stopping:
            raise unavailable("the service is stopping")
        self.check_alive()
        if self._queue.full():
            raise unavailable("too many changes are queued; retry later")

    def check_alive(self) -> None:
        """Raise a ``ProblemError`` if the thread has ended: nothing can be changed without it."""
        if not self._thread.is_alive():
            raise unavailable("the writer thread has ended; restart the service")

    def _put(self, item: _QueuedExample | _QueuedChange) -> None:
        # Under the lock: a change that is queued before the end mark is also made.
        with self._lock:
            self.check_open()
            try:
                self._queue.put_nowait(item)
            except queue.Full:
                raise unavailable("too many changes are queued; retry later") from None

    def _run(self) -> None:
        item = self._queue.get()
        while item is not None:
            if isinstance(item, _QueuedChange):
                if item.result.set_running_or_notify_cancel():
                    _complete(item.result, item.change)
                    self._on_written(1)
                item = self._queue.get()
                continue
            batch, item = self._gather_batch(item)
            self._teach(batch)
            self._on_written(len(batch))
            del batch
            if item is _NOTHING:
                item = self._queue.get()

    def _gather_batch(self, first: _QueuedExample) -> tuple[list[_QueuedExample], Any]:
        """Return the examples that can be written together, and the next item of the queue."""
        batch, keys = [first], {_key(first)}
        while len(batch) < _MAX_BATCH:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, _NOTHING
            # A repeated request must find what the first one wrote.
            if not isinstance(item, _QueuedExample) or (_key(item) and _key(item) in keys):
                return batch, item
            keys.add(_key(item))
            batch.append(item)
        return batch, _NOTHING

    def _teach(self, batch: list[_QueuedExample]) -> None:
        # From here on an example cannot be cancelled: its result is reported.
        batch = [item for item in batch if item.result.set_running_or_notify_cancel()]
        if len(batch) > 1:
            try:
                results = self._workspace.teach([item.example for item in batch])
            # Nothing was written; trying each example by itself shows which one is invalid.
            except Exception:  # noqa: BLE001
                _log.info("writing examples one by one")
            else:
                for item, one in zip(batch, results, strict=True):
                    item.result.set_result(one)
                return
        for item in batch:
            _complete(item.result, partial(self._teach_one, item.example))

    def _teach_one(self, example: NewExample) -> TeachResult:
        return self._workspace.teach([example])[0]


_NOTHING: Any = object()


def _key(item: _QueuedExample) -> tuple[str, str] | None:
    request = item.example.request
    return None if request.key is None else (request.actor, request.key)


def _complete(result: Future[Any], make: Callable[[], Any]) -> None:
    try:
        found = make()
    # The error belongs to the request; the thread goes on.
    except Exception as error:  # noqa: BLE001
        result.set_exception(error)
    else:
        result.set_result(found)


class BackgroundThread:
    """A low-priority thread that runs tasks after changes; a context manager.

    Each task decides itself whether there is anything to do.
    """

    def __init__(
        self, tasks: Sequence[Callable[[], Any]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tasks = tuple(tasks)
        self._clock = clock
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread after the current task."""
        self.stop()

    def stop(self) -> None:
        """Stop the thread after the current task."""
        self._stopping.set()
        self._changed.set()
        self._thread.join()

    def notify(self) -> None:
        """Request a round of tasks."""
        self._changed.set()

    def _run(self) -> None:
        lower_priority(_NICENESS)
        while True:
            self._changed.wait()
            self._changed.clear()
            began = self._clock()
            for task in self._tasks:
                if self._stopping.is_set():
                    return
                _run_logged(task)
            taken = self._clock() - began
            if self._stopping.wait(max(_PAUSE_SECONDS, _PAUSE_RATIO * taken)):
                return


def _run_logged(task: Callable[[], Any]) -> None:
    try:
        task()
    # No request waits for it, so the log is the only place to report it.
    except Exception:  # noqa: BLE001
        _log.exception("a background task failed")


def lower_priority(niceness: int) -> None:
    """Let other threads run before the calling one; changes nothing where that is not possible."""
    # Only Linux has priorities of threads.
    if sys.platform != "linux":
        return
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
    except OSError:
        return
