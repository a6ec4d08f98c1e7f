"""A Gaussian mixture of projected descriptors, and the gradients of its likelihood."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.storage.models.codec import Array, Fields
from evergrow.vision.descriptors.kinds import MAX_VALUE
from evergrow.vision.images.sources import import_extra

Floats = npt.NDArray[np.float64]
# Tolerance for the sum of the weights in a file.
_ROUNDING = 1e-6
# Bounds for means and variances in a file, wider than valid descriptors can lead to: projections of
# a million values, and variances that fitting keeps away from zero. Fisher vectors within these
# bounds are finite.
_MAX_MEAN = 1e3 * MAX_VALUE
_VARIANCE_RANGE = (1e-30, _MAX_MEAN**2)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A projection and a Gaussian mixture, learnt from descriptors; immutable."""

    weights: Floats
    means: Floats
    covariances: Floats
    pca_mean: Floats | None = None
    pca_components: Floats | None = None

    _stored: ClassVar[Fields] = {
        "means": Array(np.float64, ("components", "kept"), -_MAX_MEAN, _MAX_MEAN, filled=True),
        "weights": Array(np.float64, ("components",), 0.0, open_low=True),
        "covariances": Array(np.float64, ("components", "kept"), *_VARIANCE_RANGE),
        "pca_mean": Array(np.float64, ("features",), -_MAX_MEAN, _MAX_MEAN, optional=True),
        # Components have unit length.
        "pca_components": Array(
            np.float64, ("kept", "features"), -1 - _ROUNDING, 1 + _ROUNDING,
            filled=True, optional=True,
        ),
    }  # fmt: skip

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for weights of no mixture, or half a projection."""
        if abs(self.weights.sum() - 1.0) > _ROUNDING:
            raise InvalidInputError("its weights do not add up to 1")
        if (self.pca_mean is None) != (self.pca_components is None):
            raise InvalidInputError("its projection lacks a mean or components")

    @property
    def n_features(self) -> int:
        """Length of a descriptor."""
        kept = self.means if self.pca_components is None else self.pca_components
        return int(kept.shape[1])

    @property
    def n_features_out(self) -> int:
        """Length of a Fisher vector."""
        return len(self.weights) + 2 * self.means.size

    def project(self, rows: npt.NDArray[Any]) -> Floats:
        """Project descriptors into the space of the Gaussians."""
        if rows.shape[1] != self.n_features:
            raise InvalidInputError(
                f"descriptors must have {self.n_features} values as in fit, got {rows.shape[1]}"
            )
        if self.pca_components is None or self.pca_mean is None:
            return rows.astype(np.float64)
        return np.asarray((rows - self.pca_mean) @ self.pca_components.T)

    def fisher_vector(self, rows: npt.NDArray[Any]) -> Floats:
        """Compute the gradients for weights, means and deviations, not normalised.

        The sign of the last is opposite to that of Perronnin, Sanchez and Mensink (2010), as in
        scikit-image; inner products of vectors do not depend on it.
        """
        projected = self.project(rows)
        if not len(rows):
            return np.zeros(self.n_features_out)
        compute = import_extra("skimage.feature").fisher_vector
        return cast("Floats", compute(projected, self._gaussian_mixture(), improved=False))

    def _gaussian_mixture(self) -> Any:
        from sklearn.mixture import GaussianMixture

        mixture = GaussianMixture(len(self.weights), covariance_type="diag")
        mixture.weights_, mixture.means_ = self.weights, self.means
        mixture.covariances_ = self.covariances
        mixture.precisions_cholesky_ = 1.0 / np.sqrt(self.covariances)
        return mixture


def normalize(vectors: Floats) -> Floats:
    """Take signed square roots and scale to unit length; zeros stay zeros."""
    roots = np.sign(vectors) * np.sqrt(np.abs(vectors))
    lengths = np.linalg.norm(roots, axis=1, keepdims=True)
    return np.asarray(roots / np.where(lengths > 0.0, lengths, 1.0))


def fit_mixture(
    rows: npt.NDArray[np.float32],
    *,
    n_components: int,
    n_pca: int | None,
    max_iter: int,
    tol: float,
    random: np.random.RandomState,
) -> Mixture:
    """Learn the projection, then the mixture of the projected descriptors."""
    n_rows, n_features = rows.shape
    if n_pca is not None and n_pca > n_features:
        raise InvalidInputError(
            f"n_pca must be at most the length of a descriptor, {n_features}, got {n_pca}; "
            "None uses descriptors without a projection"
        )
    needed = max(n_components, n_pca or 1, 2)
    if n_rows < needed:
        raise InvalidInputError(
            f"there are too few descriptors to learn from: {n_components} Gaussians of "
            f"{n_pca or n_features} components need at least {needed}, got {n_rows}"
        )
    projection, projected = ({}, rows) if n_pca is None else _project(rows, n_pca)
    options = {
        "covariance_type": "diag",
        "max_iter": max_iter,
        "tol": tol,
        "random_state": random.randint(2**31 - 1),
    }
    learn = import_extra("skimage.feature").learn_gmm
    try:
        learnt = learn(np.asarray(projected, np.float64), n_modes=n_components, gm_args=options)
    except ValueError as error:
        raise InvalidInputError(
            f"no mixture of {n_components} Gaussians fits the {n_rows} descriptors, perhaps "
            f"because many are equal: use more descriptors or a smaller n_components ({error})"
        ) from error
    return Mixture(learnt.weights_, learnt.means_, learnt.covariances_, **projection)


def _project(
    rows: npt.NDArray[np.float32], n_pca: int
) -> tuple[dict[str, Floats], npt.NDArray[np.float32]]:
    """Learn the projection to principal components; return its arrays and the projected rows."""
    from sklearn.decomposition import PCA

    with warnings.catch_warnings():
        # Equal descriptors have no variance; fitting the mixture reports that.
        warnings.filterwarnings("ignore", message="invalid value", category=RuntimeWarning)
        pca = PCA(n_pca, svd_solver="covariance_eigh").fit(rows)
    arrays = {"pca_mean": pca.mean_, "pca_components": pca.components_}
    return {name: array.astype(np.float64) for name, array in arrays.items()}, pca.transform(rows)
