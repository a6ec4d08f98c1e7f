"""RanPAC: ridge regression on random projections (McDonnell et al., NeurIPS 2023)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from evergrow.foundation.params import Integer, Nothing, Rule
from evergrow.research.peers.head import Codes, Floats
from evergrow.research.peers.ridge import Moments, RidgeHead

_PENALTIES: Floats = np.logspace(-8, 8, 17)
_FITTED_SHARE = 0.8


class RanPACClassifier(RidgeHead):
    """RanPAC: Gaussian projections, their positive part, and ridge regression to one-hot targets.

    As in the paper, features are not scaled, there is no intercept, and the penalty is chosen from
    ten to the -8 ... 8 again for every batch: by the squared error on a random fifth of it, with
    weights from its other four fifths. A batch of one example leaves the penalty as it was.

    Parameters
    ----------
    n_random_features : int, default=4000
        Number of random projections (M); the paper uses 10000.
    random_state : int, default=0
        Seed of the projections and of the held-out fifths.

    Examples
    --------
    >>> from evergrow.research.peers import RanPACClassifier
    >>> model = RanPACClassifier(100).fit([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1])
    >>> model.partial_fit([[3, 3], [3, 4]], [2, 2]).predict([[3, 3]])
    array([2])
    """

    _rules: ClassVar[dict[str, tuple[Rule, ...]]] = {
        "n_random_features": (Integer(1),),
        "random_state": (Integer(0), Nothing()),
    }

    def __init__(self, n_random_features: int = 4000, *, random_state: int | None = 0) -> None:
        self.n_random_features = n_random_features
        self.random_state = random_state

    def _draw(self, n_inputs: int) -> None:
        self._projection = self._rng.standard_normal((n_inputs, self.n_random_features))

    def _features(self, X: Floats) -> Floats:
        features = X @ self._projection
        return np.maximum(features, 0.0, out=features)

    def _choose(self, X: Floats, codes: Codes) -> tuple[float | None, Moments]:
        order = self._rng.permutation(len(X))
        n_fitted = int(_FITTED_SHARE * len(X))
        fitted, held = order[:n_fitted], order[n_fitted:]
        parts = [self._sum(X[rows], codes[rows]) for rows in (fitted, held)]
        if not n_fitted:
            return None, parts[1]
        spectrum = self._spectrum(X[fitted], parts[0])
        errors = spectrum.held_out_error(parts[1], _PENALTIES)
        return float(_PENALTIES[np.argmin(errors)]), parts[0] + parts[1]
