"""Small data with coarse and fine classes that the tests share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from evergrow import SubcategoryForestClassifier
from evergrow.estimators import Regularised
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.methods import METHODS
from evergrow.storage.models.codec import decode, encode
from tests.estimators.forest.blobs import counts_of_leaves

N_FEATURES = 5

Array = np.ndarray[Any, Any]

# Fine classes 0..11, four coarse classes of three each.
HIERARCHY = {f: f // 3 for f in range(12)}

REFINABLE = [name for name, method in METHODS.items() if method._can_refine]
every_method = pytest.mark.parametrize("method", METHODS)
refinable = pytest.mark.parametrize("method", REFINABLE)

_RANDOM = np.random.default_rng(7)
_COARSE_CENTRES = 8 * _RANDOM.normal(size=(4, N_FEATURES))
_CENTRES = _COARSE_CENTRES[np.arange(12) // 3] + 3 * _RANDOM.normal(size=(12, N_FEATURES))


def samples(n: int, fine: Sequence[int] = range(12), seed: int = 0) -> tuple[Array, Array]:
    """Features and labels of both levels, all fine labels known; at least one of each class."""
    random = np.random.default_rng(seed)
    y = np.concatenate([list(fine), random.choice(list(fine), n - len(fine))])
    X = _CENTRES[y] + random.normal(size=(n, N_FEATURES))
    return X, np.column_stack([y // 3, y])


def hidden(Y: Array, share: float = 0.7, seed: int = 1) -> Array:
    """The same labels, most fine ones missing; one of each class is left."""
    random = np.random.default_rng(seed)
    missing = random.random(len(Y)) < share
    missing[np.unique(Y[:, 1], return_index=True)[1]] = False
    return np.where(np.column_stack([np.zeros(len(Y), bool), missing]), -1, Y)


def coarse_only(Y: Array) -> Array:
    """The same labels without any fine one."""
    return np.column_stack([Y[:, 0], np.full(len(Y), -1)])


def small(method: Any = "ridge-h", **options: Any) -> SubcategoryForestClassifier:
    """A forest that is trained in a moment."""
    splits = Regularised(10, n_assignments=10, scoring_samples=1024)
    options = {"splits": splits, "min_samples_leaf": 3, **options}
    options = {"n_estimators": 5, "random_state": 0, **options}
    return SubcategoryForestClassifier(method=method, **options)


def stored_counts(forest: Any) -> Array:
    """Stored samples per core class."""
    fitted = forest._fitted
    classes = fitted.forest.forest.samples.classes
    return np.bincount(classes[classes >= 0], minlength=len(fitted.tree))


def check_consistent(forest: Any) -> None:
    """Leaves count what is stored, and the core finds nothing wrong with itself."""
    fitted = forest._fitted
    fitted.forest.forest.check()
    stored = stored_counts(forest)
    for tree in range(len(fitted.forest.forest)):
        np.testing.assert_array_equal(counts_of_leaves(fitted.forest.forest, tree), stored)
    if fitted.stack is not None:
        fitted.stack.first.forest.check()
        assert len(fitted.stack.first.labels) == len(fitted.tree.coarse_ids)
    assert np.isin(fitted.unconfirmed.ids, fitted.forest.stored_ids).all()


@dataclass
class Kinds:
    """Samples, what is known of them, and the truth."""

    X: Array
    coarse: Array
    fine: Array
    parents: Array
    truth: Array

    @property
    def labels(self) -> tuple[Array, Array, Array]:
        return self.coarse, self.fine, self.parents


def kinds(
    n: int = 240, d: int = 6, *, noise: float = 1.0, known: float = 0.4, seed: int = 0
) -> Kinds:
    """Three coarse classes of 3, 2 and 1 fine ones; the fine class of most samples is missing."""
    parents = np.array([0, 0, 0, 1, 1, 2])
    random = np.random.default_rng(seed)
    centres = 3 * random.normal(size=(3, d))[parents] + 1.5 * random.normal(size=(6, d))
    truth = np.arange(n) % 6
    X = centres[truth] + noise * random.normal(size=(n, d))
    # Two of each class at the least.
    fine = np.where((random.random(n) < known) | (np.arange(n) < 12), truth, -1).astype(np.int32)
    return Kinds(X, parents[truth], fine, parents, truth)


def tree_entries(tree: LabelTree) -> dict[str, Any]:
    """What a model file holds of a tree of classes, arrays as lists."""
    header, arrays = encode(tree)
    return {**header, **{name: array.tolist() for name, array in arrays.items()}}


def tree_of(entries: dict[str, Any]) -> LabelTree:
    """The tree from :func:`tree_entries`."""
    arrays = {name: np.array(entries.pop(name), np.int32) for name in ("parents", "columns")}
    tree: LabelTree = decode(LabelTree, entries, arrays)
    return tree
