"""Softmax regression in folds: each example is scored by the examples of the other folds.

Least squares on coded labels says which class is the best, but hardly how impossible the others
are; the cross entropy does. There is no closed form for it, so a few iterations on leading
principal components keep the time bounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import fmin_l_bfgs_b

from evergrow.estimators.curation.left_out import Codes, RotatedRidge, blocks_of, centred

# Five find no more wrong labels and take twice the time.
_N_FOLDS = 3
_ITERATIONS = 25
# The penalty of all examples together, per feature, for features whose mean variance is one: the
# logits that the penalty makes likely then do not depend on the numbers of features or examples.
_PENALTY = 0.5
# Products in one pass over the examples, and numbers of features in memory.
_MOST_PRODUCTS, _MOST_NUMBERS = 1.3e9, 5e7
# Components: more find no more wrong labels, and with fewer too little of the features is left.
_MOST_COMPONENTS, _FEWEST_COMPONENTS = 256, 64


def held_out_logits(
    ridge: RotatedRidge, rows: npt.NDArray[Any], codes: Codes, seed: int
) -> npt.NDArray[np.float32] | None:
    """Score all examples of the sums by other folds; None if that would take too long."""
    n, n_classes = len(codes), len(ridge.class_counts)
    n_all = len(ridge.eigenvalues)
    limits = (_MOST_PRODUCTS / (n * n_classes), _MOST_NUMBERS / n, n_all, _MOST_COMPONENTS)
    n_most = int(min(limits))
    if n_most < min(_FEWEST_COMPONENTS, n_all) or not n_most:
        return None
    leading = np.argsort(-ridge.eigenvalues, kind="stable")[:n_most]
    scale = np.float32(np.sqrt(ridge.n_examples / ridge.unit))
    inputs = np.empty((n, n_most), dtype=np.float32)
    basis = ridge.basis[:, leading] * scale
    for part in blocks_of(rows, n_most):
        inputs[part] = centred(rows[part], ridge.mean) @ basis
    folds = _deal(codes, seed)
    logits = np.empty((n, n_classes), dtype=np.float32)
    for fold in range(_N_FOLDS):
        held = folds == fold
        penalty = _PENALTY * len(ridge.mean) / np.count_nonzero(~held)
        weights, offsets = fit_softmax(inputs[~held], codes[~held], n_classes, penalty)
        logits[held] = inputs[held] @ weights + offsets
    return logits


def _deal(codes: Codes, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each example; the examples of each class are dealt out in turn."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=np.int64)
    folds[order] = np.arange(len(codes)) % _N_FOLDS
    return folds


def fit_softmax(
    inputs: npt.NDArray[np.float32],
    codes: Codes,
    n_classes: int,
    penalty: float,
    iterations: int = _ITERATIONS,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Minimise the mean cross entropy plus half the penalty times the squared weights.

    Returns weights of shape (n_features, n_classes), and an offset per class.
    """
    n, d = inputs.shape
    places = np.arange(n)

    def loss(flat: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        weights = flat[: d * n_classes].reshape(d, n_classes).astype(np.float32)
        shares = inputs @ weights
        shares += flat[d * n_classes :].astype(np.float32)
        shares -= shares.max(axis=1, keepdims=True)
        own = float(shares[places, codes].sum(dtype=np.float64))
        np.exp(shares, out=shares)
        totals = shares.sum(axis=1, keepdims=True)
        shares /= totals
        shares[places, codes] -= 1.0
        slopes = inputs.T @ shares / n + penalty * weights
        entropy = (float(np.log(totals).sum(dtype=np.float64)) - own) / n
        squares = float((weights.astype(np.float64) ** 2).sum())
        both = np.concatenate([slopes.ravel(), shares.mean(axis=0)]).astype(np.float64)
        return entropy + 0.5 * penalty * squares, both

    counts = np.bincount(codes, minlength=n_classes)
    start = np.concatenate([np.zeros(d * n_classes), np.log((counts + 0.5) / n)])
    flat, _, _ = fmin_l_bfgs_b(loss, start, maxiter=iterations, m=6)
    flat = flat.astype(np.float32)
    return flat[: d * n_classes].reshape(d, n_classes), flat[d * n_classes :]
