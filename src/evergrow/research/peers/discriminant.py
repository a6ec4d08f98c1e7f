"""Linear discriminant analysis with one running covariance, plain and on random features."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from evergrow.foundation.params import Choice, Fraction, Integer, Nothing, Number, Rule
from evergrow.research.peers.head import (
    AnalyticHead,
    Codes,
    Floats,
    blocks,
    class_sums,
    grown,
    solve_positive,
)

# Width of the kernel and shrinkage were chosen on characters, digits and visual words.
_SCALE = 0.3


class _Discriminant(AnalyticHead):
    """Class means and one covariance; a sample goes to the nearest mean in that metric."""

    def _discriminant(
        self, covariance: Floats, ridge: float, means: Floats
    ) -> tuple[Floats, Floats]:
        """Return the weights and biases of equally likely Gaussian classes."""
        weights = solve_positive(covariance, ridge, means.T)
        return weights, -0.5 * np.sum(means.T * weights, axis=0) + self._bias_of_unseen()


class StreamingLDAClassifier(_Discriminant):
    """Deep streaming linear discriminant analysis (Hayes and Kanan, CVPR Workshops 2020).

    As in the paper, the first batch initialises the class means and the covariance, which is
    shrunk by the oracle approximating estimator. Every later example updates the covariance by its
    deviation from the running mean of its class before it, and then this mean. The first example
    of a class is its mean, so it has no deviation.

    Parameters
    ----------
    shrinkage : float, default=1e-4
        The covariance is ``(1 - shrinkage) * covariance + shrinkage * I`` before it is inverted.

    Examples
    --------
    >>> from evergrow.research.peers import StreamingLDAClassifier
    >>> model = StreamingLDAClassifier().fit([[0, 0], [0, 2], [1, 0], [1, 2]], ["a", "a", "b", "b"])
    >>> model.partial_fit([[9, 1]], ["new"]).predict([[0, 9], [9, 9]])
    array(['a', 'new'], dtype='<U3')
    """

    _rules: ClassVar[dict[str, tuple[Rule, ...]]] = {"shrinkage": (Fraction(),)}

    def __init__(self, shrinkage: float = 1e-4) -> None:
        self.shrinkage = shrinkage

    def _begin(self, X: Floats) -> None:
        self._covariance = np.zeros((X.shape[1], X.shape[1]))
        self._means = np.zeros((0, X.shape[1]))

    def _features(self, X: Floats) -> Floats:
        return X

    def _update(self, X: Floats, codes: Codes) -> None:
        seen = int(self.class_counts_.sum())
        counts = grown(self.class_counts_, len(self.classes_))
        means = grown(self._means, len(self.classes_))
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
            before = seen + np.arange(len(X))
            deviations *= np.sqrt(before / (before + 1))[:, None]
            self._covariance *= seen / (seen + len(X))
            self._covariance += deviations.T @ deviations / (seen + len(X))
        else:
            self._covariance = _oracle_shrunk(X - means[codes])

    def _solve(self) -> tuple[Floats, Floats]:
        covariance = (1 - self.shrinkage) * self._covariance
        return self._discriminant(covariance, self.shrinkage, self._means)


def _oracle_shrunk(deviations: Floats) -> Floats:
    """Return the oracle approximating shrinkage estimate of a covariance, the mean being 0."""
    if len(deviations) < 2:
        return np.zeros((deviations.shape[1],) * 2)
    from sklearn.covariance import OAS

    return np.asarray(OAS(store_precision=False, assume_centered=True).fit(deviations).covariance_)


class KLDAClassifier(_Discriminant):
    """KLDA: discriminant analysis on random Fourier features (Momeni et al., AAAI 2025).

    The features approximate the kernel ``exp(-gamma |x - y|^2)``; class means and the covariance
    within classes come from sums, so the order of the examples does not matter.

    Parameters
    ----------
    n_random_features : int, default=4000
        Number of random Fourier features; the paper uses 5000.
    gamma : float or "scale", default="scale"
        Width of the kernel, which the paper tunes for each network. ``"scale"`` takes
        ``0.3 / (n_features * variance)`` of the first batch.
    shrinkage : float, default=1.0
        This share of the mean variance of a feature is added to the diagonal of the covariance.
    random_state : int, default=0
        Seed of the features.

    Examples
    --------
    >>> from evergrow.research.peers import KLDAClassifier
    >>> model = KLDAClassifier(100).fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1])
    >>> model.partial_fit([[3, 3], [3, 4]], [2, 2]).predict([[3, 3]])
    array([2])
    """

    _rules: ClassVar[dict[str, tuple[Rule, ...]]] = {
        "n_random_features": (Integer(1),),
        "gamma": (Number(0.0, open_low=True), Choice(("scale",))),
        "shrinkage": (Fraction(),),
        "random_state": (Integer(0), Nothing()),
    }

    def __init__(
        self,
        n_random_features: int = 4000,
        *,
        gamma: float | Literal["scale"] = "scale",
        shrinkage: float = 1.0,
        random_state: int | None = 0,
    ) -> None:
        self.n_random_features = n_random_features
        self.gamma = gamma
        self.shrinkage = shrinkage
        self.random_state = random_state

    def _begin(self, X: Floats) -> None:
        width = self.n_random_features
        rng = np.random.default_rng(self.random_state)
        spread = X.shape[1] * X.var()
        gamma = _SCALE / spread if self.gamma == "scale" and spread > 0 else self.gamma
        self.gamma_ = 1.0 if gamma == "scale" else float(gamma)
        self._projection = rng.standard_normal((X.shape[1], width)) * np.sqrt(2 * self.gamma_)
        self._phases = rng.uniform(0, 2 * np.pi, width)
        self._gram, self._sums = np.zeros((width, width)), np.zeros((0, width))

    def _features(self, X: Floats) -> Floats:
        features: Floats = X @ self._projection + self._phases
        np.cos(features, out=features)
        features *= np.sqrt(2 / self.n_random_features)
        return features

    def _update(self, X: Floats, codes: Codes) -> None:
        self._sums = grown(self._sums, len(self.classes_))
        for rows in blocks(len(X), self.n_random_features):
            features = self._features(X[rows])
            self._gram += features.T @ features
            self._sums += class_sums(features, codes[rows], len(self.classes_))

    def _solve(self) -> tuple[Floats, Floats]:
        counts = np.maximum(self.class_counts_, 1)[:, None]
        means = self._sums / counts
        covariance = (self._gram - self._sums.T @ means) / counts.sum()
        # Features have length 1 or so; if every class has one example, only rounding is left.
        unit = max(np.trace(covariance), 1e-9) / len(covariance)
        return self._discriminant(covariance, self.shrinkage * unit, means)
