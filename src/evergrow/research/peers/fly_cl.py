"""Fly-CL: ridge regression on the winners of a sparse random projection (Zou et al. 2025)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from evergrow.foundation.params import Fraction, Integer, Nothing, Rule
from evergrow.research.peers.head import Codes, Floats
from evergrow.research.peers.ridge import Moments, RidgeHead

_PENALTIES: Floats = np.logspace(-4, 9, 27)


class FlyCLClassifier(RidgeHead):
    """Fly-CL: sparse random projection, winners take all, and ridge regression.

    Every random feature sees some of the inputs; of each sample only the largest features are kept
    and the others set to zero. The penalty is chosen again for every batch by generalised
    cross-validation on that batch.

    Parameters
    ----------
    n_random_features : int, default=4000
        Number of projections; the paper uses 10000.
    connected : float, default=0.4
        Share of the inputs that each projection sees; the paper uses 300 of 768.
    active : float, default=0.3
        Share of the features of a sample that are kept; the paper uses 3000 of 10000.
    random_state : int, default=0
        Seed of the projections.

    Examples
    --------
    >>> from evergrow.research.peers import FlyCLClassifier
    >>> model = FlyCLClassifier(100).fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1])
    >>> model.partial_fit([[9, 9], [9, 8]], [2, 2]).predict([[9, 9]])
    array([2])
    """

    _rules: ClassVar[dict[str, tuple[Rule, ...]]] = {
        "n_random_features": (Integer(1),),
        "connected": (Fraction(),),
        "active": (Fraction(),),
        "random_state": (Integer(0), Nothing()),
    }

    def __init__(
        self,
        n_random_features: int = 4000,
        *,
        connected: float = 0.4,
        active: float = 0.3,
        random_state: int | None = 0,
    ) -> None:
        self.n_random_features = n_random_features
        self.connected = connected
        self.active = active
        self.random_state = random_state

    def _draw(self, n_inputs: int) -> None:
        shape = (n_inputs, self.n_random_features)
        # The inputs with the smallest random numbers are those that a projection sees.
        ranks = np.argsort(np.argsort(self._rng.random(shape), axis=0), axis=0)
        seen = ranks < max(1, round(self.connected * n_inputs))
        self._projection = np.where(seen, self._rng.standard_normal(shape), 0.0)

    def _features(self, X: Floats) -> Floats:
        features = X @ self._projection
        n_inactive = len(features.T) - max(1, round(self.active * len(features.T)))
        threshold = np.partition(features, n_inactive, axis=1)[:, n_inactive, None]
        return np.where(features >= threshold, features, 0.0)

    def _choose(self, X: Floats, codes: Codes) -> tuple[float | None, Moments]:
        batch = self._sum(X, codes)
        if len(X) < 2:
            return None, batch
        errors = self._spectrum(X, batch).generalised_error(len(X), _PENALTIES)
        return float(_PENALTIES[np.argmin(errors)]), batch
