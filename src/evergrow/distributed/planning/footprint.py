"""What training needs apart from time: memory of workers and driver, disk, and network traffic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evergrow._core import SplitRules
from evergrow.distributed.planning.workload import Cluster, EstimatorSpec, Workload
from evergrow.estimators.forest.cluster.driver_grow import tree_groups
from evergrow.estimators.forest.request import SplitParameters
from evergrow.estimators.forest.storage.budget import SAMPLE_BYTES, MemoryDemand, budget_for
from evergrow.estimators.linear import LeaveOneOut
from evergrow.estimators.linear.feature_map import BLOCK_BYTES

_MIB = 1 << 20
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
    ``joined`` in total, and the driver receives ``gathered``. ``least_limit`` is the smallest
    memory limit that works. ``n_tasks`` is 0 for threads that share rows evenly. ``is_one_process``
    says that an array exceeds the memory limit: the driver then grows all trees itself.
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
    least_limit: int = 0
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
        return _forest_footprint(spec, work, tree_bytes, cluster.memory_limit, from_shards)
    if spec.kind == "sums":
        return _sums_footprint(spec, work, cluster, from_shards)
    return _codebook_footprint(spec, work, from_shards)


def footprint_here(
    spec: EstimatorSpec, work: Workload, tree_bytes: float, here: Cluster, *, from_shards: bool
) -> tuple[Footprint, int]:
    """Return what training in this process takes, and the memory limit of the forest.

    The limit is 0, for none, unless a forest is grown from shards.
    """
    limit = 0
    if spec.kind != "forest":
        needs = compute_footprint(spec, work, tree_bytes, here, from_shards=from_shards)
        held = needs.worker
    else:
        growth = _growth_of(spec, work, here.n_workers)
        place = replace(here, memory_limit=growth.least) if from_shards else here
        needs = compute_footprint(spec, work, tree_bytes, place, from_shards=from_shards)
        held = growth.shared + growth.n_threads * growth.per_thread
        if from_shards:
            # Half of the rest, so that pages of the file stay in the other half.
            wanted = max(growth.least, (here.memory_per_node - needs.driver) // 2)
            held = limit = -(-wanted // _MIB) * _MIB
    n_tasks = work.trees if spec.has_trees else 0
    rows_in = needs.rows_in if from_shards else 0
    needs = replace(needs, driver=needs.driver + held, worker=0, rows_in=rows_in, n_tasks=n_tasks)
    return needs, limit


def _rules_of(spec: EstimatorSpec, work: Workload) -> SplitRules:
    splits: SplitParameters = spec.make(work)._request().splits
    return splits.sized(work.class_size).rules(work.classes, work.features)


def _growth_of(spec: EstimatorSpec, work: Workload, n_threads: int = 1) -> MemoryDemand:
    """The work of one process, as the forest itself counts its memory."""
    return MemoryDemand(
        kind="fit",
        n_rows=work.rows,
        n_new=work.rows,
        width=work.width,
        half=False,
        n_classes=work.classes,
        n_threads=n_threads,
        rules=_rules_of(spec, work),
        evicts=False,
    )


def _forest_footprint(
    spec: EstimatorSpec, work: Workload, tree_bytes: float, limit: int | None, from_shards: bool
) -> Footprint:
    groups = tree_groups(work.trees, work.rows * work.features, n_threads=1)
    group = round(groups[0][1] * tree_bytes)
    trees, samples = round(work.trees * tree_bytes), work.rows * SAMPLE_BYTES
    growth = _growth_of(spec, work)
    held, in_file = growth.shared + growth.per_thread, False
    # A limit that is too small is reported apart.
    if limit is not None and (limit < growth.least or budget_for(growth, limit).in_file):
        # What the limit leaves is filled with copies of rows.
        held, in_file = min(limit, held + work.stored_bytes), True
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
        least_limit=growth.least,
        is_one_process=in_file and not from_shards and limit is not None and limit >= growth.least,
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
