"""Small data that the tests of rejection share: classes lie in directions, as features do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from evergrow import NCMForestClassifier, RejectingClassifier

Array = np.ndarray[Any, Any]
N_FEATURES = 16

_CENTRES = np.random.default_rng(99).normal(size=(40, N_FEATURES)) * 3


def cones(n: int, classes: Sequence[int], seed: int = 0) -> tuple[Array, Array]:
    """As many examples of each class, in random order."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.repeat(classes, n))
    return _CENTRES[y] + random.normal(size=(len(y), N_FEATURES)), y


def rejecting(**options: Any) -> RejectingClassifier:
    """A small model, the same every time; by the cosine, unless the options say otherwise."""
    forest = NCMForestClassifier(5, min_samples_leaf=2, random_state=0)
    return RejectingClassifier(forest, **{"random_state": 0, "measure": "cosine", **options})


class RememberingClassifier(ClassifierMixin, BaseEstimator):
    """Nearest class mean by sums: learns, weighs, forgets and renames, and remembers all it saw."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RememberingClassifier:
        self.rows_: list[tuple[Any, float, tuple[float, ...]]] = []
        return self.partial_fit(X, y, sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RememberingClassifier:
        rows = getattr(self, "rows_", [])
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        rows += list(zip(y.tolist(), weights.tolist(), map(tuple, X.tolist()), strict=True))
        return self._of(rows)

    def forget(
        self, X: Any = None, y: Any = None, *, classes: Any = None, sample_weight: Any = None
    ) -> RememberingClassifier:
        if X is not None:
            weights = np.ones(len(X)) if sample_weight is None else sample_weight
            for row in zip(y.tolist(), weights.tolist(), map(tuple, X.tolist()), strict=True):
                self.rows_.remove(row)
        gone = [] if classes is None else list(classes)
        self.classes_ = self.classes_[~np.isin(self.classes_, gone)]
        return self._of([row for row in self.rows_ if row[0] not in gone])

    def rename_classes(self, names: Any) -> RememberingClassifier:
        renamed = [names.get(name, name) for name in self.classes_.tolist()]
        self.classes_ = np.array(list(dict.fromkeys(renamed)))
        return self._of([(names.get(row[0], row[0]), *row[1:]) for row in self.rows_])

    def _of(self, rows: list[Any]) -> RememberingClassifier:
        self.rows_ = rows
        old = list(getattr(self, "classes_", []))
        new = sorted({row[0] for row in rows} - set(old))
        self.classes_ = np.array(old + new)
        return self

    def decision_function(self, X: Any) -> Array:
        means = []
        for name in self.classes_.tolist():
            rows = [row for row in self.rows_ if row[0] == name]
            weights, values = [row[1] for row in rows], [row[2] for row in rows]
            means.append(np.average(values, axis=0, weights=weights))
        return -np.linalg.norm(np.asarray(X)[:, None] - np.array(means), axis=2)

    def predict(self, X: Any) -> Array:
        return self.classes_[self.decision_function(X).argmax(axis=1)]
