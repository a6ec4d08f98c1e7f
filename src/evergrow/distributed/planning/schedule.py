"""From the parts of the work and the machines to how long it takes, part by part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from evergrow.distributed.planning.families import Family
from evergrow.distributed.planning.footprint import Footprint
from evergrow.distributed.planning.machine import Machine
from evergrow.distributed.planning.workload import Cluster, Workload, cache_bytes

__all__ = ["Part", "busy_part", "core_seconds", "n_useful_workers", "parts_of"]


@dataclass(frozen=True)
class Part:
    """Some of the time, and what it is limited by: processors, one core, network or storage."""

    name: str
    seconds: float
    limited_by: str


def core_seconds(
    family: Family, work: Workload, seconds: dict[str, float], machine: Machine
) -> float:
    """Seconds of one core of this machine for all of it."""
    total = sum(
        seconds[term.name] * (work.trees if term.divided == "trees" else 1) for term in family.terms
    )
    return total + _image_seconds(work, machine)


def parts_of(
    family: Family,
    work: Workload,
    seconds: dict[str, float],
    machine: Machine,
    cluster: Cluster,
    needs: Footprint,
) -> list[Part]:
    """Part by part, in the order in which they happen; those that take no time are left out."""
    own = busy_part(family, work, cluster, needs)
    divided = {"trees": 0.0, "rows": 0.0, "not": 0.0}
    for term in family.terms:
        divided[term.divided] += seconds[term.name]
    crowd = _crowding(machine, own, work.kept_bytes) / own.core_speed
    rounds = _rounds(family, work, own, needs)
    # Images are embedded one by one, with little more than the network in the cache.
    embedding = _with_work(_own(family, cluster), needs.n_shards)
    image_crowd = _crowding(machine, embedding, 0) / own.core_speed
    images = _image_seconds(work, machine) * image_crowd * _busiest(embedding, needs.n_shards)
    rows_each = _busiest(own, needs.n_tasks)
    found = [
        Part("embedding images", images, "processors"),
        *_moving(machine, own, needs),
        Part("adding up rows", divided["rows"] * crowd * rows_each, "processors"),
        Part(
            "growing trees",
            rounds * needs.trees_per_task * divided["trees"] * crowd,
            "processors",
        ),
        *_streaming(work, machine, own, needs),
        Part("work of one core", divided["not"] / own.core_speed, "one core"),
    ]
    if own.nodes > 1 or own.n_workers > 1:
        # The driver hands tasks out one after the other.
        handing_out = needs.n_tasks * (machine.task_seconds or 0.0)
        found.append(Part("handing out tasks", handing_out, "one core"))
    return [part for part in found if part.seconds > 0]


def n_useful_workers(family: Family, work: Workload, cluster: Cluster, needs: Footprint) -> int:
    """The fewest workers that are as quick: a tree or a shard is one worker's, so rounds decide."""
    own, n_parts = _own(family, cluster), _n_parts(family, work, needs)
    return -(-n_parts // -(-n_parts // own.n_workers))


def busy_part(family: Family, work: Workload, cluster: Cluster, needs: Footprint) -> Cluster:
    """The part of the cluster that has something to do.

    Workers are spread over the nodes, so that a node is idle only if there are more nodes than
    groups of trees or shards.
    """
    return _with_work(_own(family, cluster), _n_parts(family, work, needs))


def _with_work(cluster: Cluster, n_parts: int) -> Cluster:
    """Without parts the work is that of threads, all of which have something to do."""
    n_busy = min(cluster.n_workers, n_parts or cluster.n_workers)
    return replace(cluster, nodes=min(cluster.nodes, n_busy), workers=n_busy)


def _n_parts(family: Family, work: Workload, needs: Footprint) -> int:
    return _n_groups(work, needs) if family.has_trees else needs.n_tasks


def _busiest(cluster: Cluster, n_parts: int) -> float:
    """The share of the busiest worker, each part being one worker's.

    Without parts the work is that of threads, which share it evenly.
    """
    if n_parts == 0:
        return 1 / cluster.n_workers
    return -(-n_parts // cluster.n_workers) / n_parts


def _n_groups(work: Workload, needs: Footprint) -> int:
    return -(-work.trees // needs.trees_per_task)


def _rounds(family: Family, work: Workload, cluster: Cluster, needs: Footprint) -> int:
    """How many groups of trees the busiest worker grows, one after the other."""
    return -(-_n_groups(work, needs) // cluster.n_workers) if family.has_trees else 0


def _own(family: Family, cluster: Cluster) -> Cluster:
    """Words are learnt on one machine; only coding goes out."""
    return cluster if family.name != "erc" else replace(cluster, nodes=1)


def _image_seconds(work: Workload, machine: Machine) -> float:
    return work.rows * (machine.image_seconds or 0.0) if work.images else 0.0


def _crowding(machine: Machine, cluster: Cluster, n_bytes: int) -> float:
    """Cores that share memory slow each other down; as much as all of this machine do at most."""
    busy_share = min(1.0, (cluster.workers_per_node - 1) / max(1, cluster.cores_per_node - 1))
    of_all = machine.far_crowding if n_bytes > cache_bytes() else machine.crowding
    return 1.0 + (of_all - 1.0) * busy_share


def _moving(machine: Machine, cluster: Cluster, needs: Footprint) -> list[Part]:
    """Rows to where the workers are, and results back."""
    found = []
    if needs.is_mapped:
        found += [
            Part("reading shards", needs.rows_in / cluster.storage, "storage"),
            Part("hashing shards", needs.rows_in / machine.hash_rate, "one core"),
            Part("writing scratch", needs.scratch / machine.write_rate, "storage"),
        ]
    elif cluster.n_workers > 1 and needs.rows_in:
        # Machines that have the rows pass them on: those that have them double with every hop.
        hops = math.ceil(math.log2(cluster.nodes))
        found += [
            Part(
                "sharing rows", needs.rows_in / (machine.put_rate or machine.copy_rate), "one core"
            ),
            Part("sending rows", hops * needs.rows_in / cluster.network, "network"),
        ]
    if cluster.nodes > 1:
        joining = needs.joined / cluster.nodes + needs.results
        found.append(Part("gathering results", joining / cluster.network, "network"))
    return found


def _streaming(work: Workload, machine: Machine, cluster: Cluster, needs: Footprint) -> list[Part]:
    """Large nodes read their rows from the file again and again when memory does not hold it."""
    if not (needs.is_mapped and needs.scratch) or cluster.memory_limit is None:
        return []
    room = cluster.memory_per_node - cluster.workers_per_node * needs.private
    if needs.shared <= room:
        return []
    levels = 1 + max(0.0, math.log2(needs.shared / max(1, needs.row_budget)))
    trees_per_node = -(-work.trees // cluster.nodes)
    seconds = trees_per_node * levels * needs.shared / machine.read_rate
    return [Part("streaming large nodes", seconds, "storage")]
