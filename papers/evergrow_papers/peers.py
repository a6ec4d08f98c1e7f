"""Analytic heads of the field, written from their papers, to compare with.

Each is a scikit-learn classifier whose ``partial_fit`` accepts unseen labels and whose weights are
solved from running sums at the next prediction. :class:`RanPACClassifier` and
:class:`FlyCLClassifier` are ridge regression on random features, :class:`StreamingLDAClassifier`
and :class:`KLDAClassifier` discriminant analysis with one covariance.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import OAS
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evergrow.compare.data import Array
from evergrow.foundation.labels import ClassList, as_classes, check_label_types

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]


class AnalyticHead(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier on fixed features, solved in closed form from running sums."""

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
        # A class that was named but has no example is not predicted.
        bias = np.where(self.class_counts_ > 0, bias, -np.inf)
        best = [
            np.argmax(self._features(X[rows]) @ weights + bias, axis=1)
            for rows in _blocks(len(X), len(weights))
        ]
        return cast(Array, self.classes_[np.concatenate(best)])

    def _learn(self, X: Any, y: Any, classes: Any, *, first: bool) -> Self:
        check_label_types(y)
        X, y = validate_data(self, X, y, reset=first, dtype=np.float64)
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
        self.class_counts_ = _grown(self.class_counts_, len(known))
        self.class_counts_ += np.bincount(codes, minlength=len(known))
        # A list, because scikit-learn forbids a prediction to set an attribute.
        self._solved: list[tuple[Floats, Floats | float]] = []
        return self

    def _features(self, X: Floats) -> Floats:
        return X

    @abstractmethod
    def _begin(self, X: Floats) -> None:
        """Forget everything; draw what stays fixed. ``X`` are the first samples."""

    @abstractmethod
    def _update(self, X: Floats, codes: Codes) -> None:
        """Add a batch to the sums, given the column of each label."""

    @abstractmethod
    def _solve(self) -> tuple[Floats, Floats | float]:
        """Return weights of shape (n_features, n_classes) and a bias per class."""


def _blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows whose features fit into 64 MiB of memory."""
    step = max(256, (64 << 20) // (8 * width))
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows))


def _grown(sums: Array, n_classes: int) -> Array:
    """Return a copy with a zero row for each new class."""
    return np.concatenate([sums, np.zeros((n_classes - len(sums), *sums.shape[1:]), sums.dtype)])


def _solve_positive(matrix: Floats, diagonal: float, right: Floats) -> Floats:
    """Solve ``(matrix + diagonal * I) x = right`` for a positive semidefinite matrix.

    If rounding makes the sum indefinite, ten times the diagonal is tried, up to seven times.
    """
    for power in range(8):
        shifted = matrix.copy()
        shifted.flat[:: len(matrix) + 1] += max(diagonal, np.finfo(float).tiny) * 10.0**power
        with suppress(LinAlgError):
            factor = cho_factor(shifted, overwrite_a=True, check_finite=False)
            return cast(Floats, cho_solve(factor, right, check_finite=False))
    raise LinAlgError("the sums are not positive definite at any penalty that was tried")


# --- Ridge regression to one-hot targets, with a penalty chosen on each batch


class Spectrum:
    """Eigenvalues of a Gram matrix above rounding error, and class sums in its eigenvectors.

    The weights for a penalty are ``vectors / (values + penalty) @ targets``. Fewer rows than
    features are decomposed by the products of rows, which is cheaper.
    """

    def __init__(self, gram: Floats, sums: Floats, rows: Floats | None) -> None:
        values, vectors = eigh(gram if rows is None else rows @ rows.T, check_finite=False)
        kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        self.values, self.vectors = values[kept], vectors[:, kept]
        if rows is not None:
            self.vectors = rows.T @ (self.vectors / np.sqrt(self.values))
        self.targets = self.vectors.T @ sums.T

    def held_out_error(self, gram: Floats, sums: Floats, n_rows: int, penalties: Floats) -> Floats:
        """Return the squared error on one-hot targets of held-out rows, for each penalty."""
        matched = np.sum((self.vectors.T @ sums.T) * self.targets, axis=1)
        products = self.vectors.T @ gram @ self.vectors
        products *= self.targets @ self.targets.T
        inverse = 1 / (self.values + penalties[:, None])
        squares = np.einsum("pi,ij,pj->p", inverse, products, inverse, optimize=True)
        return np.asarray(n_rows - 2 * inverse @ matched + squares)

    def generalised_error(self, n_rows: int, penalties: Floats) -> Floats:
        """Return the generalised cross-validation score on one-hot targets, for each penalty."""
        lengths = np.sum(self.targets**2, axis=1)
        inverse = 1 / (self.values + penalties[:, None])
        residual = n_rows - 2 * inverse @ lengths + (self.values * inverse**2) @ lengths
        free = n_rows - inverse @ self.values
        return np.asarray(np.maximum(residual, 0.0) * n_rows / np.maximum(free, 1e-9) ** 2)


class RandomFeatures(AnalyticHead):
    """A head on random features, with sums of their products and of the features by class.

    There are ``n_random_features``, which ``random_state`` draws.
    """

    def __init__(self, n_random_features: int = 4000, *, random_state: int | None = 0) -> None:
        self.n_random_features = n_random_features
        self.random_state = random_state

    def _begin(self, X: Floats) -> None:
        del X  # Subclasses draw for its columns.
        width = self.n_random_features
        self._gram, self._sums = np.zeros((width, width)), np.zeros((0, width))
        self._rng = np.random.default_rng(self.random_state)

    def _update(self, X: Floats, codes: Codes) -> None:
        self._add(*self._sum(X, codes))

    def _add(self, gram: Floats, sums: Floats) -> None:
        self._gram += gram
        self._sums = _grown(self._sums, len(sums)) + sums

    def _sum(self, X: Floats, codes: Codes) -> tuple[Floats, Floats]:
        """Sum over some rows, block by block."""
        width, n_classes = self.n_random_features, len(self.classes_)
        gram, sums = np.zeros((width, width)), np.zeros((n_classes, width))
        for rows in _blocks(len(X), width):
            features = self._features(X[rows])
            gram += features.T @ features
            sums += np.eye(n_classes)[:, codes[rows]] @ features
        return gram, sums


class RidgeHead(RandomFeatures):
    """Ridge regression to one-hot targets without an intercept."""

    penalty_: float

    def _begin(self, X: Floats) -> None:
        self.penalty_ = 1.0
        super()._begin(X)

    def _solve(self) -> tuple[Floats, Floats | float]:
        return _solve_positive(self._gram, self.penalty_, self._sums.T), 0.0

    def _spectrum(self, X: Floats, gram: Floats, sums: Floats) -> Spectrum:
        return Spectrum(gram, sums, self._features(X) if len(X) < len(gram) else None)


class RanPACClassifier(RidgeHead):
    """RanPAC (McDonnell et al., NeurIPS 2023): ridge regression on positive random projections.

    As in the paper, features are not scaled, there is no intercept, and the penalty is chosen from
    ten to the -8 ... 8 again for every batch: by the squared error on a random fifth of it, with
    weights from its other four fifths. A batch of one example leaves the penalty as it was.
    The paper has 10000 projections.
    """

    _penalties: ClassVar[Floats] = np.logspace(-8, 8, 17)

    def _begin(self, X: Floats) -> None:
        super()._begin(X)
        self._projection = self._rng.standard_normal((X.shape[1], self.n_random_features))

    def _features(self, X: Floats) -> Floats:
        features = X @ self._projection
        return np.maximum(features, 0.0, out=features)

    def _update(self, X: Floats, codes: Codes) -> None:
        fitted, held = np.split(self._rng.permutation(len(X)), [int(0.8 * len(X))])
        parts = [self._sum(X[rows], codes[rows]) for rows in (fitted, held)]
        if len(fitted):
            spectrum = self._spectrum(X[fitted], *parts[0])
            errors = spectrum.held_out_error(*parts[1], len(held), self._penalties)
            self.penalty_ = float(self._penalties[np.argmin(errors)])
        for part in parts:
            self._add(*part)


class FlyCLClassifier(RidgeHead):
    """Fly-CL (Zou et al. 2025): sparse random projection, winners take all, ridge regression.

    Every random feature sees some of the inputs; of each sample only the largest features are kept
    and the others set to zero. The penalty is chosen again for every batch by generalised
    cross-validation on that batch.
    """

    # Shares of the inputs that a projection sees and of the features that are kept; the paper has
    # 300 of 768 and 3000 of 10000.
    connected, active = 0.4, 0.3
    _penalties: ClassVar[Floats] = np.logspace(-4, 9, 27)

    def _begin(self, X: Floats) -> None:
        super()._begin(X)
        shape = (X.shape[1], self.n_random_features)
        # The inputs with the smallest random numbers are those that a projection sees.
        ranks = np.argsort(np.argsort(self._rng.random(shape), axis=0), axis=0)
        seen = ranks < max(1, round(self.connected * shape[0]))
        self._projection = np.where(seen, self._rng.standard_normal(shape), 0.0)

    def _features(self, X: Floats) -> Floats:
        features = X @ self._projection
        n_inactive = len(features.T) - max(1, round(self.active * len(features.T)))
        threshold = np.partition(features, n_inactive, axis=1)[:, n_inactive, None]
        return np.where(features >= threshold, features, 0.0)

    def _update(self, X: Floats, codes: Codes) -> None:
        batch = self._sum(X, codes)
        if len(X) > 1:
            errors = self._spectrum(X, *batch).generalised_error(len(X), self._penalties)
            self.penalty_ = float(self._penalties[np.argmin(errors)])
        self._add(*batch)


# --- Discriminant analysis: equally likely Gaussian classes with one covariance


def _discriminant(covariance: Floats, ridge: float, means: Floats) -> tuple[Floats, Floats]:
    """Return weights and biases; a sample goes to the nearest mean in the metric."""
    weights = _solve_positive(covariance, ridge, means.T)
    return weights, -0.5 * np.sum(means.T * weights, axis=0)


class StreamingLDAClassifier(AnalyticHead):
    """Deep streaming linear discriminant analysis (Hayes and Kanan, CVPR Workshops 2020).

    As in the paper, the first batch initialises the class means and the covariance, which is
    shrunk by the oracle approximating estimator. Every later example updates the covariance by its
    deviation from the running mean of its class before it, and then this mean. The first example
    of a class is its mean, so it has no deviation.
    """

    # The share of the identity in the covariance before it is inverted.
    shrinkage = 1e-4

    def _begin(self, X: Floats) -> None:
        self._covariance = np.zeros((X.shape[1], X.shape[1]))
        self._means = np.zeros((0, X.shape[1]))

    def _update(self, X: Floats, codes: Codes) -> None:
        seen = int(self.class_counts_.sum())
        counts = _grown(self.class_counts_, len(self.classes_))
        means = _grown(self._means, len(self.classes_))
        deviations = np.empty_like(X)
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            sums = np.cumsum(np.vstack([means[code] * counts[code], X[rows]]), axis=0)
            n_before = counts[code] + np.arange(len(rows))
            before = sums[:-1] / np.maximum(n_before, 1)[:, None]
            deviations[rows] = np.where(n_before[:, None] > 0, X[rows] - before, 0.0)
            means[code] = sums[-1] / (counts[code] + len(rows))
        self._means = means
        if seen:
            n_seen = seen + np.arange(len(X))
            deviations *= np.sqrt(n_seen / (n_seen + 1))[:, None]
            self._covariance *= seen / (seen + len(X))
            self._covariance += deviations.T @ deviations / (seen + len(X))
        elif len(X) > 1:
            shrunk = OAS(store_precision=False, assume_centered=True).fit(X - means[codes])
            self._covariance = np.asarray(shrunk.covariance_)

    def _solve(self) -> tuple[Floats, Floats | float]:
        covariance = (1 - self.shrinkage) * self._covariance
        return _discriminant(covariance, self.shrinkage, self._means)


class KLDAClassifier(RandomFeatures):
    """KLDA: discriminant analysis on random Fourier features (Momeni et al., AAAI 2025).

    The features, 5000 in the paper, approximate the kernel ``exp(-gamma |x - y|^2)``. Class means
    and the covariance come from sums, so the order of the examples does not matter.
    """

    # Width of the kernel, which the paper tunes for each network, times the spread of the features,
    # and the share of the mean variance that is added to the diagonal of the covariance. Both were
    # chosen on characters, digits and visual words.
    width, shrinkage = 0.3, 1.0

    def _begin(self, X: Floats) -> None:
        super()._begin(X)
        n, spread = self.n_random_features, X.shape[1] * X.var()
        self.gamma_ = float(self.width / spread) if spread > 0 else 1.0
        projection = self._rng.standard_normal((X.shape[1], n))
        self._projection = projection * np.sqrt(2 * self.gamma_)
        self._phases = self._rng.uniform(0, 2 * np.pi, n)

    def _features(self, X: Floats) -> Floats:
        features: Floats = X @ self._projection + self._phases
        np.cos(features, out=features)
        features *= np.sqrt(2 / self.n_random_features)
        return features

    def _solve(self) -> tuple[Floats, Floats | float]:
        counts = np.maximum(self.class_counts_, 1)[:, None]
        means = self._sums / counts
        covariance = (self._gram - self._sums.T @ means) / counts.sum()
        # Features have length 1 or so; if every class has one example, only rounding is left.
        unit = max(np.trace(covariance), 1e-9) / len(covariance)
        return _discriminant(covariance, self.shrinkage * unit, means)
