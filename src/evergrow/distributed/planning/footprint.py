"""What training needs apart from time: memory of workers and driver, disk, and network traffic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evergrow.distributed.planning.workload import Cluster, EstimatorSpec, Workload
from evergrow.estimators.forest.cluster.driver_grow import tree_groups
from evergrow.estimators.linear import LeaveOneOut
from evergrow.estimators.linear.feature_map import BLOCK_BYTES

_MIB = 1 << 20
# Class and id of a sample.
_SAMPLE_BYTES = 12
# Growing a forest: bytes held once and by each thread, and how many of them per row. Threads hold
# the rows of a node, those being partitioned, and what their splits are found from.
_SHARED_BYTES, _SHARED_PER_ROW = 24 * _MIB, 60
_THREAD_BYTES, _THREAD_PER_ROW = 12 * _MIB, 30
# Python, NumPy, scikit-learn and the package before anything is trained.
_PROCESS_BYTES = 120 << 20
# What growing a codebook holds of each row apart from its features, and what a word needs apart
# from its counts: two nodes and a column.
_CODEBOOK_BYTES, _WORD_BYTES = 24, 2 * 16 + 8


@dataclass(frozen=True)
class Footprint:
    """Bytes, and the number of tasks.

    ``worker`` is the private memory of a worker with the results that it leaves on its node until
    the driver takes them. ``shared`` is what all workers of a node read; with ``is_mapped`` it is a
    file that need not stay in memory. Each node receives ``rows_in``, workers send each other
    ``joined`` in total, and the driver receives ``gathered``. ``n_tasks`` is 0 for threads that
    share rows evenly. ``is_one_process`` says that an array exceeds the limit of samples in memory:
    the driver then grows all trees itself.
    """

    driver: int
    model: int
    rows_in: int
    is_mapped: bool
    n_tasks: int
    worker: int = 0
    shared: int = 0
    scratch: int = 0
    joined: int = 0
    gathered: int = 0
    is_one_process: bool = False

    def network(self, n_nodes: int, n_busy_nodes: int) -> int:
        """Bytes that cross between machines and from storage; 0 on a single machine.

        Only nodes with work to do receive rows, and the driver's node has those of an array.
        """
        if n_nodes == 1:
            return 0
        receivers = n_busy_nodes if self.is_mapped else n_busy_nodes - 1
        return receivers * self.rows_in + self.joined + self.gathered


def compute_footprint(
    spec: EstimatorSpec, work: Workload, tree_bytes: float, cluster: Cluster, *, from_shards: bool
) -> Footprint:
    """Memory, disk and traffic of the work on this cluster."""
    if spec.kind == "forest":
        return _forest_footprint(work, tree_bytes, cluster.memory_limit, from_shards=from_shards)
    if spec.kind == "sums":
        return _sums_footprint(spec, work, cluster, from_shards)
    return _codebook_footprint(spec, work, from_shards)


def footprint_here(
    spec: EstimatorSpec, work: Workload, tree_bytes: float, here: Cluster, *, from_shards: bool
) -> tuple[Footprint, int]:
    """Return what training in this process takes, and the limit of samples in memory.

    The limit is 0, for none, unless a forest is grown from shards.
    """
    limit = 0
    if spec.kind != "forest":
        needs = compute_footprint(spec, work, tree_bytes, here, from_shards=from_shards)
        held = needs.worker
    else:
        place = replace(here, memory_limit=_MIB) if from_shards else here
        needs = compute_footprint(spec, work, tree_bytes, place, from_shards=from_shards)
        held = _growing_bytes(work, here.n_workers)
        if from_shards:
            # Half of the rest, so that pages of the file stay in the other half.
            left = here.memory_per_node - needs.driver - held
            limit = max(_MIB, left // 2 // _MIB * _MIB)
            held += work.stored_bytes if work.stored_bytes <= limit else 0
    n_tasks = work.trees if spec.has_trees else 0
    rows_in = needs.rows_in if from_shards else 0
    needs = replace(needs, driver=needs.driver + held, worker=0, rows_in=rows_in, n_tasks=n_tasks)
    return needs, limit


def _growing_bytes(work: Workload, n_threads: int) -> int:
    """What growing a forest takes, without its trees and rows."""
    per_thread = _THREAD_BYTES + _THREAD_PER_ROW * work.rows
    return _SHARED_BYTES + _SHARED_PER_ROW * work.rows + n_threads * per_thread


def _forest_footprint(
    work: Workload, tree_bytes: float, limit: int | None, *, from_shards: bool
) -> Footprint:
    groups = tree_groups(work.trees, work.rows * work.features, n_threads=1)
    group = round(groups[0][1] * tree_bytes)
    trees, samples = round(work.trees * tree_bytes), work.rows * _SAMPLE_BYTES
    held = _growing_bytes(work, n_threads=1)
    in_file = limit is not None and work.stored_bytes > limit
    # Rows that a limit admits are read from memory that the driver shares, even if it reads shards.
    is_mapped = from_shards and in_file
    stored = 0 if is_mapped else work.stored_bytes
    given = 0 if from_shards else work.given_bytes
    return Footprint(
        driver=_PROCESS_BYTES + trees + group + samples + stored + given,
        model=trees + work.rows * 4 * work.features + samples,
        rows_in=work.shard_bytes if is_mapped else work.stored_bytes,
        is_mapped=is_mapped,
        n_tasks=len(groups),
        # Memory for growing is freed before the trees are copied into arrays; finished ones wait.
        worker=_PROCESS_BYTES + group + max(held + group, samples + 2 * group),
        shared=work.stored_bytes,
        scratch=work.stored_bytes if is_mapped else 0,
        gathered=trees,
        is_one_process=in_file and not from_shards,
    )


def _sums_footprint(
    spec: EstimatorSpec, work: Workload, cluster: Cluster, from_shards: bool
) -> Footprint:
    features, classes, n_shards = work.features, work.classes, work.n_shards
    # Of least squares: products of features, and rows held out to choose the penalty.
    square, held_out = 0, 0
    if spec.name == "least_squares":
        square, held_out = 8 * (features + 1) ** 2, LeaveOneOut().max_stored
    sums = square + 8 * classes * features
    # A shard sends no sums of classes that it does not have.
    of_shard = square + 8 * min(classes, -(-work.rows // n_shards)) * features
    given = 0 if from_shards else work.given_bytes
    return Footprint(
        driver=_PROCESS_BYTES + 3 * sums + square + 8 * held_out * classes + given,
        model=sums + 8 * min(held_out, work.rows) * features,
        rows_in=given or -(-work.shard_bytes // min(cluster.nodes, n_shards)),
        is_mapped=from_shards,
        n_tasks=n_shards,
        # A block of rows as it was read, and one in double precision.
        worker=_PROCESS_BYTES + 2 * BLOCK_BYTES + 2 * sums + of_shard,
        shared=given,
        joined=(n_shards - 1) * of_shard,
        gathered=sums,
    )


def _codebook_footprint(spec: EstimatorSpec, work: Workload, from_shards: bool) -> Footprint:
    """Codebooks are trained by threads of the driver; there are no workers."""
    columns = 4 * work.rows * work.features
    # A word counts the examples of every class.
    n_words = work.trees * min(work.rows, spec.make(work).n_words)
    words = n_words * (8 * work.classes + _WORD_BYTES)
    given = 0 if from_shards else work.given_bytes
    return Footprint(
        driver=_PROCESS_BYTES + columns + work.rows * _CODEBOOK_BYTES + words + given,
        model=columns + 4 * work.rows + words,
        rows_in=work.shard_bytes if from_shards else 0,
        is_mapped=from_shards,
        n_tasks=work.trees,
    )
