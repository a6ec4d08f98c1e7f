"""One thread that changes the workspace; everybody else waits for it, or only reads."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, Self

from evergrow.service.http.problems import ProblemError
from evergrow.workspace.records import Change, NewExample, TeachResult

__all__ = ["Writer"]

# Lessons that share one transaction: enough to be fast, few enough to answer soon.
_MAX_TOGETHER = 64

_log = logging.getLogger("evergrow.service")


class _Teachable(Protocol):
    def teach(self, lessons: list[NewExample]) -> list[TeachResult]: ...


@dataclass(frozen=True, eq=False)
class _Teach:
    lesson: NewExample
    result: Future[TeachResult] = field(default_factory=Future)


@dataclass(frozen=True, eq=False)
class _Do:
    change: Callable[[], Change]
    result: Future[Change] = field(default_factory=Future)


class Writer:
    """The queue of changes and the thread that works it off; a context manager.

    Lessons that wait together are written together. If that fails, each is tried by itself, so
    that only the one that is wrong fails.

    Parameters
    ----------
    workspace : Workspace
        What is changed; by nobody else.
    max_queue : int
        Changes that may wait.
    written : callable
        Told after each transaction how many changes it held.
    """

    def __init__(
        self, workspace: _Teachable, *, max_queue: int, written: Callable[[int], None]
    ) -> None:
        self._workspace = workspace
        self._queue: queue.Queue[_Teach | _Do | None] = queue.Queue(max_queue)
        self._written = written
        self._stopping = False
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Finish what waits and end the thread."""
        self.finish()

    def finish(self) -> None:
        """Refuse further changes, make those that wait, end the thread."""
        self.refuse()
        if self._thread.is_alive():
            # Under the lock: whoever was not refused yet has put their change before the end.
            with self._guard:
                self._queue.put(None)
            self._thread.join()

    def refuse(self) -> None:
        """Take no further changes; those that wait are still made.

        Takes no lock: a signal may come while the thread that it interrupts holds it.
        """
        self._stopping = True

    @property
    def n_waiting(self) -> int:
        """Changes that wait."""
        return self._queue.qsize()

    def teach(self, lesson: NewExample) -> Future[TeachResult]:
        """Have one lesson taught."""
        item = _Teach(lesson)
        self._put(item)
        return item.result

    def change(self, change: Callable[[], Change]) -> Future[Change]:
        """Have something else changed: ``change`` is called by the writing thread."""
        item = _Do(change)
        self._put(item)
        return item.result

    def check_open(self) -> None:
        """Raise a ``ProblemError`` if nothing is taken at present."""
        if self._stopping:
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "the service is stopping")
        self.check_working()
        if self._queue.full():
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "too many changes are waiting")

    def check_working(self) -> None:
        """Raise a ``ProblemError`` if the thread is gone: nothing can be changed without it."""
        if not self._thread.is_alive():
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the thread that writes has ended; the service must be started again",
            )

    def _put(self, item: _Teach | _Do) -> None:
        # Under the lock: what is taken before the end of the queue is also worked off.
        with self._guard:
            self.check_open()
            try:
                self._queue.put_nowait(item)
            except queue.Full:
                raise ProblemError(
                    HTTPStatus.SERVICE_UNAVAILABLE, "too many changes are waiting"
                ) from None

    def _work(self) -> None:
        item = self._queue.get()
        while item is not None:
            if isinstance(item, _Do):
                if item.result.set_running_or_notify_cancel():
                    _settle(item.result, item.change)
                    self._written(1)
                item = self._queue.get()
                continue
            together, item = self._gathered(item)
            self._teach(together)
            self._written(len(together))
            del together
            if item is _NOTHING:
                item = self._queue.get()

    def _gathered(self, first: _Teach) -> tuple[list[_Teach], Any]:
        """Lessons that wait behind one, and what comes after them."""
        together, keys = [first], {_key(first)}
        while len(together) < _MAX_TOGETHER:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return together, _NOTHING
            # The same request twice: the second must find what the first left.
            if not isinstance(item, _Teach) or (_key(item) is not None and _key(item) in keys):
                return together, item
            keys.add(_key(item))
            together.append(item)
        return together, _NOTHING

    def _teach(self, together: list[_Teach]) -> None:
        # From here on nobody can take a lesson back: what is written is also told.
        together = [item for item in together if item.result.set_running_or_notify_cancel()]
        if len(together) > 1:
            try:
                taught = self._workspace.teach([item.lesson for item in together])
            # Nothing was taught; which lesson was to blame shows when each is alone.
            except Exception:  # noqa: BLE001
                _log.info("writing lessons one by one")
            else:
                for item, one in zip(together, taught, strict=True):
                    item.result.set_result(one)
                return
        for item in together:
            _settle(item.result, partial(self._teach_one, item.lesson))

    def _teach_one(self, lesson: NewExample) -> TeachResult:
        return self._workspace.teach([lesson])[0]


_NOTHING: Any = object()


def _key(item: _Teach) -> tuple[str, str] | None:
    request = item.lesson.request
    return None if request.key is None else (request.actor, request.key)


def _settle(result: Future[Any], make: Callable[[], Any]) -> None:
    try:
        found = make()
    # Belongs to the request; the thread goes on.
    except Exception as error:  # noqa: BLE001
        result.set_exception(error)
    else:
        result.set_result(found)
