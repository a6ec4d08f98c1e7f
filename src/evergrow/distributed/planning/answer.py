"""The answer to a planning question, as a value and as lines of text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evergrow.distributed.planning.schedule import Part
from evergrow.distributed.planning.workload import ESTIMATORS, Cluster, Workload
from evergrow.foundation.formatting import format_bytes, format_count, format_seconds


@dataclass(frozen=True)
class Plan:
    """Time, memory, disk and network that a training needs; the result of :func:`evergrow.plan`.

    ``print`` shows it as a table.

    Attributes
    ----------
    estimator : str
        What is trained.
    work : Workload
        Number of rows, features, classes and trees.
    cluster : Cluster
        The machines.
    one_core_seconds : float
        Time on one core of this machine.
    here_seconds : float
        Time on all cores of this machine.
    cluster_seconds : float
        Time on the cluster.
    parts : tuple of Part
        The steps that the time on the cluster consists of.
    worker_bytes : int
        Private memory of each worker.
    shared_bytes : int
        Memory that all workers of a machine share.
    driver_bytes : int
        Memory of the driver, which is the program that calls ``fit``.
    node_bytes : int
        Memory in use on a machine of the cluster.
    driver_node_bytes : int
        Memory in use on the machine of the driver, which also runs workers.
    shard_bytes : int
        Disk space of the features as shards.
    scratch_bytes : int
        Disk space of temporary files, per machine.
    model_bytes : int
        Disk space of the model file.
    network_bytes : int
        Traffic between machines and from shared storage.
    useful_workers : int
        Smallest number of workers that is as fast as all workers of the cluster.
    limits : tuple of str
        What stops or slows down the training, the most important first.
    fits : bool
        Whether every machine of the cluster has enough memory.
    here_bytes : int
        Memory of one process on this machine.
    fits_here : bool
        Whether this machine has enough memory.
    how_here : str
        How the training fits on this machine, or why it does not. Empty if an array in memory fits.
    """

    estimator: str
    work: Workload
    cluster: Cluster
    one_core_seconds: float
    here_seconds: float
    cluster_seconds: float
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

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dictionary of plain values, in seconds and bytes."""
        values = asdict(self)
        return {**values, "parts": list(values["parts"]), "limits": list(values["limits"])}

    def fields(self) -> list[tuple[str, str]]:
        """Return the names and values of the printed table."""
        cluster = self.cluster
        memory = format_bytes(cluster.memory_per_node)
        place = (
            f"{format_count(cluster.nodes, 'node')} of "
            f"{format_count(cluster.cores_per_node, 'core')}, "
            f"{format_count(cluster.n_workers, 'worker')}"
        )
        here = format_seconds(self.here_seconds) if self.fits_here else ""
        found = [
            ("work", self._describe_work()),
            ("time on one core", format_seconds(self.one_core_seconds)),
            ("time on this machine", ", ".join(text for text in (here, self.how_here) if text)),
            (f"time on {place}", format_seconds(self.cluster_seconds)),
        ]
        for part in self.parts:
            text = f"{format_seconds(part.seconds)}, limited by {part.limited_by}"
            found.append((f"  {part.name}", text))
        found += [
            ("memory of each worker", format_bytes(self.worker_bytes)),
            ("memory shared on each node", format_bytes(self.shared_bytes)),
            ("memory in use on each node", f"{format_bytes(self.node_bytes)} of {memory}"),
            ("memory of the driver", format_bytes(self.driver_bytes)),
        ]
        if cluster.nodes > 1:
            in_use = f"{format_bytes(self.driver_node_bytes)} of {memory}"
            found.append(("memory in use on the driver's node", in_use))
        return [
            *found,
            ("disk for shards", format_bytes(self.shard_bytes)),
            ("disk for scratch on each node", format_bytes(self.scratch_bytes)),
            ("disk for the model", format_bytes(self.model_bytes)),
            ("network", format_bytes(self.network_bytes)),
            *(("limit", sentence) for sentence in self.limits),
        ]

    def __str__(self) -> str:
        fields = self.fields()
        width = max(len(name) for name, _ in fields)
        return "\n".join(f"{name:{width}}  {value}" for name, value in fields)

    def _describe_work(self) -> str:
        work = self.work
        trees = f", {format_count(work.trees, 'tree')}"
        return (
            f"{self.estimator}: {format_count(work.rows, 'image' if work.images else 'row')} x "
            f"{format_count(work.features, 'feature')} ({work.dtype}), "
            f"{format_count(work.classes, 'class')}"
            f"{trees if ESTIMATORS[self.estimator].has_trees else ''}"
        )
