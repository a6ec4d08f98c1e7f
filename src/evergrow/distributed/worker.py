"""What Ray calls on workers, and the versions that must match on every node.

With other versions, results would depend on the node.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import socket
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from evergrow import _core
from evergrow.foundation.engine import Arrays, Join, Task
from evergrow.foundation.errors import ClusterError
from evergrow.foundation.extras import __version__

# From the name of a component to its version.
Versions = Mapping[str, str]

_KERNELS = "instruction set"


@functools.cache
def local_versions() -> Versions:
    """Return the versions of this process."""
    return {
        "Python": platform.python_version(),
        "Evergrow": __version__,
        "NumPy": np.__version__,
        # Kernels for different processors add in different orders and round differently.
        _KERNELS: _core.chosen_kernel(),
    }


def check_nodes(here: Versions, nodes: Mapping[str, Versions]) -> None:
    """Raise a ``ClusterError`` that lists the nodes whose versions differ from those here.

    >>> check_nodes({"Python": "3.12.1"}, {"node 7": {"Python": "3.12.1"}})
    >>> check_nodes({"Python": "3.12.1"}, {"node 7": {"Python": "3.11.2"}})
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.ClusterError: the nodes have different versions: ... 3.12.1, but
      node 7 has Python 3.11.2
    Install the same versions on every node.
    """
    lines, wrong = [], set()
    for node, found in nodes.items():
        different = [component for component in here if found.get(component) != here[component]]
        if different:
            wrong.update(different)
            has = ", ".join(
                f"{component} {found.get(component, '(none)')}" for component in different
            )
            lines.append(f"  {node} has {has}")
    if not lines:
        return
    ours = ", ".join(f"{component} {here[component]}" for component in here if component in wrong)
    advice = ["Install the same versions on every node."] if wrong - {_KERNELS} else []
    if _KERNELS in wrong:
        advice.append(
            "Set EVERGROW_ISA, here and where Ray is started, to one that every processor has."
        )
    text = "\n".join([*lines, " ".join(advice)])
    raise ClusterError(f"the nodes have different versions: here is {ours}, but\n{text}")


@functools.cache
def _checked(expected: tuple[tuple[str, str], ...]) -> None:
    check_nodes(dict(expected), {f"node {socket.gethostname()}": local_versions()})


def check_here(expected: Versions) -> None:
    """Check the versions on a worker, whose node may have joined after the first check."""
    _checked(tuple(expected.items()))


# Constants of malloc.h. By default the threshold follows the largest array that was freed, and
# later arrays fragment the heap.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES = 128 << 10


def perform(expected: Versions, task: Task, part: Any, *shared: Any) -> tuple[int, Arrays]:
    """Run one part; return the size of its result in bytes, and the result.

    They are two objects, so that the driver can learn that a part is done without fetching it.
    """
    check_here(expected)
    _trim_memory()
    result = task(part, *shared)
    return _n_bytes(result), result


def join_two(expected: Versions, join: Join, first: Arrays, second: Arrays) -> tuple[int, Arrays]:
    """Join two results."""
    check_here(expected)
    result = join(first, second)
    return _n_bytes(result), result


def report_versions() -> Versions:
    """Return the versions of the process that runs this."""
    return local_versions()


def submit_to_node(ray: Any, node: dict[str, Any], function: Any, *values: Any) -> Any:
    """Submit a function to one node; return the reference to its result."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    options = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": there}
    return ray.remote(**options)(function).remote(*values)


def _trim_memory() -> None:
    """Return freed memory to the system: workers live long, and many share a machine."""
    library = _c_library()
    if library is not None:
        library.malloc_trim(0)


@functools.cache
def _c_library() -> Any:
    """The GNU C library, set to hold on to little freed memory; None for other libraries."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "malloc_trim"):
        return None
    library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    library.mallopt(_M_ARENA_MAX, 1)
    return library


def _n_bytes(result: Arrays) -> int:
    return sum(array.nbytes for array in result.values())
