"""The worker's side of growing a forest: tasks that grow a group of its trees.

A tree is a function of the seed, its number and the samples. So groups of trees can be grown
anywhere, in any order and more than once. Joined in order they are the forest that a single
process would grow. This module imports as little as possible, because every worker loads it.

The samples, which all workers of a machine share, are kept in large memory pages.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.cluster.node_files import NodeFile, open_node_samples
from evergrow.estimators.forest.value.fitted import Codes, Ids
from evergrow.estimators.forest.value.weights import Weights
from evergrow.foundation.engine import Arrays

_LARGE_PAGE = 2 << 20

# Constants of sys/mman.h on Linux.
_PROT_NONE = 0
_MAP_PRIVATE, _MAP_ANONYMOUS, _MAP_NORESERVE = 0x02, 0x20, 0x4000
_MREMAP_MAYMOVE, _MREMAP_FIXED = 1, 2
_MADV_COLLAPSE = 25

# First tree, and number of trees.
Group = tuple[int, int]


class GrowthPlan(TypedDict):
    """How the core grows trees: all arguments of ``_core.Forest.grow`` but samples and trees."""

    n_classes: int
    seed: int
    rows_per_tree: int
    bootstrap: bool
    rules: _core.SplitRules
    n_threads: int
    class_weights: Sequence[float]


def grow_over(group: Group, samples: _core.Samples, growth: GrowthPlan) -> Arrays:
    """Grow a group of trees."""
    return trees_to_arrays(_grow_in_turn(group, samples, growth))


def _grow_in_turn(
    group: Group, samples: _core.Samples, growth: GrowthPlan
) -> Iterator[_core.Forest]:
    """Grow as many trees at a time as there are threads, so that few are in memory."""
    first_tree, n_trees = group
    end, step = first_tree + n_trees, growth["n_threads"]
    for first in range(first_tree, end, step):
        # The trees are freed as soon as they are arrays, so they need not be packed.
        yield _core.Forest.grow(
            samples=samples,
            n_trees=min(step, end - first),
            first_tree=first,
            progress=None,
            packs_trees=False,
            **growth,
        )


def grow_over_rows(
    group: Group,
    rows: npt.NDArray[Any],
    codes: Codes,
    ids: Ids,
    weights: Weights | None,
    n_features: int,
    growth: GrowthPlan,
) -> Arrays:
    """Grow a group of trees over the rows of a shared matrix, without copying them."""
    use_large_pages(rows)
    samples = _core.Samples.over(rows, codes, ids, n_features=n_features, weights=weights)
    return grow_over(group, samples, growth)


def grow_over_shards(
    group: Group,
    file: NodeFile,
    codes: Codes,
    ids: Ids,
    weights: Weights | None,
    growth: GrowthPlan,
) -> Arrays:
    """Grow a group of trees over shards; each node writes one file."""
    return grow_over(group, open_node_samples(file, codes, ids, weights), growth)


def trees_to_arrays(forests: Iterable[_core.Forest]) -> Arrays:
    """The trees of all forests as arrays; of each forest only its arrays are kept."""
    arrays: Arrays = {}
    n_comparisons: list[int] = []
    for forest in forests:
        for tree in range(len(forest)):
            for name, array in forest.tree_arrays(tree).items():
                arrays[f"{len(n_comparisons) + tree}.{name}"] = array
        n_comparisons += forest.n_comparisons
        del forest
    return {"n_comparisons": np.array(n_comparisons, dtype=np.int64), **arrays}


def forest_from_arrays(
    arrays: Arrays, samples: _core.Samples, proposer: str, n_classes: int
) -> _core.Forest:
    """Rebuild from :func:`trees_to_arrays`, over the samples that the trees were grown from."""
    n_comparisons = arrays["n_comparisons"].tolist()
    trees: list[Arrays] = [{} for _ in n_comparisons]
    for key, array in arrays.items():
        tree, _, name = key.partition(".")
        if name:
            trees[int(tree)][name] = array
    return _core.Forest.from_arrays(
        samples=samples,
        trees=trees,
        n_comparisons=n_comparisons,
        proposer=proposer,
        n_classes=n_classes,
    )


def use_large_pages(array: npt.NDArray[Any]) -> None:
    """Ask the system to keep an array in shared memory in large pages, for all its readers.

    Rows that are read in random order need an address translation each, which takes a sixth of the
    time of growing trees on a virtual machine with small pages. Other systems than Linux since 6.1
    ignore the request, and so does a system without free large pages. Repeating it is cheap.
    """
    # An address that cannot be read or parsed is one that stays as it is.
    with suppress(OSError, ValueError):
        library = _c_library()
        if library is not None and array.nbytes >= 2 * _LARGE_PAGE:
            _collapse(library, array.ctypes.data, array.nbytes)


def _collapse(library: Any, address: int, n_bytes: int) -> None:
    offset = _file_offset(address)
    if offset is None:
        return
    # Only whole large pages of the file that hold nothing but the array.
    skipped = -offset % _LARGE_PAGE
    size = (n_bytes - skipped) // _LARGE_PAGE * _LARGE_PAGE
    if size <= 0:
        return
    # The system can only do it where address and offset are aligned alike, so the memory is
    # mapped a second time; its pages are the same.
    flags = _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE
    reserved = library.mmap(None, size + _LARGE_PAGE, _PROT_NONE, flags, -1, 0)
    if reserved == ctypes.c_void_p(-1).value:
        return
    try:
        aligned = -(-reserved // _LARGE_PAGE) * _LARGE_PAGE
        how = _MREMAP_MAYMOVE | _MREMAP_FIXED
        if library.mremap(address + skipped, 0, size, how, aligned) == aligned:
            library.madvise(aligned, size, _MADV_COLLAPSE)
    finally:
        library.munmap(reserved, size + _LARGE_PAGE)


def _file_offset(address: int) -> int | None:
    """Offset of an address in the shared file it is mapped from; None for other memory."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        extent, permissions, offset = line.split(maxsplit=3)[:3]
        first, _, end = extent.partition("-")
        if int(first, 16) <= address < int(end, 16):
            is_shared = permissions.endswith("s")
            return int(offset, 16) + address - int(first, 16) if is_shared else None
    return None


@functools.cache
def _c_library() -> Any:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    if not all(hasattr(library, name) for name in ("mmap", "mremap", "madvise", "munmap")):
        return None
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.restype = library.mremap.restype = pointer
    library.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_long]
    library.mremap.argtypes = [pointer, size, size, number, pointer]
    library.madvise.argtypes = [pointer, size, number]
    library.munmap.argtypes = [pointer, size]
    return library
