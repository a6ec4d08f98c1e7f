"""The worker's side of updates: a worker holds a group of trees and updates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import _core
from evergrow.estimators.forest.value.fitted import Codes, Ids
from evergrow.estimators.forest.value.sample_matrix import as_floats
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.estimators.forest.value.weights import Weights
from evergrow.foundation.engine import Arrays

_REPORT = "report."


@dataclass(frozen=True)
class TreeGroup:
    """Some trees of a forest over all its samples, and the number of the first tree."""

    first_tree: int
    forest: _core.Forest


@dataclass(frozen=True)
class TreeUpdateTask:
    """One update, the same for every group: new rows as the core stores them, and the plan.

    ``numbers`` are the row numbers that the samples give the new rows.
    """

    rows: npt.NDArray[Any]
    codes: Codes
    ids: Ids
    weights: Weights | None
    numbers: Codes
    evicted: Codes
    plan: _core.UpdatePlan
    n_threads: int


def load_group(
    first_tree: int,
    changes: list[npt.NDArray[np.uint8]],
    n_classes: int,
    n_features: int,
    rows: npt.NDArray[Any],
    codes: Codes,
    ids: Ids,
    weights: Weights | None,
) -> TreeGroup:
    """Build a group of trees over the rows of a shared matrix, without copying them."""
    samples = _core.Samples.over(rows, codes, ids, n_features=n_features, weights=weights)
    forest = _core.Forest.changed(
        samples=samples, changes=changes, n_classes=n_classes, before=None
    )
    return TreeGroup(first_tree, forest)


def update_group(group: TreeGroup, part: None, task: TreeUpdateTask) -> tuple[TreeGroup, Arrays]:  # noqa: ARG001
    """The group after an update, and what changed in its trees."""
    samples = group.forest.samples.copy()
    numbers = samples.add(len(task.ids))
    if not np.array_equal(numbers, task.numbers):
        raise RuntimeError("the samples of a worker differ from those of the forest")
    rows = np.ascontiguousarray(as_floats(task.rows), dtype=np.float32)
    scale = Standardization.identity(samples.n_features).core
    samples.write(numbers, rows, task.codes, task.ids, scale)
    if task.weights is not None:
        samples.set_weights(numbers, task.weights)
    forest, counts = group.forest.update(
        samples=samples,
        rows=numbers,
        evicted=task.evicted,
        plan=task.plan,
        n_threads=task.n_threads,
        progress=None,
        first_tree=group.first_tree,
    )
    changes = forest.changes_since(group.forest)
    if len(task.evicted):
        left = samples.copy()
        left.remove(task.evicted)
        forest = forest.with_samples(left)
    found: Arrays = {str(tree): array for tree, array in enumerate(changes)}
    found.update({_REPORT + name: np.array(value) for name, value in counts.as_dict().items()})
    return TreeGroup(group.first_tree, forest), found


def tree_changes(arrays: Arrays) -> list[npt.NDArray[np.uint8]]:
    """The changes of every tree, from the arrays of :func:`update_group`."""
    return [array for name, array in arrays.items() if not name.startswith(_REPORT)]


def update_counts(arrays: Arrays) -> dict[str, Any]:
    """Counts and times of the update, from the arrays of :func:`update_group`."""
    return {
        name.removeprefix(_REPORT): array.item()
        for name, array in arrays.items()
        if name.startswith(_REPORT)
    }
