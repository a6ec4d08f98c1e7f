"""What a plan says, as a value and as lines of text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evergrow.distributed.planning.amounts import said_bytes, said_count, said_seconds
from evergrow.distributed.planning.schedule import Part
from evergrow.distributed.planning.workload import Cluster, Workload

__all__ = ["Plan", "Seconds"]


@dataclass(frozen=True)
class Seconds:
    """A time that is expected, and the interval that it should lie in.

    Examples
    --------
    >>> from evergrow.distributed import Seconds
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

    Printed, it is the table that ``evergrow plan`` shows on a terminal.

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
    node_bytes, driver_node_bytes : int
        Memory in use at the same time on a machine of the cluster, and on the one where the
        driver runs beside the workers; the same if there is but one.
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
        Whether memory suffices on every node, that of the driver among them.
    here_bytes : int
        Memory of the work on this machine, in one process.
    fits_here : bool
        Whether this machine has it; if not, ``this_machine`` is what it would take.
    how_here : str
        Empty if an array in memory will do on this machine; else how it fits, or that it does not.
    calibration_spread : float
        How uncertain what was measured of this machine is, as a share. It is large if the machine
        was busy.
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
    driver_node_bytes: int
    shard_bytes: int
    scratch_bytes: int
    model_bytes: int
    network_bytes: int
    useful_workers: int
    limits: tuple[str, ...]
    fits: bool
    here_bytes: int
    fits_here: bool
    how_here: str
    calibration_spread: float

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists, numbers and strings: seconds and bytes."""
        found = asdict(self)
        return {**found, "parts": list(found["parts"]), "limits": list(found["limits"])}

    def fields(self) -> list[tuple[str, str]]:
        """Names and values as they are printed."""
        cluster = self.cluster
        place = (
            f"{said_count(cluster.nodes, 'node')} of {said_count(cluster.cores_per_node, 'core')}, "
            f"{said_count(cluster.n_workers, 'worker')}"
        )
        return [
            ("work", _described(self.estimator, self.work)),
            ("time on one core", str(self.one_core)),
            ("time on this machine", self._said_here()),
            (f"time on {place}", str(self.on_cluster)),
            *((f"  {part.name}", _said_part(part)) for part in self.parts),
            ("memory of each worker", said_bytes(self.worker_bytes)),
            ("memory shared on each node", said_bytes(self.shared_bytes)),
            (
                "memory in use on each node",
                f"{said_bytes(self.node_bytes)} of {said_bytes(cluster.memory_per_node)}",
            ),
            ("memory of the driver", said_bytes(self.driver_bytes)),
            *self._of_driver_node(),
            ("disk for shards", said_bytes(self.shard_bytes)),
            ("disk for scratch on each node", said_bytes(self.scratch_bytes)),
            ("disk for the model", said_bytes(self.model_bytes)),
            ("network", said_bytes(self.network_bytes)),
            *(("limit", sentence) for sentence in self.limits),
        ]

    def _said_here(self) -> str:
        if not self.fits_here:
            return self.how_here
        return f"{self.this_machine}, {self.how_here}" if self.how_here else str(self.this_machine)

    def _of_driver_node(self) -> list[tuple[str, str]]:
        """A single node is the driver's as well."""
        if self.cluster.nodes == 1:
            return []
        room = said_bytes(self.cluster.memory_per_node)
        in_use = f"{said_bytes(self.driver_node_bytes)} of {room}"
        return [("memory in use on the driver's node", in_use)]

    def __str__(self) -> str:
        fields = self.fields()
        width = max(len(name) for name, _ in fields)
        return "\n".join(f"{name:{width}}  {value}" for name, value in fields)


def _described(estimator: str, work: Workload) -> str:
    trees = "" if estimator in ("least_squares", "means") else f", {said_count(work.trees, 'tree')}"
    what = "images" if work.images else "rows"
    return (
        f"{estimator}: {work.rows} {what} x {work.features} features ({work.dtype}), "
        f"{work.classes} classes{trees}"
    )


def _said_part(part: Part) -> str:
    return f"{said_seconds(part.seconds)}, limited by {part.limited_by}"
