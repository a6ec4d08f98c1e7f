"""The engine whose workers are those of a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from evergrow.distributed.dispatch import Dispatcher, Job, check_connected
from evergrow.distributed.forking import is_forked
from evergrow.distributed.keepers import Keepers
from evergrow.distributed.on_worker import join_two, on_node, perform
from evergrow.distributed.versions import versions_here
from evergrow.foundation.engine import Arrays, Change, Check, Join, Shared, Step, Task
from evergrow.foundation.errors import ClusterError
from evergrow.foundation.progress import progress_bar

__all__ = ["RayEngine", "joining_order"]

# How long a node may take for something small; one that is about to leave may never do it.
_NODE_SECONDS = 10.0

# Parts that wait at Ray for each that runs, so that no worker waits for us.
_QUEUED_PER_WORKER = 1


@dataclass(frozen=True, eq=False)
class _InStore:
    """A value in Ray's object store; it stays there for as long as this lives."""

    reference: Any


class RayEngine:
    """Parts are Ray tasks: it places them, and does them again where a worker or node is lost.

    Parameters
    ----------
    n_workers : int or None
        Most parts at the same time; None for as many as the cluster has room for.
    threads_per_worker : int
        Processors that a part takes.
    retries : int
        How often a part is done again.
    task_timeout : float or None
        Seconds after which a part is stopped and begun again.
    updates : str
        Where forests are updated: "here", "workers" or "auto".
    verbose : int
        Show progress bars even where the estimator would not.
    """

    is_remote = True
    keeps_results = False

    def __init__(
        self,
        *,
        n_workers: int | None = None,
        threads_per_worker: int = 1,
        retries: int = 3,
        task_timeout: float | None = None,
        updates: str = "auto",
        verbose: int = 0,
    ) -> None:
        self._n_workers = n_workers
        self.threads_per_worker = threads_per_worker
        self._retries = retries
        self._task_timeout = task_timeout
        self.updates = updates
        self._verbose = verbose
        self._keepers = Keepers(retries, task_timeout)
        self._is_open = True
        # What came back from workers, for whoever wants to know what travelled.
        self.n_bytes = 0

    @property
    def n_workers(self) -> int:
        """How many parts run at the same time; a cluster may grow meanwhile."""
        if self._n_workers is not None:
            return self._n_workers
        self._check_open()
        cluster_resources: Any = import_module("ray").cluster_resources
        n_processors = cluster_resources().get("CPU", 1)
        return max(1, int(n_processors // self.threads_per_worker))

    def close(self) -> None:
        """Refuse work from now on, and end what stayed with workers."""
        self._is_open = False
        self._keepers.close()

    def share(self, value: Any) -> Shared:
        """Put a value into Ray's object store; workers read arrays of it where they lie."""
        self._check_open()
        import ray

        # Not remembered by identity: an array may have other values when it is shared again.
        shared: Shared = value if isinstance(value, _InStore) else _InStore(ray.put(value))
        return shared

    def on_every_node(self, task: Task, part: Any) -> None:
        """Do something small on every node that is there."""
        if is_forked():
            return
        ray: Any = import_module("ray")
        if not self._is_open or not ray.is_initialized():
            return
        calls = [on_node(ray, node, task, part) for node in ray.nodes() if node["Alive"]]
        ray.wait(calls, num_returns=len(calls), timeout=_NODE_SECONDS)

    def remember(self, name: str, make: Callable[[], Arrays]) -> Arrays:  # noqa: ARG002
        """What ``make`` gives."""
        return make()

    def run(
        self,
        task: Task,
        parts: Sequence[Any],
        shared: Sequence[Shared] = (),
        *,
        what: str,
        verbose: int = 0,
        name: str | None = None,  # noqa: ARG002
        check: Check | None = None,  # noqa: ARG002
    ) -> Iterator[tuple[int, Arrays]]:
        """Give (place of the part, result) in the order in which they finish."""
        dispatcher = self._dispatcher(what)
        ready = deque(self._jobs(task, parts, shared))
        with (
            progress_bar(what, len(parts), max(verbose, self._verbose)) as progress,
            closing(dispatcher.finished(ready)) as finished,
        ):
            for n_done, (job, result) in enumerate(finished, 1):
                value = dispatcher.value_of(result)
                self.n_bytes += dispatcher.n_bytes
                dispatcher.n_bytes = 0
                yield job.place, value
                # The result is the caller's; a reference here would keep it in the store.
                del value, result
                if progress is not None:
                    progress(n_done)

    def fold(
        self,
        task: Task,
        parts: Sequence[Any],
        join: Join,
        shared: Sequence[Shared] = (),
        *,
        what: str,
        verbose: int = 0,
        name: str | None = None,  # noqa: ARG002
    ) -> Arrays:
        """The results of all parts joined into one, two neighbours at a time, on the workers.

        Results stay in the object store; only the last one comes here.
        """
        if not len(parts):
            raise ValueError(f"there is nothing to do for {what}")
        dispatcher = self._dispatcher(what)
        joins = _Joins(len(parts))
        ready = deque(self._jobs(task, parts, shared))
        remote = self._remote(join_two)
        with progress_bar(what, len(parts), max(verbose, self._verbose)) as progress:
            n_done = 0
            for job, result in dispatcher.finished(ready):
                n_done += job.place < len(parts)
                if progress is not None:
                    progress(n_done)
                pair = joins.add(job.place, result)
                if pair is not None:
                    place, first, second = pair
                    # Before parts that are not yet begun: what is joined is no longer stored.
                    start = partial(remote, versions_here(), join, first, second)
                    ready.appendleft(Job(place, start))
        value: Arrays = dispatcher.value_of(joins.last)
        self.n_bytes += sum(array.nbytes for array in value.values())
        return value

    def change(
        self,
        change: Change,
        parts: Sequence[Any],
        shared: Sequence[Shared] = (),
        *,
        step: Step,
        what: str,
        verbose: int = 0,
    ) -> Iterator[tuple[int, Arrays]]:
        """Change values that stay with actors, one for each part."""
        self._check_open()
        references = [self.share(value).reference for value in shared]  # type: ignore[attr-defined]

        def load(place: int) -> tuple[Any, list[Any]]:
            make, values = step.load(place)
            # Ray gives an actor what a reference refers to.
            return make, [v.reference if isinstance(v, _InStore) else v for v in values]

        own = replace(step, load=load)
        with (
            progress_bar(what, len(parts), max(verbose, self._verbose)) as progress,
            closing(self._keepers.changed(change, parts, references, own, what)) as changed,
        ):
            for n_done, (place, result) in enumerate(changed, 1):
                self.n_bytes += sum(array.nbytes for array in result.values())
                yield place, result
                if progress is not None:
                    progress(n_done)

    def let_go(self, name: str) -> None:
        """Drop a version of values."""
        self._keepers.let_go(name)

    def _check_open(self) -> None:
        if not self._is_open:
            raise ClusterError("the block of evergrow.cluster is over: work needs a new one")
        check_connected()

    def _dispatcher(self, what: str) -> Dispatcher:
        self._check_open()
        n_at_once = self.n_workers
        if self._n_workers is None and self._task_timeout is None:
            n_at_once *= 1 + _QUEUED_PER_WORKER
        return Dispatcher(what, n_at_once, self._retries, self._task_timeout)

    def _remote(self, function: Any) -> Any:
        remote: Any = import_module("ray").remote
        options: dict[str, Any] = {
            "num_cpus": self.threads_per_worker,
            "num_returns": 2,
            "max_retries": self._retries,
            "scheduling_strategy": "SPREAD",
        }
        return remote(**options)(function).remote

    def _jobs(self, task: Task, parts: Sequence[Any], shared: Sequence[Shared]) -> list[Job]:
        references = [self.share(value).reference for value in shared]  # type: ignore[attr-defined]
        remote = self._remote(perform)
        return [
            Job(place, partial(remote, versions_here(), task, part, *references))
            for place, part in enumerate(parts)
        ]


def joining_order(n_parts: int) -> list[tuple[int, int]]:
    """Which two results are joined, one pair after the other; a pair's result is the next number.

    It is the order of :meth:`evergrow.foundation.engine.InProcess.fold`, so that sums are rounded
    alike.

    >>> joining_order(4)
    [(0, 1), (2, 3), (4, 5)]
    >>> joining_order(3)
    [(0, 1), (3, 2)]
    """
    pairs: list[tuple[int, int]] = []
    waiting: list[tuple[int, int]] = []

    def join_last_two() -> None:
        (height, first), (_, second) = waiting[-2:]
        waiting[-2:] = [(height + 1, n_parts + len(pairs))]
        pairs.append((first, second))

    for part in range(n_parts):
        waiting.append((0, part))
        while len(waiting) > 1 and waiting[-2][0] == waiting[-1][0]:
            join_last_two()
    while len(waiting) > 1:
        join_last_two()
    return pairs


class _Joins:
    """Results that wait for the one they are joined with."""

    def __init__(self, n_parts: int) -> None:
        self._pair_of: dict[int, tuple[int, int, int]] = {}
        for number, (first, second) in enumerate(joining_order(n_parts)):
            self._pair_of[first] = self._pair_of[second] = (n_parts + number, first, second)
        self._waiting: dict[int, Any] = {}

    def add(self, number: int, result: Any) -> tuple[int, Any, Any] | None:
        """Take a result; give (its number, the first, the second) of a pair that is whole now."""
        self._waiting[number] = result
        pair = self._pair_of.get(number)
        if pair is None or pair[1] not in self._waiting or pair[2] not in self._waiting:
            return None
        place, first, second = pair
        return place, self._waiting.pop(first), self._waiting.pop(second)

    @property
    def last(self) -> Any:
        """The one that is left."""
        (result,) = self._waiting.values()
        return result
