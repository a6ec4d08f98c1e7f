"""The functions that Ray calls on workers."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

from evergrow.distributed.versions import Versions, check_here, versions_here
from evergrow.foundation.engine import Arrays, Change, Join, Task

__all__ = ["Keeper", "join_two", "on_node", "perform", "report_versions"]

# Names of malloc.h. Left alone, the threshold follows the largest array that was freed, and later
# ones leave holes.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES = 128 << 10


def perform(expected: Versions, task: Task, part: Any, *shared: Any) -> tuple[int, Arrays]:
    """Do one part of a piece of work: how many bytes it gave, and the result.

    They are two objects: whoever only wants to know that it is done need not fetch the result.
    """
    check_here(expected)
    _give_back_memory()
    result = task(part, *shared)
    return _n_bytes(result), result


def join_two(expected: Versions, join: Join, first: Arrays, second: Arrays) -> tuple[int, Arrays]:
    """Put two results together."""
    check_here(expected)
    result = join(first, second)
    return _n_bytes(result), result


class Keeper:
    """An actor: values that stay on a worker, each by the name of its version."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._refusals: dict[str, Exception] = {}

    def load(self, expected: Versions, name: str, make: Any, *values: Any) -> None:
        """Make the value of a version; what goes wrong is said when it is asked for."""
        try:
            check_here(expected)
            _give_back_memory()
            self._values[name] = make(*values)
        except Exception as error:  # noqa: BLE001
            self._refusals[name] = error

    def change(
        self, expected: Versions, change: Change, names: tuple[str, str], part: Any, *shared: Any
    ) -> tuple[int, Arrays]:
        """Make one version of another, and keep both; gives what :func:`perform` gives."""
        check_here(expected)
        before, after = names
        if before in self._refusals:
            raise self._refusals.pop(before)
        self._values[after], result = change(self._values[before], part, *shared)
        return _n_bytes(result), result

    def let_go(self, names: list[str]) -> None:
        """Drop versions."""
        for name in names:
            self._values.pop(name, None)


def report_versions() -> Versions:
    """The versions of the process that is asked."""
    return versions_here()


def on_node(ray: Any, node: dict[str, Any], function: Any, *values: Any) -> Any:
    """Hand a function to Ray that is to run on one node; gives the reference to its result."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    options = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": there}
    return ray.remote(**options)(function).remote(*values)


def _give_back_memory() -> None:
    """Return what the task before has freed: workers live long, and many share a machine."""
    library = _c_library()
    if library is not None:
        library.malloc_trim(0)


@functools.cache
def _c_library() -> Any:
    """GNU's C library, told to keep little of the memory that is freed; None for others."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "malloc_trim"):
        return None
    library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    library.mallopt(_M_ARENA_MAX, 1)
    return library


def _n_bytes(result: Arrays) -> int:
    return sum(array.nbytes for array in result.values())
