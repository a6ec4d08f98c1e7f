"""What training will need: time, memory, disk and network, before it is started."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from evergrow.distributed.planning.answer import Plan
from evergrow.distributed.planning.footprint import Footprint, compute_footprint, footprint_here
from evergrow.distributed.planning.schedule import (
    Cost,
    Part,
    busy_part,
    count_useful_workers,
    divide,
)
from evergrow.distributed.planning.trial import measure_images, run_trial
from evergrow.distributed.planning.workload import (
    CLUSTER_RULES,
    ESTIMATORS,
    WORKLOAD_RULES,
    Cluster,
    EstimatorSpec,
    Workload,
    this_machine,
)
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.extras import install_command
from evergrow.foundation.formatting import format_bytes, format_count, format_seconds
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    Nothing,
    Rule,
    bytes_of,
    check_parameters,
)

_MIB = 1 << 20
# What the core can count in one tree.
_MOST_ROWS = 2**28
_RULES: dict[str, list[Rule]] = {
    "min_samples_leaf": [Choice(("auto",)), *WORKLOAD_RULES["min_samples_leaf"]],
    "shards": [Nothing(), Flag()],
    "verbose": [Integer(0, 2**31 - 1), Flag()],
}


def plan(
    rows: int,
    features: int,
    classes: int,
    *,
    estimator: str = "ncm_forest",
    trees: int = 50,
    min_samples_leaf: str | int = "auto",
    dtype: str = "float32",
    images: bool = False,
    nodes: int = 1,
    cores_per_node: int | None = None,
    workers: int | None = None,
    memory_per_node: int | str | None = None,
    memory_limit: int | str | None = None,
    shards: bool | None = None,
    network: int | str = "1.25GB",
    storage: int | str = "1GB",
    core_speed: float = 1.0,
    verbose: int = 0,
) -> Plan:
    """Estimate the time, memory, disk and network that a training needs, and what limits it.

    Memory and disk are computed from the sizes. Time is scaled from a trial run of a few seconds on
    small generated data. Nothing is stored. See :doc:`/planning`.

    Parameters
    ----------
    rows : int
        Number of rows of the training data. It may be written as a float such as ``1.2e6``.
    features : int
        Number of features.
    classes : int
        Number of classes.
    estimator : {"ncm_forest", "axis", "linear", "svm", "least_squares", "means", "erc"}, \
default="ncm_forest"
        What is trained, with its default parameters: one of the four forests, least squares
        (:class:`RLSClassifier`), class means (:class:`NCMClassifier`), or an :class:`ERCForest`,
        whose rows are descriptors.
    trees : int, default=50
        Number of trees, for forests.
    min_samples_leaf : "auto" or int, default="auto"
        Parameter of the forest. Larger leaves make smaller trees.
    dtype : {"float16", "float32", "float64"}, default="float32"
        Type of the features. ``"float16"`` halves the size of shards.
    images : bool, default=False
        Whether rows are photographs that must be embedded first. The trial run then times this too,
        which needs the extra ``vision``. Without the extra, embedding is left out, and the limits
        of the plan say so.
    nodes : int, default=1
        Number of machines of the cluster.
    cores_per_node : int, default=None
        Number of cores of each machine. None takes that of this machine.
    workers : int, default=None
        Number of processes that work at the same time. None is one per core.
    memory_per_node : int or str, default=None
        Memory of each machine, in bytes or as ``"64GiB"``. None takes that of this machine.
    memory_limit : int or str, default=None
        Bytes of samples that a forest may have in memory, as in ``Storage(limit)``; more of them
        are in a file. Other estimators have no such limit.
    shards : bool, default=None
        Whether the data are shards on storage that all machines can read, or an array in the memory
        of one machine. None assumes shards if there is a memory limit or the array would not fit.
    network : int or str, default="1.25GB"
        Bytes per second that a machine receives from others, as a number, ``"1.25GB"`` or
        ``"1.25GB/s"``.
    storage : int or str, default="1GB"
        Bytes per second that a machine reads from and writes to storage.
    core_speed : float, default=1.0
        Speed of a core of the cluster, relative to a core of this machine.
    verbose : int, default=0
        Show a progress bar during the trial run if positive.

    Returns
    -------
    plan : Plan
        The estimates. ``print`` shows them as a table.

    Examples
    --------
    >>> import evergrow
    >>> plan = evergrow.plan(10_000, 64, 50, estimator="means", nodes=2, memory_per_node="8GiB")
    >>> plan.fits
    True
    >>> plan.shard_bytes
    2600000
    """
    spec = _find_estimator(estimator, memory_limit)
    leaf = _whole(min_samples_leaf)
    check_parameters({"min_samples_leaf": leaf, "shards": shards, "verbose": verbose}, _RULES)
    work = Workload(
        _whole(rows),
        _whole(features),
        _whole(classes),
        trees=_whole(trees),
        dtype=dtype,
        images=images,
    )
    work = replace(work, min_samples_leaf=work.auto_leaf if leaf == "auto" else leaf)
    cores, memory = this_machine()
    cluster = _checked_cluster(
        nodes=nodes,
        cores_per_node=cores if cores_per_node is None else cores_per_node,
        memory_per_node=memory if memory_per_node is None else memory_per_node,
        workers=workers,
        memory_limit=memory_limit,
        network=network,
        storage=storage,
        core_speed=core_speed,
    )
    if shards is None:
        # The driver has the array and what it stores of it; workers share another copy.
        copies = 2 * work.stored_bytes if spec.kind == "forest" else work.given_bytes
        shards = cluster.memory_limit is not None or (
            work.given_bytes + copies > cluster.memory_per_node
        )
    trial = run_trial(spec, work, verbose)
    cost = trial.scaled_cost(work)
    if images:
        cost = replace(cost, images=work.rows * (measure_images() or 0.0))
    here = Cluster(1, cores, memory, storage=cluster.storage)
    task = _Task(spec, work, cost, trial.scaled_tree_bytes(work))
    return task.plan(cluster, here, shards)


def _find_estimator(name: object, memory_limit: Any) -> EstimatorSpec:
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise InvalidInputError(f"estimator must be one of {sorted(ESTIMATORS)}, got {name!r}")
    spec = ESTIMATORS[name]
    if memory_limit is not None and spec.kind != "forest":
        forests = ", ".join(name for name, other in ESTIMATORS.items() if other.kind == "forest")
        raise InvalidInputError(f"memory_limit must be None for {name}; only {forests} have one")
    return spec


def _checked_cluster(**values: Any) -> Cluster:
    values = {name: _whole(value) for name, value in values.items()}
    for name in ("network", "storage"):
        if isinstance(values[name], str):
            values[name] = values[name].removesuffix("/s")
    check_parameters(values, CLUSTER_RULES)
    for name in ("memory_per_node", "memory_limit", "network", "storage"):
        if values[name] is not None:
            values[name] = bytes_of(values[name])
    return Cluster(**values)


def _whole(value: Any) -> Any:
    """Convert a whole number that was written as a float; leave the rest to the checks."""
    is_float = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    # A larger one is refused later, by a message that shows it in few digits.
    return int(value) if is_float and abs(value) < 2**63 and value == int(value) else value


@dataclass(frozen=True)
class _Task:
    """The work, and what it takes on one core."""

    spec: EstimatorSpec
    work: Workload
    cost: Cost
    tree_bytes: float

    def plan(self, cluster: Cluster, here: Cluster, from_shards: bool) -> Plan:
        """Plan for a cluster and for this machine."""
        spec, work = self.spec, self.work
        # Codebooks are trained by threads of the driver.
        used = replace(cluster, nodes=1) if spec.kind == "codebook" else cluster
        needs = compute_footprint(spec, work, self.tree_bytes, used, from_shards=from_shards)
        parts = divide(work, self.cost, used, needs)
        busy = busy_part(used, needs)
        in_use = busy.workers_per_node * needs.worker + (0 if needs.is_mapped else needs.shared)
        with_driver = in_use + needs.driver
        here_needs, here_parts, how_here = self._plan_here(here)
        return Plan(
            estimator=spec.name,
            work=work,
            cluster=cluster,
            one_core_seconds=self.cost.total,
            here_seconds=sum(part.seconds for part in here_parts),
            cluster_seconds=sum(part.seconds for part in parts),
            parts=parts,
            worker_bytes=needs.worker,
            shared_bytes=needs.shared,
            driver_bytes=needs.driver,
            node_bytes=with_driver if cluster.nodes == 1 else in_use,
            driver_node_bytes=with_driver,
            shard_bytes=work.shard_bytes,
            scratch_bytes=needs.scratch,
            model_bytes=needs.model,
            network_bytes=needs.network(cluster.nodes, busy.nodes),
            useful_workers=count_useful_workers(used, needs),
            limits=(
                *self._memory_limits(cluster, needs, in_use),
                *self._time_limits(cluster, used, parts, count_useful_workers(used, needs)),
            ),
            fits=with_driver <= cluster.memory_per_node,
            here_bytes=here_needs.driver,
            fits_here=here_needs.driver <= here.memory_per_node,
            how_here=how_here,
        )

    def _plan_here(self, here: Cluster) -> tuple[Footprint, tuple[Part, ...], str]:
        """Use an array if memory holds it, otherwise shards."""
        how = ""
        needs, _ = footprint_here(self.spec, self.work, self.tree_bytes, here, from_shards=False)
        if needs.driver > here.memory_per_node:
            needs, limit = footprint_here(
                self.spec, self.work, self.tree_bytes, here, from_shards=True
            )
            how = "from shards" + (f" with storage=Storage('{limit // _MIB}MiB')" if limit else "")
        if needs.driver > here.memory_per_node:
            advice = "; larger leaves (min_samples_leaf) or fewer trees need less"
            how = (
                f"does not fit: even from shards it needs {format_bytes(needs.driver)} of "
                f"{format_bytes(here.memory_per_node)}{advice if limit else ''}"
            )
        return needs, divide(self.work, self.cost, here, needs), how

    def _memory_limits(self, cluster: Cluster, needs: Footprint, in_use: int) -> Iterator[str]:
        """What stops the work."""
        memory = cluster.memory_per_node
        if self.spec.kind == "forest" and self.work.rows > _MOST_ROWS:
            yield f"rows: a tree holds at most {_MOST_ROWS}; set max_samples"
        if needs.is_one_process:
            yield (
                "memory_limit: the array exceeds it, so all trees are grown in the process of the "
                "driver, not by workers; use shards"
            )
        if in_use > memory:
            yield (
                f"memory: workers need {format_bytes(in_use)} on a node of {format_bytes(memory)}; "
                f"use {'' if needs.is_mapped else 'shards and a memory limit, '}"
                "fewer workers or larger machines"
            )
        if needs.driver > memory or in_use <= memory < in_use + needs.driver:
            advice = "use larger machines" if needs.is_mapped else "use shards or larger machines"
            if self.spec.kind == "forest":
                advice = "larger leaves (min_samples_leaf) or fewer trees make a smaller model"
            yield (
                f"driver: it needs {format_bytes(needs.driver)} for the model and its input, next "
                f"to {format_bytes(in_use)} of the workers, on a node of {format_bytes(memory)}; "
                f"{advice}"
            )

    def _time_limits(
        self, cluster: Cluster, used: Cluster, parts: tuple[Part, ...], useful_workers: int
    ) -> Iterator[str]:
        """What slows the work down, or makes no difference."""
        n_workers = used.n_workers
        if used.nodes < cluster.nodes:
            yield f"nodes: a codebook is trained on the driver's node; {cluster.nodes - 1} are idle"
        if cluster.workers is not None and cluster.workers > n_workers:
            yield (
                f"workers: {cluster.workers} were requested, but only {n_workers} run at the same "
                "time, one on each core"
            )
        total = sum(part.seconds for part in parts)
        slowest = max(parts, key=lambda part: part.seconds)
        yield (
            f"{slowest.limited_by}: {slowest.name} takes {format_seconds(slowest.seconds)} of "
            f"{format_seconds(total)}"
        )
        if useful_workers < n_workers:
            unit = "tree" if self.spec.has_trees else "shard"
            yield (
                f"{unit}s: {format_count(useful_workers, 'worker')} would be as fast as "
                f"{n_workers}, because one {unit} is processed by one worker"
            )
        if self.work.images and self.work.n_shards < n_workers:
            yield (
                f"images: {n_workers} workers share {self.work.n_shards} shards, and one shard is "
                "embedded by one worker; smaller shards (--rows-per-shard) keep more of them busy"
            )
        if self.work.images and not self.cost.images:
            how = install_command("vision")
            yield f"images: embedding is not counted; to measure it, {how}"
