"""What is to be learnt, and where."""

from __future__ import annotations

import functools
import os
from dataclasses import asdict, dataclass

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

__all__ = ["CLUSTER_RULES", "WORKLOAD_RULES", "Cluster", "Workload", "cache_bytes", "this_machine"]

# The core counts samples with 28 bits and classes with 31; more features are no image's.
_MOST_ROWS, _MOST_CLASSES, _MOST_FEATURES = 2**40, 2**31 - 1, 2**24

WORKLOAD_RULES: dict[str, list[Rule]] = {
    "rows": [Integer(1, _MOST_ROWS)],
    "features": [Integer(1, _MOST_FEATURES)],
    "classes": [Integer(1, _MOST_CLASSES)],
    "trees": [Integer(1, 2**16)],
    "min_samples_leaf": [Integer(1, 2**28)],
    "dtype": [Choice(("float16", "float32", "float64"))],
    "images": [Flag()],
}

CLUSTER_RULES: dict[str, list[Rule]] = {
    "nodes": [Integer(1, 2**16)],
    "cores_per_node": [Integer(1, 2**12)],
    "workers": [Nothing(), Integer(1, 2**20)],
    "memory_per_node": [MemorySize()],
    "memory_limit": [Nothing(), MemorySize()],
    "network": [MemorySize()],
    "storage": [MemorySize()],
    "core_speed": [Number(0.0, 1000.0, open_low=True)],
}

_USUAL_CACHE_BYTES = 32 << 20
_ITEM_BYTES = {"float16": 2, "float32": 4, "float64": 8}


@dataclass(frozen=True)
class Workload:
    """How much there is to learn.

    ``images`` tells that rows are images that have to be embedded first.
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
            raise ValueError(
                f"classes must be at most the number of rows, {self.rows}, got {self.classes}"
            )

    @property
    def width(self) -> int:
        """Features of a row as the core keeps it: padded to whole lines of the cache."""
        return -(-self.features // 16) * 16

    @property
    def given_bytes(self) -> int:
        """Bytes of the features as they are given."""
        return self.rows * self.features * _ITEM_BYTES[self.dtype]

    @property
    def kept_bytes(self) -> int:
        """Bytes of the standardised rows that trees are grown from."""
        return self.rows * self.width * 4


@dataclass(frozen=True)
class Cluster:
    """Machines that are all alike.

    ``workers`` is the number of processes that work at the same time, one core each; None for one
    per core. ``memory_per_node`` and ``memory_limit`` are in bytes, ``network`` and ``storage`` in
    bytes per second and node, ``core_speed`` in cores of this machine.
    """

    nodes: int
    cores_per_node: int
    memory_per_node: int
    workers: int | None = None
    memory_limit: int | None = None
    network: int = 1_250_000_000
    storage: int = 1_000_000_000
    core_speed: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(asdict(self), CLUSTER_RULES)

    @property
    def cores(self) -> int:
        """Cores of all machines."""
        return self.nodes * self.cores_per_node

    @property
    def n_workers(self) -> int:
        """Workers at the same time: no more than there are cores."""
        return self.cores if self.workers is None else min(self.workers, self.cores)

    @property
    def workers_per_node(self) -> int:
        """Workers on the fullest machine."""
        return -(-self.n_workers // self.nodes)


def this_machine() -> tuple[int, int]:
    """Processors that this process may use, and bytes of memory of the machine."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        # Where the system does not tell, as on Windows: what is common there.
        memory = 16 << 30
    return cores, memory


@functools.cache
def cache_bytes() -> int:
    """Bytes of the last cache before memory, as far as the system tells."""
    try:
        found = os.sysconf("SC_LEVEL3_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):
        found = 0
    return found if found > 0 else _USUAL_CACHE_BYTES
