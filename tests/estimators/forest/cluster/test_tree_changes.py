"""Changes of trees by an update, applied to the trees before it."""

from __future__ import annotations

import numpy as np
import pytest

from evergrow import _core
from evergrow.estimators.forest.strategy import usable_strategies
from tests.estimators.forest.blobs import blobs
from tests.estimators.forest.cores import RULES, equal_trees, grow, plan, standardizer, written

X, Y = blobs(300, range(6))
SAMPLES = written(X, Y.astype(np.int32))
MORE, CLASSES = blobs(40, [1, 6, 7], seed=1)


def updated(forest: _core.Forest, proposer: str, n_times: int, strategy: str) -> _core.Forest:
    for update in range(n_times):
        samples = forest.samples.copy()
        numbers = samples.add(len(MORE))
        ids = len(samples) + np.arange(len(MORE), dtype=np.int64)
        samples.write(numbers, MORE, CLASSES.astype(np.int32), ids, standardizer(X.shape[1]))
        forest, _ = forest.update(
            samples=samples,
            rows=numbers,
            evicted=np.zeros(0, dtype=np.int32),
            plan=plan(proposer, strategy=strategy, n_classes=8, update=update + 1),
            n_threads=1,
            progress=None,
        )
    return forest


def sent(after: _core.Forest, before: _core.Forest | None) -> _core.Forest:
    return _core.Forest.changed(
        samples=after.samples,
        changes=[changes.copy() for changes in after.changes_since(before)],
        n_classes=after.n_classes,
        before=before,
    )


@pytest.mark.parametrize("proposer", RULES)
@pytest.mark.parametrize("strategy", usable_strategies(has_class_means=False))
def test_a_forest_and_its_changes_are_the_forest_after(proposer: str, strategy: str) -> None:
    before = grow(SAMPLES, proposer, n_trees=3)
    arrays = [before.tree_arrays(tree)["count"].copy() for tree in range(3)]
    here = there = before
    # Often enough that trees are tidied up in between.
    for _ in range(6):
        after = updated(here, proposer, 1, strategy)
        there = _core.Forest.changed(
            samples=after.samples,
            changes=after.changes_since(here),
            n_classes=8,
            before=there,
        )
        here = after
        equal_trees(there, here)
    there.check()
    # Whoever looks at the forest before still sees it.
    for tree, array in enumerate(arrays):
        np.testing.assert_array_equal(before.tree_arrays(tree)["count"], array)


@pytest.mark.parametrize("proposer", RULES)
def test_all_of_a_forest_is_the_forest(proposer: str) -> None:
    forest = updated(grow(SAMPLES, proposer, n_trees=3), proposer, 2, "igt")
    again = sent(forest, None)
    equal_trees(again, forest)
    # Also what edits have left behind, so that changes of one fit the other.
    equal_trees(
        sent(updated(forest, proposer, 1, "igt"), forest), updated(again, proposer, 1, "igt")
    )


def test_changes_of_another_forest_are_refused() -> None:
    before = grow(SAMPLES, "ncm", n_trees=2)
    after = updated(before, "ncm", 1, "igt")
    other = updated(after, "ncm", 1, "igt")
    with pytest.raises(ValueError, match="do not belong to this tree"):
        _core.Forest.changed(
            samples=after.samples,
            changes=after.changes_since(before),
            n_classes=8,
            before=other,
        )


def test_changes_that_are_cut_off_are_refused() -> None:
    forest = grow(SAMPLES, "ncm", n_trees=1)
    (changes,) = forest.changes_since(None)
    for n_bytes in (0, 10, 100, len(changes) // 2, len(changes) - 1):
        with pytest.raises(ValueError, match="do not belong to this tree"):
            _core.Forest.changed(
                samples=SAMPLES, changes=[changes[:n_bytes].copy()], n_classes=6, before=None
            )


def test_changes_of_every_tree_are_needed() -> None:
    forest = grow(SAMPLES, "ncm", n_trees=2)
    with pytest.raises(ValueError, match="one entry of changes per tree"):
        _core.Forest.changed(samples=SAMPLES, changes=[], n_classes=6, before=forest)
    with pytest.raises(ValueError, match="number of trees"):
        forest.changes_since(grow(SAMPLES, "ncm", n_trees=1))
