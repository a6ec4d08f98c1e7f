"""The work in one process of this machine: whether memory holds it, and what to do if not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evergrow.distributed.planning.amounts import said_bytes
from evergrow.distributed.planning.families import Family
from evergrow.distributed.planning.footprint import Footprint, footprint_of, growth_of
from evergrow.distributed.planning.machine import Machine
from evergrow.distributed.planning.schedule import parts_of
from evergrow.distributed.planning.shape import Shape
from evergrow.distributed.planning.workload import Cluster, Workload
from evergrow.estimators.forest.room import room_for

__all__ = ["Here", "plan_here"]

_MIB = 1 << 20


@dataclass(frozen=True)
class Here:
    """Threads of one process: seconds, bytes of memory, and how it fits or what would.

    ``how`` is empty where an array in memory will do.
    """

    seconds: float
    n_bytes: int
    fits: bool
    how: str


@dataclass(frozen=True)
class _Attempt:
    """One way to do it; ``n_bytes`` is all that the process holds."""

    needs: Footprint
    place: Cluster
    n_bytes: int

    @property
    def fits(self) -> bool:
        return self.n_bytes <= self.place.memory_per_node


def plan_here(
    family: Family,
    work: Workload,
    shape: Shape,
    seconds: dict[str, float],
    machine: Machine,
    here: Cluster,
) -> Here:
    """From an array if memory holds it; else from shards, forests within a memory limit."""
    attempt = _from_array(family, work, shape, here)
    how = ""
    if not attempt.fits:
        stored = replace(here, storage=max(1, round(machine.read_rate)))
        attempt = _from_shards(family, work, shape, stored)
        how = _said(attempt, family)
    parts = parts_of(family, work, seconds, machine, attempt.place, attempt.needs)
    total = sum(part.seconds for part in parts)
    return Here(total, attempt.n_bytes, attempt.fits, how)


def _said(attempt: _Attempt, family: Family) -> str:
    if attempt.fits:
        limit = attempt.place.memory_limit
        return "from shards" + ("" if limit is None else f" with memory_limit='{limit // _MIB}MiB'")
    smaller = "; larger leaves (min_samples_leaf) or fewer trees take less"
    return (
        f"does not fit: even from shards it takes {said_bytes(attempt.n_bytes)} of "
        f"{said_bytes(attempt.place.memory_per_node)}" + (smaller if family.has_shape else "")
    )


def _from_array(family: Family, work: Workload, shape: Shape, here: Cluster) -> _Attempt:
    needs = footprint_of(family, work, shape, here, from_shards=False)
    n_bytes = needs.driver
    if family.has_shape:
        growth = growth_of(family, work, here.n_workers)
        n_bytes += growth.shared + growth.n_threads * growth.per_thread
    else:
        # Words are learnt from columns beside the array, sums from blocks of it.
        n_bytes += needs.shared if family.has_trees else needs.private
    # Threads of one process look at one matrix: nothing is shared out.
    return _Attempt(replace(_of_threads(needs, n_bytes, here), rows_in=0), here, n_bytes)


def _from_shards(family: Family, work: Workload, shape: Shape, here: Cluster) -> _Attempt:
    needs = footprint_of(family, work, shape, here, from_shards=True)
    if not family.has_shape:
        n_bytes = needs.driver + (0 if family.has_trees else needs.private)
        return _Attempt(_of_threads(needs, n_bytes, here), here, n_bytes)
    growth = growth_of(family, work, here.n_workers)
    # Half of what is left, so that pages of the file stay in the other half.
    wanted = max(growth.least, (here.memory_per_node - needs.driver) // 2)
    limit = -(-wanted // _MIB) * _MIB
    n_bytes = needs.driver + limit
    needs = replace(
        _of_threads(needs, n_bytes, here), row_budget=room_for(growth, limit).row_budget
    )
    return _Attempt(needs, replace(here, memory_limit=limit), n_bytes)


def _of_threads(needs: Footprint, n_bytes: int, here: Cluster) -> Footprint:
    """Threads take tree after tree, and nothing is handed out."""
    return replace(
        needs, private=n_bytes // here.n_workers, n_tasks=0, n_shards=0, trees_per_task=1
    )
