"""What is to be trained, on what data, and on which machines."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from evergrow import _core
from evergrow.estimators.forest import (
    AxisForestClassifier,
    LinearForestClassifier,
    NCMForestClassifier,
    SVMForestClassifier,
)
from evergrow.estimators.forest.splits import centroids_per_node, leaf_size
from evergrow.estimators.linear import RLSClassifier
from evergrow.estimators.means import NCMClassifier
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    MemorySize,
    Nothing,
    Number,
    Rule,
    check_parameters,
)
from evergrow.storage.shards.writer import SHARD_BYTES
from evergrow.vision.words.erc.erc_forest import ERCForest

WORKLOAD_RULES: dict[str, list[Rule]] = {
    "rows": [Integer(1, 2**40)],
    "features": [Integer(1, 2**24)],
    "classes": [Integer(1, 2**31 - 1)],
    "trees": [Integer(1, 2**16)],
    "min_samples_leaf": [Integer(1, 2**28)],
    "dtype": [Choice(("float16", "float32", "float64"))],
    "images": [Flag()],
}
CLUSTER_RULES: dict[str, list[Rule]] = {
    "nodes": [Integer(1, 2**16)],
    "cores_per_node": [Integer(1, 2**12)],
    "memory_per_node": [MemorySize()],
    "workers": [Nothing(), Integer(1, 2**20)],
    "memory_limit": [Nothing(), MemorySize()],
    "network": [MemorySize("1.25GB/s")],
    "storage": [MemorySize("1GB/s")],
    "core_speed": [Number(0.0, 1000.0, open_low=True)],
}

# Of control groups of version 2 and 1.
_CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_ITEM_BYTES = {"float16": 2, "float32": 4, "float64": 8}
_LABEL_BYTES = 4
# Images in a shard, unless fewer already fill it.
_IMAGES_PER_SHARD = 2048


@dataclass(frozen=True)
class Workload:
    """Size of the training data and of the model in a :class:`Plan`.

    Attributes
    ----------
    rows : int
        Number of rows.
    features : int
        Number of features.
    classes : int
        Number of classes.
    trees : int
        Number of trees.
    min_samples_leaf : int
        Smallest number of samples in a leaf.
    dtype : str
        Type of the features.
    images : bool
        Whether rows are images that must be embedded first.
    """

    rows: int
    features: int
    classes: int
    trees: int = 50
    min_samples_leaf: int = 10
    dtype: str = "float32"
    images: bool = False

    def __post_init__(self) -> None:
        check_parameters(asdict(self), WORKLOAD_RULES)
        if self.classes > self.rows:
            raise InvalidInputError(
                f"classes must be at most the number of rows, {self.rows}, got {self.classes}"
            )

    @property
    def class_size(self) -> float:
        """Mean number of rows per class."""
        return self.rows / self.classes

    @property
    def auto_leaf(self) -> int:
        """Value of ``min_samples_leaf="auto"`` for this data."""
        return leaf_size("auto", self.class_size)

    @property
    def width(self) -> int:
        """Number of features of a stored row, padded to whole cache lines."""
        return _core.padded_width(self.features)

    @property
    def given_bytes(self) -> int:
        """Size of the features as they are given, in bytes."""
        return self.rows * self.features * _ITEM_BYTES[self.dtype]

    @property
    def stored_bytes(self) -> int:
        """Size of the standardised rows that a forest is grown from, in bytes."""
        return self.rows * self.width * 4

    @property
    def shard_bytes(self) -> int:
        """Size of the features and labels as shards, in bytes."""
        return self.given_bytes + _LABEL_BYTES * self.rows

    @property
    def n_shards(self) -> int:
        """Number of shards of the usual size."""
        by_bytes = math.ceil(self.given_bytes / SHARD_BYTES)
        return max(by_bytes, -(-self.rows // _IMAGES_PER_SHARD)) if self.images else by_bytes


@dataclass(frozen=True)
class Cluster:
    """The machines of a :class:`Plan`, which are all alike.

    Attributes
    ----------
    nodes : int
        Number of machines.
    cores_per_node : int
        Number of cores of each machine.
    memory_per_node : int
        Memory of each machine in bytes.
    workers : int or None
        Number of processes that work at the same time, one core each. None is one per core.
    memory_limit : int or None
        Bytes of samples that a forest may have in memory; more of them are in a file.
    network : int
        Bytes per second that each machine receives from others.
    storage : int
        Bytes per second that each machine reads from and writes to storage.
    core_speed : float
        Speed of a core, relative to a core of this machine.
    """

    nodes: int
    cores_per_node: int
    memory_per_node: int
    workers: int | None = None
    memory_limit: int | None = None
    network: int = 1_250_000_000
    storage: int = 1_000_000_000
    core_speed: float = 1.0

    @property
    def cores(self) -> int:
        """Number of cores of all machines."""
        return self.nodes * self.cores_per_node

    @property
    def n_workers(self) -> int:
        """Number of workers at the same time, at most one per core."""
        return self.cores if self.workers is None else min(self.workers, self.cores)

    @property
    def workers_per_node(self) -> int:
        """Number of workers on the machine with the most workers."""
        return -(-self.n_workers // self.nodes)


def this_machine() -> tuple[int, int]:
    """Processors that this process may use, and bytes of memory of the machine or container."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        # Not known on Windows: a common size.
        memory = 16 << 30
    return cores, min([memory, *_container_limits()])


def _container_limits() -> Iterator[int]:
    """Memory limits of the container that this process runs in, in bytes."""
    for path in _CONTAINER_LIMITS:
        # Outside of a container the file does not exist; without a limit it contains "max".
        with suppress(OSError, ValueError):
            yield int(Path(path).read_text())


def _visits(work: Workload, leaf: int | None = None) -> float:
    """Nodes that rows pass in all trees, if every node halves its rows."""
    leaves = work.rows / (leaf or work.min_samples_leaf)
    return work.trees * work.rows * max(1.0, math.log2(max(2.0, leaves)))


def _values(work: Workload) -> float:
    return float(work.rows * work.features)


def _ncm_values(work: Workload) -> float:
    """Values of the class means of a node: large nodes have as many as may be, small ones few."""
    return work.width * math.sqrt(centroids_per_node("auto", work.classes, work.class_size))


@dataclass(frozen=True)
class EstimatorSpec:
    """An estimator that can be planned, and what its training time and size are proportional to.

    ``shared`` is for work that is divided among trees or rows and ``once`` for all other work;
    ``node`` is for the size of a node of a forest.
    """

    name: str
    kind: Literal["forest", "codebook", "sums"]
    estimator: Callable[..., Any]
    shared: Callable[[Workload], float]
    once: Callable[[Workload], float] = _values
    node: Callable[[Workload], float] = lambda work: work.width

    @property
    def has_trees(self) -> bool:
        """Forests and codebooks grow trees."""
        return self.kind != "sums"

    def make(self, work: Workload, **options: Any) -> Any:
        """The estimator with the workload's parameters and these, and defaults for all others."""
        if not self.has_trees:
            return self.estimator(**options)
        if self.kind == "forest":
            options = {"min_samples_leaf": work.min_samples_leaf, **options}
        return self.estimator(work.trees, n_jobs=1, random_state=0, **options)


_SPECS = (
    EstimatorSpec(
        "ncm_forest",
        "forest",
        NCMForestClassifier,
        lambda w: _visits(w) * _ncm_values(w),
        node=_ncm_values,
    ),
    EstimatorSpec(
        "axis",
        "forest",
        AxisForestClassifier,
        lambda w: _visits(w) * math.sqrt(w.features),
        node=lambda _: 1.0,
    ),
    EstimatorSpec(
        "linear", "forest", LinearForestClassifier, lambda w: _visits(w) * w.features**1.5
    ),
    EstimatorSpec("svm", "forest", SVMForestClassifier, lambda w: _visits(w) * w.features),
    EstimatorSpec(
        "least_squares",
        "sums",
        RLSClassifier,
        lambda w: w.rows * w.features**2,
        lambda w: w.features**2 * (w.features + w.classes),
    ),
    EstimatorSpec("means", "sums", NCMClassifier, _values, lambda w: w.classes * w.features),
    EstimatorSpec(
        "erc", "codebook", ERCForest, lambda w: _visits(w, leaf=1) * math.sqrt(w.features)
    ),
)
ESTIMATORS = {spec.name: spec for spec in _SPECS}
