"""Submits calls to Ray, a few at a time, and collects those that finish."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evergrow.foundation.errors import ClusterError

# A forked process inherits a connection to Ray that it must not use: parent and child would give
# their objects the same names and receive each other's results.
# The process whose connection to Ray this one inherited, if any.
_inherited_from: list[int] = []


def _note_fork() -> None:
    ray: Any = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        _inherited_from.append(os.getppid())


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def is_forked() -> bool:
    """Whether this process was forked from one that was connected to Ray."""
    return bool(_inherited_from)


def check_not_forked() -> None:
    """Raise a ``ClusterError`` in a forked process, before Ray is used."""
    if is_forked():
        raise ClusterError(
            "this process was forked inside evergrow.cluster, or while connected to Ray, from "
            f"process {_inherited_from[0]}, whose connection it cannot use: start processes with "
            "the method 'spawn', or do their work in evergrow.cluster(None)"
        )


# Seconds that cancelled calls have to end.
_CANCEL_SECONDS = 1.0

# References to two objects: a small receipt that says the call is done, and its result.
Pair = tuple[Any, Any]


def check_connected() -> None:
    """Raise a ``ClusterError`` if Ray is not connected; a call would start a new cluster."""
    check_not_forked()
    import ray

    if not ray.is_initialized():
        raise ClusterError(
            "Ray was shut down inside the block of evergrow.cluster, which does that when it ends"
        )


@dataclass
class RemoteCall:
    """One call on a worker; ``start`` submits it to Ray."""

    index: int
    start: Callable[[], Pair]
    n_tries: int = 0


@dataclass(frozen=True)
class _Running:
    call: RemoteCall
    result: Any
    started: float


class Dispatcher:
    """Keeps a number of calls running until none is left.

    Ray queues, places and retries them. This class limits how many are submitted at once and how
    long each may take, and cancels the rest when one fails.
    The description names the work in error messages.
    """

    def __init__(
        self, description: str, n_at_once: int, retries: int, task_timeout: float | None
    ) -> None:
        self.description = description
        self.n_at_once = n_at_once
        self.retries = retries
        self.task_timeout = task_timeout
        self.n_bytes = 0
        self._running: dict[Any, _Running] = {}

    def finished(self, ready: deque[RemoteCall]) -> Generator[tuple[RemoteCall, Any]]:
        """Yield (call, reference to its result) as calls finish; ``ready`` may grow meanwhile."""
        import ray

        try:
            while ready or self._running:
                check_connected()
                self._start_waiting(ready)
                done, _ = ray.wait(list(self._running), num_returns=1, timeout=self._time_left())
                self._restart_late_calls()
                for receipt in done:
                    running = self._running.pop(receipt, None)
                    if running is not None and self._is_done(receipt, running, ready):
                        # Workers go on while the caller uses the result.
                        self._start_waiting(ready)
                        yield running.call, running.result
        finally:
            # Also when the caller closes the generator early.
            self._cancel()

    def value_of(self, reference: Any) -> Any:
        """Fetch the result of a call that succeeded."""
        import ray

        try:
            return ray.get(reference)
        except ray.exceptions.RayError as error:
            raise local_error(error, self.description, self.retries) from None

    def _start_waiting(self, ready: deque[RemoteCall]) -> None:
        while ready and len(self._running) < self.n_at_once:
            self._start(ready.popleft())

    def _start(self, call: RemoteCall) -> None:
        call.n_tries += 1
        receipt, result = call.start()
        self._running[receipt] = _Running(call, result, time.monotonic())

    def _time_left(self) -> float | None:
        if self.task_timeout is None or not self._running:
            return None
        first = min(running.started for running in self._running.values())
        return max(0.0, first + self.task_timeout - time.monotonic())

    def _is_done(self, receipt: Any, running: _Running, ready: deque[RemoteCall]) -> bool:
        import ray

        try:
            self.n_bytes += ray.get(receipt)
        except ray.exceptions.RayError as error:
            _fetch_errors([running.result])
            if _can_retry(error) and running.call.n_tries <= self.retries:
                ready.appendleft(running.call)
                return False
            raise local_error(error, self.description, self.retries) from None
        return True

    def _restart_late_calls(self) -> None:
        if self.task_timeout is None:
            return
        import ray

        now = time.monotonic()
        late = [r for r, one in self._running.items() if now - one.started > self.task_timeout]
        done, _ = ray.wait(late, num_returns=len(late), timeout=0) if late else ([], [])
        for receipt in set(late) - set(done):
            call = self._running.pop(receipt).call
            ray.cancel(receipt, force=True)
            check_tries(self.description, call.index, call.n_tries, self.retries, self.task_timeout)
            self._start(call)

    def _cancel(self) -> None:
        # In a forked process these calls belong to the parent.
        if is_forked():
            return
        import ray

        running, self._running = self._running, {}
        if not ray.is_initialized():
            return
        for receipt in running:
            ray.cancel(receipt, force=True)
        if running:
            ended, _ = ray.wait(list(running), num_returns=len(running), timeout=_CANCEL_SECONDS)
            for receipt in ended:
                _fetch_errors([receipt, running[receipt].result])


def check_tries(
    description: str, index: int, n_tries: int, retries: int, task_timeout: float
) -> None:
    """Raise a ``ClusterError`` if a part that timed out has no retry left."""
    if n_tries <= retries:
        return
    tries = "its only try" if retries == 0 else f"each of {n_tries} tries"
    raise ClusterError(
        f"{description} failed: part {index} took longer than task_timeout={task_timeout:g} "
        f"seconds in {tries}"
    )


def _fetch_errors(references: list[Any]) -> None:
    """Fetch errors, because Ray prints those that were never fetched at exit.

    Stops at the first reference without an error: results may be large.
    """
    import ray

    for reference in references:
        with suppress(ray.exceptions.RayError):
            ray.get(reference)
            return


def _can_retry(error: BaseException) -> bool:
    """Whether a result was computed but lost on its way, beyond what Ray recovers itself."""
    from ray import exceptions

    return isinstance(error, exceptions.ObjectLostError | exceptions.ObjectFetchTimedOutError)


def local_error(error: BaseException, description: str, retries: int) -> BaseException:
    """Return the exception to raise here for an error that Ray reported.

    An error raised by the task is raised again, with the traceback of the worker as a note. The
    loss of a worker becomes a ``ClusterError``.
    """
    from ray import exceptions

    cause = getattr(error, "cause", None)
    if isinstance(error, exceptions.RayTaskError) and isinstance(cause, Exception):
        # Ray's wrapper would hide the error behind a page of its own frames.
        cause.__cause__, cause.__suppress_context__ = None, True
        if not getattr(cause, "__notes__", None):
            cause.add_note(f"Raised on a worker of the cluster:\n{error}")
        return cause
    if isinstance(error, exceptions.RayTaskError):
        return ClusterError(f"{description} failed on a worker: {error}")
    if isinstance(error, exceptions.RayError):
        tries = "once" if retries == 0 else f"{retries + 1} times"
        return ClusterError(
            f"{description} failed: the workers of one of its parts were lost {tries}; if memory "
            f"ran out, use fewer workers on each node ({type(error).__name__}: {error})"
        )
    return error
