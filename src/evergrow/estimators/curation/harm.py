"""Examples without which the others would be recognised better.

With ``r`` the residual of an example, its label minus its scores, and ``h_ij`` the entry of the hat
matrix for two examples, the residual of ``i`` in a model that saw neither ``i`` nor ``j`` is
``((1 - h_jj) r_i + h_ij r_j) / ((1 - h_ii)(1 - h_jj) - h_ij^2)``. The harm of ``j`` is how much the
squared length of these residuals, summed over all other ``i``, falls when ``j`` is left out too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear.ridge import RidgeFit

# Pairs of examples to compute exactly: all of them up to about 4500 examples.
_MOST_PAIRS = 20_000_000
_FEWEST_CANDIDATES = 100


@dataclass(frozen=True, eq=False)
class Harm:
    """Harm of some examples, the most harmful first, in percent of the left-out error of all."""

    rows: npt.NDArray[np.int64]
    percent: npt.NDArray[np.float64]


def measure_harm(fit: RidgeFit) -> Harm:
    """Measure the harm of the examples for which it is estimated to be the largest."""
    n = len(fit.codes)
    estimates, error = _estimate(fit)
    n_candidates = min(n, max(_FEWEST_CANDIDATES, _MOST_PAIRS // n))
    candidates = np.sort(np.argsort(-estimates, kind="stable")[:n_candidates])
    harm = _exact(fit, candidates)
    order = np.argsort(-harm, kind="stable")
    share = 100.0 / error if error > 0 else 0.0
    return Harm(candidates[order], harm[order] * share)


def _estimate(fit: RidgeFit) -> tuple[npt.NDArray[np.float64], float]:
    """Estimate the harm of each example, and return the left-out error of all.

    The estimate is the closed form without the square of ``h_ij`` in its denominator, and with the
    same ``h_ii`` for all others in the term of second order.
    """
    n_features, n_classes = fit.weights.shape
    pulled, total = np.zeros((n_features, n_classes)), np.zeros(n_classes)
    found, error = np.empty(len(fit.codes)), 0.0
    for part in fit.blocks():
        rows = fit.centred(part)
        residuals = fit.residuals(part, rows)
        weighted = residuals / (1.0 - fit.leverages[part, None]) ** 2
        pulled += rows.T @ weighted
        total += weighted.sum(axis=0)
        error += float(np.einsum("ij,ij->", residuals, weighted))
    shift, offset = _through_hat(fit, pulled), np.asarray(total / len(found), dtype=np.float32)
    for part in fit.blocks():
        rows, leverages = fit.centred(part), fit.leverages[part]
        residuals = fit.residuals(part, rows)
        squares = np.einsum("ij,ij->i", residuals, residuals)
        rest = 1.0 - leverages
        # The example's own terms do not count.
        pull = np.einsum("ij,ij->i", residuals, rows @ shift + offset)
        pull -= leverages * squares / rest**2
        spread = (fit.spreads[part] - leverages**2) * squares
        found[part] = -2.0 * pull / rest - spread / rest**2
    return found, error


def _through_hat(fit: RidgeFit, columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Solve for columns of the shape of the weights, as the ridge does for class sums."""
    ridge = fit.ridge
    scaled = (ridge.basis.T @ columns) / (ridge.eigenvalues + fit.penalty)[:, None]
    return np.asarray(ridge.basis @ scaled, dtype=np.float32)


def _exact(fit: RidgeFit, candidates: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the harm of some examples by the closed form."""
    chosen = fit.centred(candidates)
    theirs = fit.residuals(candidates, chosen)
    their_rest = 1.0 - fit.leverages[candidates]
    their_squares = np.einsum("ij,ij->i", theirs, theirs)
    solved = _through_hat(fit, chosen.T.astype(np.float64))
    intercept = np.float32(1.0 / fit.ridge.n_examples)
    harm = np.zeros(len(candidates))
    for part in fit.blocks(4 * len(candidates)):
        rows = fit.centred(part)
        residuals = fit.residuals(part, rows)
        rest = (1.0 - fit.leverages[part])[:, None]
        squares = np.einsum("ij,ij->i", residuals, residuals)[:, None]
        cross = rows @ solved + intercept
        without = their_rest**2 * squares + cross**2 * their_squares
        without += 2 * their_rest * cross * (residuals @ theirs.T)
        without /= (rest * their_rest - cross**2) ** 2
        fall = squares / rest**2 - without
        here = (candidates >= part.start) & (candidates < part.stop)
        fall[candidates[here] - part.start, np.flatnonzero(here)] = 0.0
        harm += fall.sum(axis=0, dtype=np.float64)
    return harm
