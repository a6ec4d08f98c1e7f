"""The answer to a planning question, as a value and as lines of text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evergrow.distributed.planning.schedule import Part
from evergrow.distributed.planning.workload import ESTIMATORS, Cluster, Workload
from evergrow.foundation.formatting import format_bytes, format_count, format_seconds


@dataclass(frozen=True)
class Plan:
    """What training needs; see :func:`evergrow.plan`.

    Printed, it is the table that ``evergrow plan`` shows on a terminal.

    Attributes
    ----------
    estimator : str
        What is to be trained.
    work : Workload
        Rows, features, classes and trees.
    cluster : Cluster
        The machines.
    one_core_seconds, here_seconds, cluster_seconds : float
        Time on one core of this machine, on all of its cores, and on the cluster.
    parts : tuple of Part
        What the time on the cluster consists of: name, seconds, and what limits each.
    worker_bytes, shared_bytes, driver_bytes : int
        Private memory of each worker, memory that all workers of a machine share, and memory of
        the program that calls ``fit``.
    node_bytes, driver_node_bytes : int
        Memory in use at the same time on a machine of the cluster, and on the one where the driver
        runs next to workers; equal if there is only one.
    shard_bytes, scratch_bytes, model_bytes : int
        Disk space: the features as shards, temporary files of each machine, and the model file.
    network_bytes : int
        Traffic between machines and from shared storage.
    useful_workers : int
        The fewest workers that are as fast as those of the cluster.
    limits : tuple of str
        What stops or slows the work, the most important first.
    fits : bool
        Whether memory is sufficient on every machine of the cluster.
    here_bytes : int
        Memory in one process of this machine.
    fits_here : bool
        Whether this machine has it.
    how_here : str
        Empty if an array in memory works on this machine; otherwise how it fits, or why not.
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
        """The same as plain dictionaries, lists, numbers and strings: seconds and bytes."""
        values = asdict(self)
        return {**values, "parts": list(values["parts"]), "limits": list(values["limits"])}

    def fields(self) -> list[tuple[str, str]]:
        """Names and values as they are printed."""
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
