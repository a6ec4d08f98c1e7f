"""What learning will take: time, memory, disk and network, before it is begun."""

from __future__ import annotations

import math
import numbers
from typing import Any

from evergrow.distributed.planning.amounts import said_bytes, said_count, said_seconds
from evergrow.distributed.planning.answer import Plan, Seconds
from evergrow.distributed.planning.calibration import Calibration
from evergrow.distributed.planning.families import FAMILIES, Family, family_named
from evergrow.distributed.planning.footprint import Footprint, footprint_of
from evergrow.distributed.planning.here import plan_here
from evergrow.distributed.planning.kept import Kept
from evergrow.distributed.planning.machine import RAY_SECONDS, Machine, has_ray
from evergrow.distributed.planning.schedule import (
    Part,
    busy_part,
    core_seconds,
    n_useful_workers,
    parts_of,
)
from evergrow.distributed.planning.workload import CLUSTER_RULES, Cluster, Workload, this_machine
from evergrow.foundation.params import Flag, Nothing, bytes_of, check_parameters

__all__ = ["plan"]

# What the core can count in one tree.
_MOST_ROWS = 2**28
# How far apart trees on different data of the same size are, as a share of their time. A choice:
# some real features are further off (docs/planning.md).
_DATA_SPREAD = 0.15
# What every doubling beyond the largest calibrated run adds; a choice as well.
_DOUBLING_SPREAD = 0.02

# What makes a driver smaller, of forests and of others.
_SMALLER = {
    True: "larger leaves (min_samples_leaf) or fewer trees make a smaller model",
    False: "shards or larger machines are the way out",
}


def plan(
    rows: int,
    features: int,
    classes: int,
    *,
    estimator: str = "ncm_forest",
    trees: int = 50,
    min_samples_leaf: int = 10,
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
    calibrate: bool = False,
    verbose: int = 0,
) -> Plan:
    """Tell what training will cost: time, memory of the workers, disk, network, and what limits.

    The first call measures this machine, within a minute: it fits the estimator to small generated
    data of a dozen sizes and finds what the parts of its work cost. That is kept in the user's
    folder for caches and used until the processor or a version changes.

    Parameters
    ----------
    rows, features, classes : int
        Size of the training data. A whole number may be written as a float: ``1.2e6``.
    estimator : {"ncm_forest", "axis", "linear", "svm", "least_squares", "means", "erc"}, \
default="ncm_forest"
        What is to learn, with its default parameters: the four forests, least squares
        (:class:`RLSClassifier`), class means (:class:`NCMClassifier`), or an ERC codebook, whose
        rows are descriptors.
    trees : int, default=50
        Number of trees, for forests and codebooks.
    min_samples_leaf : int, default=10
        That of the forest. Larger leaves make smaller trees.
    dtype : {"float16", "float32", "float64"}, default="float32"
        Precision of the features as they are given; half precision halves shards and reading.
    images : bool, default=False
        Rows are photographs that have to be embedded first. Needs the extra ``vision`` to be
        measured; without it the time of embedding is left out, which is said.
    nodes : int, default=1
        Machines of the cluster.
    cores_per_node : int, default=None
        Cores of each; None for as many as this machine has.
    workers : int, default=None
        Processes that work at the same time; None for one per core. Forests have no use for more
        than there are trees, and nothing for more than there are cores.
    memory_per_node : int or str, default=None
        Memory of each, in bytes or as ``"64GiB"``; None for as much as this machine has.
    memory_limit : int or str, default=None
        That of the forest: the most that a worker may have to itself beside its trees. Other
        estimators have none.
    shards : bool, default=None
        Whether the data are shards on storage that all machines reach, instead of an array in the
        memory of one; None for shards where there is a memory limit or the array would not fit.
    network, storage : int or str
        Bytes per second that a machine receives from others, and reads from the storage of
        shards: ``"1.25GB"`` or ``"1.25GB/s"``.
    core_speed : float, default=1.0
        How fast a core of the cluster is, in cores of this machine.
    calibrate : bool, default=False
        Measure again, though nothing has changed: the machine was busy last time.
    verbose : int, default=0
        Show progress bars while measuring.

    Returns
    -------
    Plan
        The plan; printed, it is a table.

    Examples
    --------
    >>> import evergrow
    >>> small = evergrow.plan(100_000, 64, 50, estimator="means")
    >>> large = evergrow.plan(800_000, 64, 50, estimator="means")
    >>> small.one_core.expected < large.one_core.expected
    True
    >>> large.shard_bytes
    208000000
    """
    family = family_named(estimator)
    work = Workload(
        _whole(rows),
        _whole(features),
        _whole(classes),
        trees=_whole(trees),
        min_samples_leaf=_whole(min_samples_leaf),
        dtype=dtype,
        images=images,
    )
    cores, memory = this_machine()
    here = Cluster(1, cores, memory)
    asked = {
        "nodes": _whole(nodes),
        "cores_per_node": cores if cores_per_node is None else _whole(cores_per_node),
        "memory_per_node": memory if memory_per_node is None else _whole(memory_per_node),
        "workers": _whole(workers),
        "memory_limit": _whole(memory_limit),
        "network": _whole(_in_a_second(network)),
        "storage": _whole(_in_a_second(storage)),
        "core_speed": core_speed,
    }
    check_parameters(asked, CLUSTER_RULES)
    check_parameters(
        {"shards": shards, "calibrate": calibrate},
        {"shards": [Nothing(), Flag()], "calibrate": [Flag()]},
    )
    _check_has_limit(family, memory_limit)
    sizes = {
        name: asked[name] for name in ("memory_per_node", "memory_limit", "network", "storage")
    }
    cluster = Cluster(**asked | {name: size and bytes_of(size) for name, size in sizes.items()})
    if shards is None:
        # The driver has what it is given and what it keeps of it; workers read another copy.
        shared = work.kept_bytes if family.has_shape else work.given_bytes
        in_memory = work.given_bytes + shared + (work.kept_bytes if family.has_shape else 0)
        shards = cluster.memory_limit is not None or in_memory > cluster.memory_per_node
    kept = Kept(fresh=calibrate, verbose=verbose)
    return planned(
        family,
        work,
        (here, cluster),
        kept.calibration(family),
        kept.machine(images=images, ray=cluster.nodes > 1 or workers is not None),
        from_shards=shards,
    )


def planned(
    family: Family,
    work: Workload,
    places: tuple[Cluster, Cluster],
    calibration: Calibration,
    machine: Machine,
    *,
    from_shards: bool,
) -> Plan:
    """The plan for this machine, the first of the places, and for a cluster, the second."""
    here, cluster = places
    shape, seconds = calibration.shape(family, work), calibration.seconds(family, work)
    needs = footprint_of(family, work, shape, cluster, from_shards=from_shards)
    parts = parts_of(family, work, seconds, machine, cluster, needs)
    on_here = plan_here(family, work, shape, seconds, machine, here)
    alone = core_seconds(family, work, seconds, machine)
    spread = _spread(family, calibration, alone)
    busy = busy_part(family, work, cluster, needs)
    # Words are learnt by threads of the driver.
    n_busy = 0 if family.name == "erc" else busy.workers_per_node
    in_use = n_busy * (needs.private + needs.kept) + (0 if needs.is_mapped else needs.shared)
    beside_driver = in_use + needs.driver
    return Plan(
        estimator=family.name,
        work=work,
        cluster=cluster,
        one_core=_interval(alone, spread),
        this_machine=_interval(on_here.seconds, spread),
        on_cluster=_interval(sum(part.seconds for part in parts), spread),
        parts=tuple(parts),
        worker_bytes=needs.private,
        shared_bytes=needs.shared,
        driver_bytes=needs.driver,
        node_bytes=beside_driver if cluster.nodes == 1 else in_use,
        driver_node_bytes=beside_driver,
        shard_bytes=needs.shards,
        scratch_bytes=needs.scratch,
        model_bytes=needs.model,
        network_bytes=needs.network(cluster.nodes, busy.nodes),
        useful_workers=n_useful_workers(family, work, cluster, needs),
        limits=tuple(_limits(family, work, cluster, needs, parts, machine, in_use)),
        here_bytes=on_here.n_bytes,
        fits_here=on_here.fits,
        how_here=on_here.how,
        calibration_spread=_measured_spread(calibration),
        fits=beside_driver <= cluster.memory_per_node
        and (cluster.memory_limit is None or cluster.memory_limit >= needs.least_limit),
    )


def _whole(value: Any) -> Any:
    """A whole number that was written as a float; anything else is left to the checks."""
    is_float = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    # Beyond what anything here may be it is left as it is: an error then says it in few digits.
    is_usual = is_float and abs(value) < 2**63
    return int(value) if is_usual and value == int(value) else value


def _in_a_second(value: Any) -> Any:
    return value.removesuffix("/s") if isinstance(value, str) else value


def _check_has_limit(family: Family, memory_limit: Any) -> None:
    if memory_limit is not None and not family.has_shape:
        limited = ", ".join(name for name, other in FAMILIES.items() if other.has_shape)
        raise ValueError(
            f"memory_limit must be None for {family.name}, which has none ({limited} have one)"
        )


def _measured_spread(calibration: Calibration) -> float:
    """How uncertain the calibration is, as a share: twice its error over its runs."""
    return 2 * calibration.error


def _spread(family: Family, calibration: Calibration, seconds: float) -> float:
    data = _DATA_SPREAD if family.has_trees else 0.0
    doublings = max(0.0, math.log2(seconds / calibration.largest))
    return math.hypot(_measured_spread(calibration), data) + _DOUBLING_SPREAD * doublings


def _interval(seconds: float, spread: float) -> Seconds:
    return Seconds(seconds, seconds / (1 + spread), seconds * (1 + spread))


def _limits(
    family: Family,
    work: Workload,
    cluster: Cluster,
    needs: Footprint,
    parts: list[Part],
    machine: Machine,
    in_use: int,
) -> list[str]:
    """Sentences, what stops the work before what slows it down."""
    found = []
    if family.has_shape and work.rows > _MOST_ROWS:
        found.append(f"rows: a tree holds at most {_MOST_ROWS}, which max_samples can see to")
    if cluster.memory_limit is not None and cluster.memory_limit < needs.least_limit:
        found.append(
            f"memory_limit: {said_bytes(cluster.memory_limit)} is too little; "
            f"it takes {said_bytes(needs.least_limit)}"
        )
    if in_use > cluster.memory_per_node:
        advice = (
            "fewer workers, or larger machines"
            if needs.is_mapped
            else "shards and a memory limit, fewer workers, or larger machines"
        )
        found.append(
            f"memory: {said_bytes(in_use)} on a node of {said_bytes(cluster.memory_per_node)}; "
            f"it takes {advice}"
        )
    room = cluster.memory_per_node
    if needs.driver > room or in_use <= room < in_use + needs.driver:
        found.append(
            f"driver: it needs {said_bytes(needs.driver)} for the model and what it is given, "
            f"beside {said_bytes(in_use)} of the workers on its node, which has "
            f"{said_bytes(room)}; {_SMALLER[family.has_shape]}"
        )
    if cluster.workers is not None and cluster.workers > cluster.cores:
        found.append(
            f"workers: {cluster.workers} were asked for, but only {cluster.n_workers} work at the "
            "same time, one on each core"
        )
    total = sum(part.seconds for part in parts)
    largest = max(parts, key=lambda part: part.seconds)
    found.append(
        f"{largest.limited_by}: {largest.name} takes {said_seconds(largest.seconds)} of "
        f"{said_seconds(total)}"
    )
    useful = n_useful_workers(family, work, cluster, needs)
    if useful < cluster.n_workers:
        reason = (
            "trees: {}, as one tree is grown by one worker"
            if family.has_trees
            else "shards: {}, as one shard is added up by one worker"
        )
        found.append(
            reason.format(
                f"{said_count(useful, 'worker')} would be as quick as {cluster.n_workers}"
            )
        )
    if work.images and needs.n_shards < cluster.n_workers:
        found.append(
            f"images: {cluster.n_workers} workers share {needs.n_shards} shards, and one shard is "
            "embedded by one worker; smaller shards (--rows-per-shard) keep more of them busy"
        )
    if work.images and machine.image_seconds is None:
        found.append('images: embedding is not counted; install "evergrow[vision]" to measure it')
    if cluster.nodes > 1 and not machine.ray_is_measured:
        reason = (
            f"it is installed, but did not answer within {RAY_SECONDS} s; the next plan tries again"
            if has_ray()
            else 'install "evergrow[cluster]"'
        )
        found.append(f"Ray: not measured here but assumed; {reason}")
    return found
