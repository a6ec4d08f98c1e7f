"""What a learner needs beside time: memory of workers, room on disk, bytes that travel."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evergrow.distributed.planning.families import Family
from evergrow.distributed.planning.shape import Shape
from evergrow.distributed.planning.workload import Cluster, Workload
from evergrow.estimators.forest.by_groups import groups_of
from evergrow.estimators.forest.room import Work, room_for

__all__ = ["Footprint", "footprint_of", "growth_of", "model_bytes", "trees_per_task"]

# Python, NumPy, scikit-learn and the package, before anything is learnt.
_INTERPRETER_BYTES = 120 << 20
# Bytes per row: class and id of a sample; and what growing words holds of each.
_SAMPLE_BYTES, _WORD_BYTES = 12, 24
# Images of a shard, where those take no more bytes.
_IMAGES_PER_SHARD = 2048
# Size of the shards that are written unless another is asked for.
_SHARD_BYTES = 64 << 20
# Blocks of rows in double precision that sums are made from: one as it was read, one converted.
_BLOCK_BYTES = 2 * (64 << 20)
_LABEL_BYTES = 4
_HELD_OUT_ROWS = 2000


@dataclass(frozen=True)
class Footprint:
    """Bytes, of one worker or machine, or of all where nothing is said.

    ``private`` is what a worker has to itself and ``shared`` what all workers of a machine look at
    together; ``is_mapped`` tells that the latter is a file whose pages may leave the memory again.
    ``kept`` is what the results of a worker take in the machine's memory until they are fetched.
    ``rows_in`` is what a machine receives of the rows, ``joined`` what workers send each other of
    their results and ``results`` what the driver receives. ``least_limit`` is the least memory
    limit that works and ``row_budget`` what the limit leaves for copies of rows.
    """

    private: int
    shared: int
    is_mapped: bool
    driver: int
    shards: int
    scratch: int
    model: int
    rows_in: int
    joined: int
    results: int
    trees_per_task: int
    n_tasks: int
    n_shards: int
    least_limit: int = 0
    row_budget: int = 0
    kept: int = 0

    def network(self, n_nodes: int, n_busy_nodes: int) -> int:
        """Bytes that cross between machines, storage among them; none on a single one.

        Rows go only to nodes that have something to do with them.
        """
        if n_nodes == 1:
            return 0
        receivers = n_busy_nodes if self.is_mapped else n_busy_nodes - 1
        return receivers * self.rows_in + self.joined + self.results


def tree_bytes(work: Workload, shape: Shape) -> float:
    """One tree in memory: its row numbers, vectors in half precision, and nodes."""
    return 4.0 * work.rows + 2.0 * work.width * shape.vectors + shape.other_bytes


def model_bytes(family: Family, work: Workload, shape: Shape) -> float:
    """The model file."""
    d, classes = work.features, work.classes
    if family.has_shape:
        kept = work.rows * (4.0 * d + _SAMPLE_BYTES)
        return work.trees * tree_bytes(work, shape) + kept
    if family.name == "erc":
        return 4.0 * work.rows * d
    sums = 8.0 * classes * d
    if family.name == "means":
        return sums
    return 8.0 * (d + 1) ** 2 + sums + 8.0 * min(_HELD_OUT_ROWS, work.rows) * d


def footprint_of(
    family: Family, work: Workload, shape: Shape, cluster: Cluster, *, from_shards: bool
) -> Footprint:
    """What the work needs on this cluster."""
    measure = _of_forest if family.has_shape else _of_words if family.has_trees else _of_sums
    return measure(family, work, shape, cluster, from_shards)


def trees_per_task(work: Workload) -> int:
    """How many trees a worker grows at a time.

    >>> trees_per_task(Workload(1_200_000, 1000, 1000)), trees_per_task(Workload(1000, 64, 10))
    (1, 6)
    """
    groups = groups_of(work.trees, work.rows * work.features, n_threads=1)
    return groups[0][1]


def _of_forest(
    family: Family, work: Workload, shape: Shape, cluster: Cluster, from_shards: bool
) -> Footprint:
    at_once = trees_per_task(work)
    growth = growth_of(family, work)
    held, limit = growth.shared + growth.per_thread, cluster.memory_limit
    budget = 0
    if limit is not None:
        held = limit
        budget = room_for(growth, limit).row_budget if limit >= growth.least else 1
    trees = work.trees * tree_bytes(work, shape)
    arriving = at_once * tree_bytes(work, shape)
    # What growing takes is let go before the trees, once as grown, become arrays as well.
    growing = held + arriving
    leaving = work.rows * _SAMPLE_BYTES + 2 * arriving
    private = _INTERPRETER_BYTES + max(growing, leaving)
    driver = _INTERPRETER_BYTES + trees + arriving + work.rows * _SAMPLE_BYTES
    # Without a limit rows come from memory that the driver shares, also where it reads shards.
    is_mapped = from_shards and limit is not None
    rows_here = 0 if is_mapped else work.kept_bytes + (0 if from_shards else work.given_bytes)
    return Footprint(
        private=round(private),
        shared=work.kept_bytes,
        is_mapped=is_mapped,
        driver=round(driver + rows_here),
        shards=_shards(work),
        scratch=work.kept_bytes if is_mapped else 0,
        model=round(model_bytes(family, work, shape)),
        rows_in=_shards(work) if is_mapped else work.kept_bytes,
        joined=0,
        results=round(trees),
        trees_per_task=at_once,
        n_tasks=-(-work.trees // at_once),
        n_shards=_n_shards(work),
        least_limit=growth.least,
        row_budget=budget,
        kept=round(arriving),
    )


def growth_of(family: Family, work: Workload, n_threads: int = 1) -> Work:
    """The threads of a process, as the forest itself counts what it holds."""
    return Work(
        kind="fit",
        n_rows=work.rows,
        n_new=work.rows,
        width=work.width,
        half=False,
        n_classes=work.classes,
        n_threads=n_threads,
        rules=family.make(work.trees)._split_rules(work.classes, work.features),
        evicts=False,
    )


def _of_sums(
    family: Family, work: Workload, shape: Shape, cluster: Cluster, from_shards: bool
) -> Footprint:
    n_shards = _n_shards(work)
    rows_per_shard = -(-work.rows // n_shards)
    square = 0.0 if family.name == "means" else 8.0 * (work.features + 1) ** 2
    # Sums of classes that a shard has no row of do not travel.
    of_shard = square + 8.0 * min(work.classes, rows_per_shard) * work.features
    of_all = square + 8.0 * work.classes * work.features
    solved = 2 * of_all + (square + 8.0 * _HELD_OUT_ROWS * work.classes if square else 0.0)
    return Footprint(
        private=round(_INTERPRETER_BYTES + _BLOCK_BYTES + 2 * of_all),
        shared=0 if from_shards else work.given_bytes,
        is_mapped=from_shards,
        driver=round(
            _INTERPRETER_BYTES + of_all + solved + (0 if from_shards else work.given_bytes)
        ),
        shards=_shards(work),
        scratch=0,
        model=round(model_bytes(family, work, shape)),
        rows_in=-(-_shards(work) // min(cluster.nodes, n_shards))
        if from_shards
        else work.given_bytes,
        joined=round((n_shards - 1) * of_shard),
        results=round(of_all),
        trees_per_task=1,
        n_tasks=n_shards,
        n_shards=n_shards,
        kept=round(of_shard),
    )


def _of_words(
    family: Family,
    work: Workload,
    shape: Shape,
    cluster: Cluster,  # noqa: ARG001
    from_shards: bool,
) -> Footprint:
    columns = 4 * work.rows * work.features
    private = _INTERPRETER_BYTES + columns + work.rows * _WORD_BYTES
    return Footprint(
        private=private,
        shared=0 if from_shards else work.given_bytes,
        is_mapped=from_shards,
        driver=private,
        shards=_shards(work),
        scratch=0,
        model=round(model_bytes(family, work, shape)),
        rows_in=_shards(work) if from_shards else 0,
        joined=0,
        results=0,
        trees_per_task=1,
        n_tasks=1,
        n_shards=_n_shards(work),
    )


def _shards(work: Workload) -> int:
    return work.given_bytes + _LABEL_BYTES * work.rows


def _n_shards(work: Workload) -> int:
    by_bytes = math.ceil(work.given_bytes / _SHARD_BYTES)
    return max(by_bytes, -(-work.rows // _IMAGES_PER_SHARD)) if work.images else by_bytes
