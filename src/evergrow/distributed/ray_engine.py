"""The engine that runs parts as tasks of a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from evergrow.distributed.dispatch import Dispatcher, RemoteCall, check_connected, is_forked
from evergrow.distributed.worker import join_two, local_versions, perform, submit_to_node
from evergrow.foundation.engine import (
    Arrays,
    Capacity,
    Engine,
    Job,
    Join,
    PendingJoins,
)
from evergrow.foundation.errors import ClusterError, InvalidInputError
from evergrow.foundation.progress import progress_bar

# Seconds that a node has for a short task; a node that is about to leave may never run it.
_NODE_SECONDS = 10.0

# Parts queued at Ray for each that runs, so that no worker waits for this process.
_QUEUED_PER_WORKER = 1


@dataclass(frozen=True, eq=False)
class _StoredValue:
    """A value in Ray's object store; Ray keeps it for as long as this reference lives."""

    reference: Any


class RayEngine(Engine):
    """Runs parts as Ray tasks; Ray places them and retries them when a worker or node is lost.

    The parameters are those of :func:`evergrow.cluster`.
    """

    def __init__(
        self,
        *,
        n_workers: int | None = None,
        threads_per_worker: int = 1,
        retries: int = 3,
        task_timeout: float | None = None,
        verbose: int = 0,
    ) -> None:
        self._n_workers = n_workers
        self._threads_per_worker = threads_per_worker
        self._retries = retries
        self._task_timeout = task_timeout
        self._verbose = verbose
        self._is_open = True
        # Bytes received from workers, for measurements.
        self.n_bytes = 0

    @property
    def capacity(self) -> Capacity:
        """Workers and their threads; the number of workers follows the size of the cluster."""
        n_workers = self._most_workers() if self._n_workers is None else self._n_workers
        return Capacity(n_workers, self._threads_per_worker, True)

    def _most_workers(self) -> int:
        """How many parts the processors of the cluster run at the same time."""
        self._check_open()
        cluster_resources: Any = import_module("ray").cluster_resources
        n_processors = cluster_resources().get("CPU", 1)
        return max(1, int(n_processors // self._threads_per_worker))

    def close(self) -> None:
        """Refuse further work."""
        self._is_open = False

    def share(self, value: Any) -> Any:
        """Put a value into Ray's object store; workers read its arrays without a copy."""
        self._check_open()
        import ray

        # Not cached by identity: an array may have been changed when it is shared again.
        return value if isinstance(value, _StoredValue) else _StoredValue(ray.put(value))

    def run_on_every_node(self, task: Callable[[Any], Any], part: Any) -> None:
        """Run a short task on every live node."""
        if is_forked():
            return
        ray: Any = import_module("ray")
        if not self._is_open or not ray.is_initialized():
            return
        calls = [submit_to_node(ray, node, task, part) for node in ray.nodes() if node["Alive"]]
        ray.wait(calls, num_returns=len(calls), timeout=_NODE_SECONDS)

    def run(self, job: Job) -> Iterator[tuple[int, Arrays]]:
        """Yield (index of the part, result) as parts finish."""
        dispatcher = self._dispatcher(job)
        ready = deque(self._calls(job))
        with (
            self._progress(job) as progress,
            closing(dispatcher.finished(ready)) as finished,
        ):
            for n_done, (call, result) in enumerate(finished, 1):
                value = dispatcher.value_of(result)
                self.n_bytes += dispatcher.n_bytes
                dispatcher.n_bytes = 0
                yield call.index, value
                # A reference held here would keep the result in the object store.
                del value, result
                if progress is not None:
                    progress(n_done)

    def reduce(self, job: Job, join: Join) -> Arrays:
        """Join the results of all parts into one, two neighbours at a time, on the workers.

        Intermediate results stay in the object store; only the last one is fetched.
        """
        n_parts = len(job.parts)
        if not n_parts:
            raise InvalidInputError(f"there are no parts to run for {job.description}")
        dispatcher = self._dispatcher(job)
        pending = PendingJoins(n_parts)
        ready = deque(self._calls(job))
        remote = self._remote(join_two)
        with self._progress(job) as progress:
            n_done = 0
            for call, result in dispatcher.finished(ready):
                n_done += call.index < n_parts
                if progress is not None:
                    progress(n_done)
                pair = pending.add(call.index, result)
                if pair is not None:
                    index, first, second = pair
                    # Joins go before parts that have not started: they free the object store.
                    start = partial(remote, local_versions(), join, first, second)
                    ready.appendleft(RemoteCall(index, start))
        value: Arrays = dispatcher.value_of(pending.last)
        self.n_bytes += sum(array.nbytes for array in value.values())
        return value

    def _check_open(self) -> None:
        if not self._is_open:
            raise ClusterError("the block of evergrow.cluster has ended: open another one")
        check_connected()

    def _progress(self, job: Job) -> Any:
        return progress_bar(job.description, len(job.parts), max(job.verbose, self._verbose))

    def _dispatcher(self, job: Job) -> Dispatcher:
        self._check_open()
        n_at_once = self.capacity.n_workers
        # Ray would run queued parts too on free processors, and they would use up a time limit.
        if n_at_once >= self._most_workers() and self._task_timeout is None:
            n_at_once *= 1 + _QUEUED_PER_WORKER
        return Dispatcher(job.description, n_at_once, self._retries, self._task_timeout)

    def _remote(self, function: Any) -> Any:
        remote: Any = import_module("ray").remote
        options: dict[str, Any] = {
            "num_cpus": self._threads_per_worker,
            "num_returns": 2,
            "max_retries": self._retries,
            "scheduling_strategy": "SPREAD",
        }
        return remote(**options)(function).remote

    def _references(self, job: Job) -> list[Any]:
        return [self.share(value).reference for value in job.shared]

    def _calls(self, job: Job) -> list[RemoteCall]:
        references = self._references(job)
        remote = self._remote(perform)
        return [
            RemoteCall(index, partial(remote, local_versions(), job.task, part, *references))
            for index, part in enumerate(job.parts)
        ]
