"""Samples with a coarse and a fine class, some of which come without the fine label.

As in [Ristin2015 Sec. 5]: the samples of each fine class are divided at random into a part with
coarse labels only and a part with both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import InvalidInputError
from evergrow.research.datasets import Dataset

MISSING = -1


@dataclass(frozen=True, eq=False)
class TwoLevels:
    """Training and test samples with fine classes, and the coarse class of each fine one.

    Fine classes are numbered from 0 and coarse ones after them, so that all numbers are distinct.
    """

    name: str
    X: Array
    fine: Array
    X_test: Array
    fine_test: Array
    parents: Array

    @classmethod
    def of(cls, data: Dataset) -> TwoLevels:
        """A data set with its classes numbered.

        Data without coarse classes get groups of near classes. Test samples of classes without
        training samples are left out.
        """
        if data.X_train.ndim != 2:
            raise InvalidInputError(
                f"{data.name!r} holds {data.X_train.ndim}-dimensional samples; experiments with "
                "subcategories need features: a matrix with one row per sample"
            )
        classes, fine = np.unique(data.y_train, return_inverse=True)
        known = np.isin(data.y_test, classes)
        levels = cls(
            data.name,
            data.X_train,
            fine,
            data.X_test[known],
            np.searchsorted(classes, data.y_test[known]),
            np.zeros(len(classes), dtype=np.int64),
        )
        if data.parents is None:
            return replace(levels, parents=len(classes) + near_groups(levels.X, fine))
        return replace(levels, parents=len(classes) + _numbered(classes, data.parents))

    @property
    def coarse(self) -> Array:
        """Coarse class of each training sample."""
        return self.parents[self.fine]

    @property
    def coarse_test(self) -> Array:
        """Coarse class of each test sample."""
        return self.parents[self.fine_test]


def _numbered(classes: Array, parents: Mapping[Any, Any]) -> Array:
    lost = [label for label in classes.tolist() if label not in parents]
    if lost:
        raise InvalidInputError(
            f"class {lost[0]!r} has no coarse class; every fine class needs one"
        )
    of_each = [parents[label] for label in classes.tolist()]
    numbers = {parent: number for number, parent in enumerate(dict.fromkeys(of_each))}
    return np.array([numbers[parent] for parent in of_each], dtype=np.int64)


def near_groups(X: Array, fine: Array) -> Array:
    """Groups of classes with near means; their number is the square root of the classes'."""
    from scipy.cluster.hierarchy import fcluster, linkage

    n_classes = int(fine.max()) + 1
    if n_classes < 4:
        raise InvalidInputError(
            f"{n_classes} classes make no groups; experiments with subcategories need at least 4"
        )
    means = np.array([X[fine == label].mean(axis=0) for label in range(n_classes)])
    n_groups = round(n_classes**0.5)
    groups = fcluster(linkage(means, "ward"), n_groups, criterion="maxclust")
    return np.asarray(groups, dtype=np.int64) - 1


@dataclass(frozen=True, eq=False)
class Draw:
    """Training samples in random order; ``known`` marks those with a fine label."""

    X: Array
    coarse: Array
    fine: Array
    known: Array

    @property
    def labels(self) -> Array:
        """Coarse and fine labels; unknown fine labels are ``MISSING``."""
        return np.column_stack([self.coarse, np.where(self.known, self.fine, MISSING)])


def draw(data: TwoLevels, seed: int, fine_share: float, coarse_share: float) -> Draw:
    """Choose samples of each fine class.

    ``fine_share`` of the samples of a class, at least one, have a fine label; ``coarse_share`` of
    them have the coarse label only, as far as samples are left. With the same seed, a smaller share
    is a subset of a larger one. The seed also shuffles the rows, which alone changes the accuracy
    by up to one percentage point.
    """
    rng = np.random.default_rng(seed)
    told, untold = [], []
    for fine in range(len(data.parents)):
        mine = rng.permutation(np.flatnonzero(data.fine == fine))
        n_told = max(1, round(fine_share * len(mine)))
        rest = mine[: len(mine) - n_told]
        told.append(mine[len(rest) :])
        untold.append(rest[: round(coarse_share * len(mine))])
    rows = np.concatenate([*told, *untold])
    known = np.arange(len(rows)) < sum(len(part) for part in told)
    # Ranks of all samples, drawn or not: known ones keep their order whatever the coarse share.
    order = np.argsort(rng.permutation(len(data.fine))[rows])
    rows = rows[order]
    return Draw(data.X[rows], data.coarse[rows], data.fine[rows], known[order])
