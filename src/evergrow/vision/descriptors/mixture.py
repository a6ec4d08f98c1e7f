"""A mixture of Gaussians over projected descriptors, and gradients of its likelihood."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import ModelFileError
from evergrow.storage.modelfile import check_array
from evergrow.vision.descriptors.kinds import LARGEST
from evergrow.vision.images.extras import vision_module

__all__ = ["Mixture", "fit_mixture", "improved"]

Floats = npt.NDArray[np.float64]
# How far the weights of a file may add up to something other than one.
_ROUNDING = 1e-6
# What descriptors of allowed sizes can lead to, with room: projections of a million values each,
# and variances, which learning keeps well away from zero. Vectors of such mixtures are finite.
_LARGEST = 1e3 * LARGEST
_SPREAD = (1e-30, _LARGEST**2)


@dataclass(frozen=True, eq=False)
class Mixture:
    """What is learnt from descriptors; it never changes."""

    weights: Floats
    means: Floats
    covariances: Floats
    pca_mean: Floats | None = None
    pca_components: Floats | None = None

    @classmethod
    def names(cls) -> list[str]:
        """Names of the arrays."""
        return [field.name for field in fields(cls)]

    def arrays(self) -> dict[str, Floats]:
        """The arrays there are, by name."""
        found = {name: getattr(self, name) for name in self.names()}
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """A mixture from an untrusted file; a ``ModelFileError`` unless it is a whole one."""

        def take(name: str, *shape: int | None) -> Floats:
            return check_array(arrays.get(name), name, np.float64, shape)

        means = take("means", None, None)
        weights = take("weights", len(means))
        covariances = take("covariances", *means.shape)
        if not means.size or abs(weights.sum() - 1.0) > _ROUNDING:
            raise ModelFileError("the model file is inconsistent: its mixture is empty")
        least, most = _SPREAD
        if not (weights > 0.0).all() or covariances.min() < least or covariances.max() > most:
            raise ModelFileError("the model file is inconsistent: its mixture has no spread")
        if np.abs(means).max() > _LARGEST:
            raise ModelFileError("the model file is inconsistent: its mixture lies too far out")
        if "pca_components" not in arrays and "pca_mean" not in arrays:
            return cls(weights, means, covariances)
        components = take("pca_components", means.shape[1], None)
        if not components.size:
            raise ModelFileError("the model file is inconsistent: its projection is empty")
        pca_mean = take("pca_mean", components.shape[1])
        # Directions have unit length.
        if np.abs(components).max() > 1.0 + _ROUNDING or np.abs(pca_mean).max() > _LARGEST:
            raise ModelFileError("the model file is inconsistent: its projection is too large")
        return cls(weights, means, covariances, pca_mean, components)

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
        """Descriptors in the space of the Gaussians."""
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"descriptors must have {self.n_features} values as in fit, got {rows.shape[1]}"
            )
        if self.pca_components is None or self.pca_mean is None:
            return rows.astype(np.float64)
        projected: Floats = (rows - self.pca_mean) @ self.pca_components.T
        return projected

    def fisher_vector(self, rows: npt.NDArray[Any]) -> Floats:
        """Gradients with respect to weights, means and deviations, not yet normalised.

        The last have the opposite sign of Perronnin, Sanchez and Mensink's (2010), which is
        scikit-image's choice and all the same to products of vectors.
        """
        projected = self.project(rows)
        if not len(rows):
            return np.zeros(self.n_features_out)
        vector: Floats = vision_module("skimage.feature").fisher_vector(
            projected, self._gaussian_mixture(), improved=False
        )
        return vector

    def _gaussian_mixture(self) -> Any:
        from sklearn.mixture import GaussianMixture

        mixture = GaussianMixture(len(self.weights), covariance_type="diag")
        mixture.weights_, mixture.means_ = self.weights, self.means
        mixture.covariances_ = self.covariances
        mixture.precisions_cholesky_ = 1.0 / np.sqrt(self.covariances)
        return mixture


def improved(vectors: Floats) -> Floats:
    """Signed square roots, scaled to unit length; zeros stay zeros."""
    roots = np.sign(vectors) * np.sqrt(np.abs(vectors))
    lengths = np.linalg.norm(roots, axis=1, keepdims=True)
    normalised: Floats = roots / np.where(lengths > 0.0, lengths, 1.0)
    return normalised


def fit_mixture(
    rows: npt.NDArray[np.float32],
    *,
    n_components: int,
    n_pca: int | None,
    max_iter: int,
    tol: float,
    random: np.random.RandomState,
) -> Mixture:
    """Learn the projection, then the mixture of what was projected."""
    n_rows, n_features = rows.shape
    if n_pca is not None and n_pca > n_features:
        raise ValueError(
            f"n_pca must be at most the length of a descriptor, {n_features}, got {n_pca}; "
            "None keeps descriptors as they are"
        )
    needed = max(n_components, n_pca or 1, 2)
    if n_rows < needed:
        raise ValueError(
            f"there are too few descriptors to learn from: {n_rows}, "
            f"{n_components} Gaussians of {n_pca or n_features} components need at least {needed}"
        )
    projection, projected = ({}, rows) if n_pca is None else _project(rows, n_pca)
    options = {
        "covariance_type": "diag",
        "max_iter": max_iter,
        "tol": tol,
        "random_state": random.randint(2**31 - 1),
    }
    learn = vision_module("skimage.feature").learn_gmm
    try:
        learnt = learn(np.asarray(projected, np.float64), n_modes=n_components, gm_args=options)
    except ValueError as error:
        raise ValueError(
            f"no mixture of {n_components} Gaussians fits {n_rows} descriptors, of which many may "
            f"be the same: take more descriptors or a smaller n_components ({error})"
        ) from error
    return Mixture(learnt.weights_, learnt.means_, learnt.covariances_, **projection)


def _project(
    rows: npt.NDArray[np.float32], n_pca: int
) -> tuple[dict[str, Floats], npt.NDArray[np.float32]]:
    """The projection to principal components, and the rows after it."""
    from sklearn.decomposition import PCA

    with warnings.catch_warnings():
        # Descriptors that are all the same have no variance to explain; the mixture tells.
        warnings.filterwarnings("ignore", message="invalid value", category=RuntimeWarning)
        pca = PCA(n_pca, svd_solver="covariance_eigh").fit(rows)
    arrays = {"pca_mean": pca.mean_, "pca_components": pca.components_}
    return {name: array.astype(np.float64) for name, array in arrays.items()}, pca.transform(rows)
