"""Handing jobs to Ray, a few at a time, and taking back what is finished."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evergrow.distributed.failing import is_worth_another_try, raised_elsewhere
from evergrow.distributed.forking import check_not_forked, is_forked
from evergrow.foundation.errors import ClusterError

__all__ = ["Dispatcher", "Job", "check_connected"]

# How long jobs that were stopped may take to say so.
_STOPPING_SECONDS = 1.0

# References to two objects: a small note that a job is done, and its result.
Pair = tuple[Any, Any]


def check_connected() -> None:
    """Raise a ``ClusterError`` where Ray cannot be used: asked now, it would start itself."""
    check_not_forked()
    import ray

    if not ray.is_initialized():
        raise ClusterError(
            "Ray was shut down inside the block of evergrow.cluster: leave that to the block"
        )


@dataclass
class Job:
    """One call on a worker; ``start`` hands it to Ray."""

    place: int
    start: Callable[[], Pair]
    n_tries: int = 0


@dataclass(frozen=True)
class _Running:
    job: Job
    result: Any
    started: float


class Dispatcher:
    """Keeps some jobs running until none is left.

    Ray queues, places and repeats them; here is only how many it is given at once, how long one may
    take, and that none is left behind when something fails.

    Parameters
    ----------
    what : str
        What the work is called in messages.
    n_at_once : int
        Jobs that Ray is given at once.
    retries : int
        How often a job is done again.
    task_timeout : float or None
        Seconds after which a job that is not done is stopped and begun again.
    """

    def __init__(self, what: str, n_at_once: int, retries: int, task_timeout: float | None) -> None:
        self.what = what
        self.n_at_once = n_at_once
        self.retries = retries
        self.task_timeout = task_timeout
        self.n_bytes = 0
        self._running: dict[Any, _Running] = {}

    def finished(self, ready: deque[Job]) -> Generator[tuple[Job, Any]]:
        """Give (job, reference to its result) as jobs finish; more may be added meanwhile."""
        import ray

        try:
            while ready or self._running:
                check_connected()
                while ready and len(self._running) < self.n_at_once:
                    self._start(ready.popleft())
                notes, _ = ray.wait(list(self._running), num_returns=1, timeout=self._patience())
                self._begin_late_ones_again()
                for note in notes:
                    running = self._running.pop(note, None)
                    if running is not None and self._is_done(note, running, ready):
                        yield running.job, running.result
        finally:
            # Also when whoever asked has stopped asking: nothing goes on computing for nobody.
            self._cancel()

    def value_of(self, reference: Any) -> Any:
        """Fetch a result that no failure of the work can have spoilt."""
        import ray

        try:
            return ray.get(reference)
        except ray.exceptions.RayError as error:
            raise raised_elsewhere(error, self.what, self.retries) from None

    def _start(self, job: Job) -> None:
        job.n_tries += 1
        note, result = job.start()
        self._running[note] = _Running(job, result, time.monotonic())

    def _patience(self) -> float | None:
        if self.task_timeout is None or not self._running:
            return None
        first = min(running.started for running in self._running.values())
        return max(0.0, first + self.task_timeout - time.monotonic())

    def _is_done(self, note: Any, running: _Running, ready: deque[Job]) -> bool:
        import ray

        try:
            self.n_bytes += ray.get(note)
        except ray.exceptions.RayError as error:
            _take_note([running.result])
            if is_worth_another_try(error) and running.job.n_tries <= self.retries:
                ready.appendleft(running.job)
                return False
            raise raised_elsewhere(error, self.what, self.retries) from None
        return True

    def _begin_late_ones_again(self) -> None:
        if self.task_timeout is None:
            return
        import ray

        now = time.monotonic()
        late = [n for n, one in self._running.items() if now - one.started > self.task_timeout]
        done, _ = ray.wait(late, num_returns=len(late), timeout=0) if late else ([], [])
        for note in set(late) - set(done):
            job = self._running.pop(note).job
            ray.cancel(note, force=True)
            if job.n_tries > self.retries:
                tries = "its only try" if self.retries == 0 else f"each of {job.n_tries} tries"
                raise ClusterError(
                    f"{self.what} was given up: part {job.place} took longer than "
                    f"task_timeout={self.task_timeout:g} seconds in {tries}"
                )
            self._start(job)

    def _cancel(self) -> None:
        # In a process that was forked this is the work of the other one.
        if is_forked():
            return
        import ray

        running, self._running = self._running, {}
        if not ray.is_initialized():
            return
        for note in running:
            ray.cancel(note, force=True)
        if running:
            over, _ = ray.wait(list(running), num_returns=len(running), timeout=_STOPPING_SECONDS)
            for note in over:
                _take_note([note, running[note].result])


def _take_note(references: list[Any]) -> None:
    """Fetch errors, of which Ray would complain at the end if nobody had seen them.

    Stops at what is no error: results may be large.
    """
    import ray

    for reference in references:
        with suppress(ray.exceptions.RayError):
            ray.get(reference)
            return
