"""Values that stay with workers: one actor for each place, made again where it is lost."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from evergrow.distributed.failing import raised_elsewhere
from evergrow.distributed.on_worker import Keeper
from evergrow.distributed.versions import versions_here
from evergrow.foundation.engine import Arrays, Change, Step
from evergrow.foundation.errors import ClusterError

__all__ = ["Keepers"]

# A new actor imports its modules from a disk that may be cold or shared by many.
_FIRST_SECONDS = 60.0


@dataclass(eq=False)
class _Actor:
    """A keeper on a worker, and the versions that it has."""

    handle: Any
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Running:
    place: int
    actor: _Actor
    result: Any
    # When it is late.
    deadline: float


@dataclass(frozen=True)
class _Work:
    change: Change
    parts: Sequence[Any]
    shared: Sequence[Any]
    step: Step
    what: str


class Keepers:
    """Actors of a Ray cluster that keep values.

    Whoever asks has what makes every value, so an actor need not survive anything: one that dies,
    or takes too long, is replaced by another that begins with the version before.

    Parameters
    ----------
    retries : int
        How often a change is made again whose actor is lost.
    task_timeout : float or None
        Seconds after which an actor that is not done is stopped.
    """

    def __init__(self, retries: int, task_timeout: float | None) -> None:
        self._retries = retries
        self._task_timeout = task_timeout
        self._actors: dict[int, _Actor] = {}
        self._unwanted: deque[str] = deque()

    def let_go(self, name: str) -> None:
        """Have a version dropped when actors are next spoken to: whoever calls may be anywhere."""
        self._unwanted.append(name)

    def close(self) -> None:
        """End all actors."""
        for place in list(self._actors):
            self._end(place)

    def changed(
        self, change: Change, parts: Sequence[Any], shared: Sequence[Any], step: Step, what: str
    ) -> Generator[tuple[int, Arrays]]:
        """Give (place, result) as changes are made; ``shared`` are references."""
        ray: Any = import_module("ray")
        work = _Work(change, parts, shared, step, what)
        self._drop_unwanted()
        running: dict[Any, _Running] = {}
        n_tries: Counter[int] = Counter()

        def start(place: int) -> None:
            n_tries[place] += 1
            note, started = self._start(work, place)
            running[note] = started

        try:
            for place in range(len(parts)):
                start(place)
            while running:
                notes, _ = ray.wait(list(running), num_returns=1, timeout=self._patience(running))
                # Without notes one is late.
                overdue = min(running, key=lambda note: running[note].deadline)
                one = running.pop(notes[0] if notes else overdue)
                result = self._result(work, one, n_tries[one.place]) if notes else None
                if result is not None:
                    one.actor.names.add(step.after)
                    yield one.place, result
                else:
                    self._end(one.place)
                    self._check_tries(work, one.place, n_tries[one.place], timed_out=not notes)
                    start(one.place)
        finally:
            # Also when whoever asked has stopped asking: nothing goes on computing for nobody.
            for one in running.values():
                self._end(one.place)

    def _start(self, work: _Work, place: int) -> tuple[Any, _Running]:
        actor = self._actors.get(place)
        deadline = time.monotonic() + (self._task_timeout or 0.0)
        if actor is None:
            deadline += _FIRST_SECONDS
            remote: Any = import_module("ray").remote
            # It needs a free processor to be placed, as by default, but holds none: tasks of other
            # work in the same block need them while it waits.
            made = remote(Keeper).options(scheduling_strategy="SPREAD", max_restarts=0).remote()
            actor = self._actors[place] = _Actor(made)
        step, here = work.step, versions_here()
        if step.before not in actor.names:
            make, values = step.load(place)
            # Actors do one thing after the other; if this fails the change fails.
            actor.handle.load.remote(here, step.before, make, *values)
            actor.names.add(step.before)
        change = actor.handle.change.options(num_returns=2)
        names = (step.before, step.after)
        note, result = change.remote(here, work.change, names, work.parts[place], *work.shared)
        return note, _Running(place, actor, result, deadline)

    def _patience(self, running: dict[Any, _Running]) -> float | None:
        if self._task_timeout is None:
            return None
        return max(0.0, min(one.deadline for one in running.values()) - time.monotonic())

    def _result(self, work: _Work, one: _Running, n_tries: int) -> Arrays | None:
        """What a change gave; None if its actor is lost, or the result with its node."""
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
            self._end(one.place)
            raise raised_elsewhere(error, work.what, self._retries) from None
        except ray.exceptions.RayError as error:
            # It may have lost what it had, or never had it: the next begins anew.
            self._end(one.place)
            raise raised_elsewhere(error, work.what, self._retries) from None
        return result

    def _check_tries(self, work: _Work, place: int, n_tries: int, *, timed_out: bool) -> None:
        if not timed_out or n_tries <= self._retries:
            return
        tries = "its only try" if self._retries == 0 else f"each of {n_tries} tries"
        raise ClusterError(
            f"{work.what} was given up: part {place} took longer than "
            f"task_timeout={self._task_timeout:g} seconds in {tries}"
        )

    def _end(self, place: int) -> None:
        ray: Any = import_module("ray")
        actor = self._actors.pop(place, None)
        if actor is not None and ray.is_initialized():
            ray.kill(actor.handle)

    def _drop_unwanted(self) -> None:
        names = set()
        while self._unwanted:
            names.add(self._unwanted.popleft())
        for actor in self._actors.values():
            gone = actor.names & names
            if gone:
                actor.names -= gone
                actor.handle.let_go.remote(sorted(gone))
