"""From seconds of one core to the time on a cluster, part by part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from evergrow.distributed.planning.footprint import Footprint
from evergrow.distributed.planning.workload import Cluster, Workload


@dataclass(frozen=True)
class Cost:
    """Seconds of one core.

    ``shared`` is for work that workers share, ``once`` for work of one core of the driver,
    ``threaded`` for work that threads of the driver share, ``images`` for embedding.
    """

    shared: float
    once: float
    threaded: float = 0.0
    images: float = 0.0

    @property
    def total(self) -> float:
        """Seconds of one core for everything."""
        return self.shared + self.once + self.threaded + self.images


@dataclass(frozen=True)
class Part:
    """One step of a training in a :class:`Plan`, and what limits it.

    Attributes
    ----------
    name : str
        What is done.
    seconds : float
        How long it takes.
    limited_by : str
        What limits it: processors, one core, network or storage.
    """

    name: str
    seconds: float
    limited_by: str


def divide(work: Workload, cost: Cost, cluster: Cluster, needs: Footprint) -> tuple[Part, ...]:
    """The parts in the order in which they run; those that take no time are left out."""
    n_workers, speed = cluster.n_workers, cluster.core_speed
    busy = busy_part(cluster, needs)
    if needs.is_mapped:
        moving = [
            Part("reading shards", needs.rows_in / cluster.storage, "storage"),
            Part("writing scratch", needs.scratch / cluster.storage, "storage"),
        ]
    else:
        # Nodes that have the rows pass them on: their number doubles with every hop.
        hops = math.ceil(math.log2(busy.nodes))
        moving = [Part("sending rows", hops * needs.rows_in / cluster.network, "network")]
    gathering = needs.gathered / cluster.network if busy.nodes > 1 else 0.0
    parts = (
        Part(
            "embedding images", cost.images * _share(n_workers, work.n_shards) / speed, "processors"
        ),
        Part("preparing rows", cost.threaded / cluster.cores_per_node / speed, "processors"),
        *moving,
        Part("training", cost.shared * _share(n_workers, needs.n_tasks) / speed, "processors"),
        Part("gathering results", gathering, "network"),
        Part("work of one core", cost.once / speed, "one core"),
    )
    return tuple(part for part in parts if part.seconds > 0)


def count_useful_workers(cluster: Cluster, needs: Footprint) -> int:
    """Return the fewest workers that need no more rounds of tasks than all of them."""
    return -(-needs.n_tasks // -(-needs.n_tasks // cluster.n_workers))


def busy_part(cluster: Cluster, needs: Footprint) -> Cluster:
    """The part of the cluster that has tasks; workers are spread evenly over the nodes."""
    n_busy = min(cluster.n_workers, needs.n_tasks or cluster.n_workers)
    return replace(cluster, nodes=min(cluster.nodes, n_busy), workers=n_busy)


def _share(n_workers: int, n_tasks: int) -> float:
    """The share of the busiest worker; threads without tasks divide the work evenly."""
    return -(-n_tasks // n_workers) / n_tasks if n_tasks else 1 / n_workers
