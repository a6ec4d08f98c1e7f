"""Values that stay with workers: one actor per part, replaced when it is lost."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Generator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from evergrow.distributed.dispatch import check_tries, local_error
from evergrow.distributed.worker import ResidentValue, local_versions
from evergrow.foundation.engine import Arrays, Job, VersionChange

# Extra time for a new actor, which imports modules from a disk that may be cold or shared.
_START_SECONDS = 60.0


@dataclass(eq=False)
class _Actor:
    """An actor and the versions of the value that it holds."""

    handle: Any
    versions: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Running:
    index: int
    actor: _Actor
    result: Any
    deadline: float


class ResidentActors:
    """Actors of a Ray cluster that each hold the value of one part.

    The caller can make every value again, so no actor has to survive. One that dies or takes too
    long (``task_timeout``, in seconds) is replaced by another that starts from the old version, at
    most ``retries`` times.
    """

    def __init__(self, retries: int, task_timeout: float | None) -> None:
        self._retries = retries
        self._task_timeout = task_timeout
        self._actors: dict[int, _Actor] = {}
        self._released: deque[str] = deque()

    def release(self, name: str) -> None:
        """Drop a version at the next update.

        The call may come from any thread or from the garbage collector, where Ray must not be used.
        """
        self._released.append(name)

    def close(self) -> None:
        """Stop all actors."""
        for index in list(self._actors):
            self._stop(index)

    def update(self, job: Job, versions: VersionChange) -> Generator[tuple[int, Arrays]]:
        """Yield (index, result) as values change; the shared values are Ray references."""
        ray: Any = import_module("ray")
        self._drop_released()
        running: dict[Any, _Running] = {}
        n_tries: Counter[int] = Counter()

        def start(index: int) -> None:
            n_tries[index] += 1
            receipt, started = self._start(job, versions, index)
            running[receipt] = started

        try:
            for index in range(len(job.parts)):
                start(index)
            while running:
                done, _ = ray.wait(list(running), num_returns=1, timeout=self._time_left(running))
                # If nothing finished in time, the call with the earliest deadline is late.
                late = min(running, key=lambda receipt: running[receipt].deadline)
                one = running.pop(done[0] if done else late)
                result = self._result(job, one, n_tries[one.index]) if done else None
                if result is not None:
                    one.actor.versions.add(versions.after)
                    yield one.index, result
                    continue
                self._stop(one.index)
                if not done and self._task_timeout is not None:
                    n, limit = n_tries[one.index], self._task_timeout
                    check_tries(job.description, one.index, n, self._retries, limit)
                start(one.index)
        finally:
            # Also when the caller closes the generator early.
            for one in running.values():
                self._stop(one.index)

    def _start(self, job: Job, versions: VersionChange, index: int) -> tuple[Any, _Running]:
        actor = self._actors.get(index)
        deadline = time.monotonic() + (self._task_timeout or 0.0)
        if actor is None:
            deadline += _START_SECONDS
            remote: Any = import_module("ray").remote
            # Ray's default: the actor needs a free processor to be placed, and then reserves none,
            # so that other tasks of the same block can use it.
            options = {"scheduling_strategy": "SPREAD", "max_restarts": 0}
            actor = _Actor(remote(ResidentValue).options(**options).remote())
            self._actors[index] = actor
        expected = local_versions()
        if versions.before not in actor.versions:
            make, values = versions.load(index)
            # An actor runs its calls in order; if this one fails, the change fails too.
            actor.handle.load.remote(expected, versions.before, make, *values)
            actor.versions.add(versions.before)
        change = actor.handle.change.options(num_returns=2)
        names = (versions.before, versions.after)
        receipt, result = change.remote(expected, job.task, names, job.parts[index], *job.shared)
        return receipt, _Running(index, actor, result, deadline)

    def _time_left(self, running: dict[Any, _Running]) -> float | None:
        if self._task_timeout is None:
            return None
        return max(0.0, min(one.deadline for one in running.values()) - time.monotonic())

    def _result(self, job: Job, one: _Running, n_tries: int) -> Arrays | None:
        """Fetch the result of a change; None if its actor or node was lost."""
        ray: Any = import_module("ray")
        lost = (
            ray.exceptions.RayActorError,
            ray.exceptions.ObjectLostError,
            ray.exceptions.ObjectFetchTimedOutError,
        )
        try:
            result: Arrays = ray.get(one.result)
        except lost as error:
            if n_tries <= self._retries:
                return None
            self._stop(one.index)
            raise local_error(error, job.description, self._retries) from None
        except ray.exceptions.RayError as error:
            # The actor may be in any state: the next update starts with a new one.
            self._stop(one.index)
            raise local_error(error, job.description, self._retries) from None
        return result

    def _stop(self, index: int) -> None:
        ray: Any = import_module("ray")
        actor = self._actors.pop(index, None)
        if actor is not None and ray.is_initialized():
            ray.kill(actor.handle)

    def _drop_released(self) -> None:
        released = set()
        while self._released:
            released.add(self._released.popleft())
        for actor in self._actors.values():
            dropped = actor.versions & released
            if dropped:
                actor.versions -= dropped
                actor.handle.release.remote(sorted(dropped))
