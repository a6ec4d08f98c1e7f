"""What a plan says, as a value and as lines of text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evergrow.planning.amounts import said_bytes, said_seconds
from evergrow.planning.schedule import Part
from evergrow.planning.workload import Cluster, Workload

__all__ = ["Plan", "Seconds"]


@dataclass(frozen=True)
class Seconds:
    """A time that is expected, and the interval that it should lie in.

    Examples
    --------
    >>> from evergrow.planning import Seconds
    >>> print(Seconds(100.0, 80.0, 125.0))
    100 s (80 s to 2.1 min)
    """

    expected: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"{said_seconds(self.expected)} ({said_seconds(self.low)} to {said_seconds(self.high)})"
        )


@dataclass(frozen=True)
class Plan:
    """What learning will cost; see :func:`evergrow.plan`.

    Printed, it is the table that ``evergrow plan`` writes.

    Attributes
    ----------
    estimator : str
        What is to learn.
    work : Workload
        Rows, features, classes and trees.
    cluster : Cluster
        The machines.
    one_core, this_machine, on_cluster : Seconds
        Time on one core of this machine, on all of its cores, and on the cluster.
    parts : tuple of Part
        What the time on the cluster consists of: name, seconds, and what each is limited by.
    worker_bytes, shared_bytes, driver_bytes : int
        Memory that each worker has to itself, that all workers of a machine share, and that the
        program needs which hands out the work.
    node_bytes : int
        Memory in use on a machine of the cluster at the same time.
    shard_bytes, scratch_bytes, model_bytes : int
        Room on disk: the features as shards, what each machine writes for as long as it works, and
        the model file.
    network_bytes : int
        What travels between machines, shards on shared storage among it.
    useful_workers : int
        The fewest workers that are as quick as those of the cluster.
    limits : tuple of str
        What limits: sentences, the most important one first.
    fits : bool
        Whether memory suffices, of the driver and of every node.
    """

    estimator: str
    work: Workload
    cluster: Cluster
    one_core: Seconds
    this_machine: Seconds
    on_cluster: Seconds
    parts: tuple[Part, ...]
    worker_bytes: int
    shared_bytes: int
    driver_bytes: int
    node_bytes: int
    shard_bytes: int
    scratch_bytes: int
    model_bytes: int
    network_bytes: int
    useful_workers: int
    limits: tuple[str, ...]
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists, numbers and strings: seconds and bytes."""
        found = asdict(self)
        return {**found, "parts": list(found["parts"]), "limits": list(found["limits"])}

    def fields(self) -> list[tuple[str, str]]:
        """Names and values as they are printed."""
        cluster = self.cluster
        place = (
            f"{_several(cluster.nodes, 'node')} of {_several(cluster.cores_per_node, 'core')}, "
            f"{_several(cluster.n_workers, 'worker')}"
        )
        return [
            ("work", _described(self.estimator, self.work)),
            ("time on one core", str(self.one_core)),
            ("time on this machine", str(self.this_machine)),
            (f"time on {place}", str(self.on_cluster)),
            *((f"  {part.name}", _said_part(part)) for part in self.parts),
            ("memory of each worker", said_bytes(self.worker_bytes)),
            ("memory shared on each node", said_bytes(self.shared_bytes)),
            (
                "memory in use on each node",
                f"{said_bytes(self.node_bytes)} of {said_bytes(cluster.memory_per_node)}",
            ),
            ("memory of the driver", said_bytes(self.driver_bytes)),
            ("disk for shards", said_bytes(self.shard_bytes)),
            ("disk for scratch on each node", said_bytes(self.scratch_bytes)),
            ("disk for the model", said_bytes(self.model_bytes)),
            ("network", said_bytes(self.network_bytes)),
            *(("limit", sentence) for sentence in self.limits),
        ]

    def __str__(self) -> str:
        fields = self.fields()
        width = max(len(name) for name, _ in fields)
        return "\n".join(f"{name:{width}}  {value}" for name, value in fields)


def _described(estimator: str, work: Workload) -> str:
    trees = "" if estimator in ("least_squares", "means") else f", {_several(work.trees, 'tree')}"
    what = "images" if work.images else "rows"
    return (
        f"{estimator}: {work.rows} {what} x {work.features} features ({work.dtype}), "
        f"{work.classes} classes{trees}"
    )


def _said_part(part: Part) -> str:
    return f"{said_seconds(part.seconds)}, limited by {part.limited_by}"


def _several(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
