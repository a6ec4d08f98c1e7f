"""What all analytic heads share: growing classes, rows in blocks, weights solved on demand."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evergrow.foundation.arrays import Array
from evergrow.foundation.labels import ClassList, as_classes, check_label_types
from evergrow.foundation.params import Rule, check_parameters

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]

# Bytes of features computed at once.
_BLOCK_BYTES = 64 << 20
# How often a larger diagonal is tried if rounding makes a matrix indefinite.
_N_TRIES = 8


class AnalyticHead(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier on fixed features, solved in closed form from running sums."""

    _rules: ClassVar[dict[str, tuple[Rule, ...]]] = {}

    classes_: Array
    class_counts_: npt.NDArray[np.int64]

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from these examples only."""
        return self._learn(X, y, None, first=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from more examples, whose classes may be new."""
        return self._learn(X, y, classes, first=not hasattr(self, "classes_"))

    def predict(self, X: Any) -> Array:
        """Return one label per sample; weights are solved now if examples came since."""
        check_is_fitted(self, "classes_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        if not self._solved:
            self._solved.append(self._solve())
        weights, bias = self._solved[0]
        best = [
            np.argmax(self._features(X[rows]) @ weights + bias, axis=1)
            for rows in blocks(len(X), len(weights))
        ]
        return cast(Array, self.classes_[np.concatenate(best)])

    def _learn(self, X: Any, y: Any, classes: Any, *, first: bool) -> Self:
        check_parameters(self.get_params(deep=False), self._rules)
        check_label_types(y)
        X, y = validate_data(self, X, y, reset=first, dtype=np.float64)
        with warnings.catch_warnings():
            # One example of each of many classes is what these are for.
            warnings.filterwarnings("ignore", "The number of unique classes")
            check_classification_targets(y)
        named = as_classes(classes)
        if first:
            known, codes = ClassList.of(np.concatenate([named, y]) if len(named) else y)
            codes = codes[len(named) :]
            self._begin(X)
            self.class_counts_ = np.zeros(0, np.int64)
        else:
            known, codes = ClassList(self.classes_).extend_with(y, named)
        self.classes_ = known.classes
        self._update(X, codes)
        self.class_counts_ = grown(self.class_counts_, len(known))
        self.class_counts_ += np.bincount(codes, minlength=len(known))
        # A list, because scikit-learn forbids a prediction to set an attribute.
        self._solved: list[tuple[Floats, Floats]] = []
        return self

    def _bias_of_unseen(self) -> Floats:
        """Return minus infinity for classes that were named but have no example, else 0."""
        return np.where(self.class_counts_ > 0, 0.0, -np.inf)

    @abstractmethod
    def _begin(self, X: Floats) -> None:
        """Forget everything; draw what stays fixed. ``X`` are the first samples."""

    @abstractmethod
    def _features(self, X: Floats) -> Floats:
        """Return the features of some samples."""

    @abstractmethod
    def _update(self, X: Floats, codes: Codes) -> None:
        """Add a batch to the sums, given the column of each label."""

    @abstractmethod
    def _solve(self) -> tuple[Floats, Floats]:
        """Return weights of shape (n_features, n_classes) and a bias per class."""


def blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows whose features fit into a block of memory."""
    step = max(256, _BLOCK_BYTES // (8 * width))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def grown(sums: Array, n_classes: int) -> Array:
    """Return a copy with a zero row for each new class."""
    return np.concatenate([sums, np.zeros((n_classes - len(sums), *sums.shape[1:]), sums.dtype)])


def class_sums(features: Floats, codes: Codes, n_classes: int) -> Floats:
    """Return the sum of the features of each class."""
    return np.eye(n_classes)[:, codes] @ features


def solve_positive(matrix: Floats, diagonal: float, right: Floats) -> Floats:
    """Solve ``(matrix + diagonal * I) x = right`` for a positive semidefinite matrix.

    If rounding makes the sum indefinite, ten times the diagonal is tried, and so on.
    """
    last: LinAlgError | None = None
    for power in range(_N_TRIES):
        shifted = matrix.copy()
        shifted.flat[:: len(matrix) + 1] += max(diagonal, np.finfo(float).tiny) * 10.0**power
        try:
            factor = cho_factor(shifted, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            last = error
            continue
        return cast(Floats, cho_solve(factor, right, check_finite=False))
    raise LinAlgError("the sums are not positive definite at any penalty that was tried") from last
