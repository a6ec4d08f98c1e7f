"""Which arrays of a model file are those of a tree.

The twin of ``cpp/tree/flat_tree_check.cpp``: plain loops, one condition per line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

MAX_DEPTH = 4096
MAX_SAMPLES = 1 << 28
MAX_EXPANSION = 32
FREE_EXPANSION = 1 << 24
LEAF = -1
REMOVED = -1
# The code of slot 0, which splits by a feature have.
NO_VECTOR = -1

Arrays = Mapping[str, Any]


def is_tree(
    tree: Arrays,
    kind: str,
    *,
    n_classes: int,
    n_features: int,
    row_classes: Any,
    n_slots: int,
    slot_bytes: int,
) -> bool:
    """Whether the arrays are those of a tree.

    ``kind`` is "ncm", "linear" or "axis"; ``row_classes`` are the classes of the stored samples.
    """
    try:
        _check_links(tree)
        _check_ranges(tree, kind)
        _check_centroids(tree, kind, n_classes, n_features, row_classes, n_slots)
        _check_leaves(tree, n_classes, row_classes)
        _check_expansion(tree, n_classes, n_slots * slot_bytes)
    except AssertionError:
        return False
    return True


def _check_links(tree: Arrays) -> None:
    left = [int(link) for link in tree["left"]]
    assert left
    depth: dict[int, int] = {0: 0}
    for node, child in enumerate(left):
        assert node in depth
        if child == LEAF:
            continue
        assert node < child
        assert child + 1 < len(left)
        assert child not in depth
        assert child + 1 not in depth
        assert depth[node] < MAX_DEPTH
        depth[child] = depth[child + 1] = depth[node] + 1


def _check_ranges(tree: Arrays, kind: str) -> None:
    n = len(tree["left"])
    for name in ("centroid", "count", "row"):
        assert len(tree[f"{name}_begin"]) == len(tree[f"{name}_size"]) == n
    for name in ("centroid_source", "half_norm", "side", "exponent"):
        assert len(tree[name]) == len(tree["centroid_class"])
    assert len(tree["count_class"]) == len(tree["count"])
    owned: dict[str, list[int]] = {"centroid": [], "count": [], "row": []}

    def own(name: str, node: int) -> None:
        begin, size = (int(tree[f"{name}_{part}"][node]) for part in ("begin", "size"))
        length = len(tree[{"centroid": "centroid_class", "count": "count", "row": "rows"}[name]])
        assert begin >= 0
        assert size >= 0
        assert begin + size <= length
        owned[name].extend(range(begin, begin + size))

    for node in range(n):
        if tree["left"][node] == LEAF:
            assert tree["count_size"][node] > 0
            own("count", node)
            own("row", node)
            continue
        size, child = int(tree["centroid_size"][node]), int(tree["left"][node])
        assert 2 <= size <= 65535 if kind == "ncm" else size == 1
        own("centroid", node)
        below = int(tree["row_size"][child]) + int(tree["row_size"][child + 1])
        assert tree["row_begin"][node] == tree["row_begin"][child]
        assert tree["row_size"][node] == below
    assert sorted(owned["centroid"]) == [*range(len(tree["centroid_class"]))]
    assert sorted(owned["count"]) == [*range(len(tree["count"]))]
    assert sorted(owned["row"]) == [*range(len(tree["rows"]))]


def _check_centroids(
    tree: Arrays, kind: str, n_classes: int, n_features: int, row_classes: Any, n_slots: int
) -> None:
    for class_id, source in zip(tree["centroid_class"], tree["centroid_source"], strict=True):
        if kind == "axis":
            assert 0 <= class_id < n_features
            assert source == NO_VECTOR
        elif kind == "linear":
            assert class_id == 0
            assert source < 0
            assert ~int(source) < n_slots
        else:
            assert 0 <= class_id < n_classes
            if source >= 0:
                assert source < len(row_classes)
                assert row_classes[source] != REMOVED
            else:
                assert ~int(source) < n_slots
    assert np.isin(tree["side"], (0, 1)).all()
    assert all(-60 <= exponent <= 43 for exponent in tree["exponent"])
    assert np.isfinite(tree["half_norm"]).all()
    if kind == "ncm":
        for node in np.flatnonzero(tree["left"] != LEAF):
            begin, size = int(tree["centroid_begin"][node]), int(tree["centroid_size"][node])
            assert len(set(tree["side"][begin : begin + size].tolist())) == 2


def _check_leaves(tree: Arrays, n_classes: int, row_classes: Any) -> None:
    counts = [int(count) for count in tree["count"]]
    assert all(count > 0 for count in counts)
    assert sum(counts) <= MAX_SAMPLES
    assert all(0 <= c < n_classes for c in tree["count_class"])
    assert all(0 <= row < len(row_classes) for row in tree["rows"])
    for leaf in np.flatnonzero(tree["left"] == LEAF):
        begin, size = int(tree["count_begin"][leaf]), int(tree["count_size"][leaf])
        classes = tree["count_class"][begin : begin + size].tolist()
        assert classes == sorted(set(classes))
        counted = dict(zip(classes, counts[begin : begin + size], strict=True))
        first, n_rows = int(tree["row_begin"][leaf]), int(tree["row_size"][leaf])
        held = [int(row_classes[row]) for row in tree["rows"][first : first + n_rows]]
        assert held == sorted(held)
        assert all(held.count(c) <= counted.get(c, 0) for c in set(held))


def _check_expansion(tree: Arrays, n_classes: int, vector_bytes: int) -> None:
    n_counts: dict[int, int] = {}
    total = 0
    for node in reversed(range(len(tree["left"]))):
        child = int(tree["left"][node])
        if child == LEAF:
            n_counts[node] = int(tree["count_size"][node])
        else:
            n_counts[node] = min(n_counts[child] + n_counts[child + 1], n_classes)
            total += n_counts[node]
    n_bytes = 28 * len(tree["left"]) + 14 * len(tree["centroid_class"]) + 8 * len(tree["count"])
    n_bytes += 4 * len(tree["rows"]) + vector_bytes
    assert 8 * total <= max(FREE_EXPANSION, MAX_EXPANSION * n_bytes)
