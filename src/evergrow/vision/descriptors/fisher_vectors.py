"""Fisher vectors: how the descriptors of an image differ from those of all images."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import replace_fitted
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import (
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.foundation.ragged import RaggedArray
from evergrow.storage.modelfile import (
    Build,
    check_saveable,
    common_header,
    parameters_of,
    plain_parameters,
)
from evergrow.vision.descriptors.fisher_fitted import FittedFisher, iterate_descriptors
from evergrow.vision.descriptors.kinds import check_descriptors
from evergrow.vision.descriptors.local_features import IS_LOCAL_FEATURES, LocalFeatures
from evergrow.vision.descriptors.mixture import fit_mixture
from evergrow.vision.descriptors.patches import patches_per_image
from evergrow.vision.images.parameters import ON_ERROR, VERBOSE
from evergrow.vision.images.results import Extraction
from evergrow.vision.images.transformer import FittedTransformer

Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


class FisherVectors(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    FittedTransformer[FittedFisher],
):
    """One vector per image from any number of local descriptors.

    A Gaussian mixture is learnt from the descriptors of all images, after a projection to their
    principal components. The vector of an image is the gradient of the likelihood of its
    descriptors for the weights, means and variances of the mixture, with signed square roots and
    unit length (the improved Fisher vector of Perronnin, Sanchez and Mensink, 2010). A linear
    classifier of these vectors does well with few Gaussians.

    After loading from a model file, ``n_components``, ``n_pca`` and ``features`` have the values
    that were used in fitting.

    Parameters
    ----------
    n_components : int, default=16
        Number of Gaussians. More give a finer description and a longer vector.
    n_pca : int, default=64
        Number of principal components; None for descriptors without a projection. The Gaussians
        have diagonal covariances, which fit uncorrelated components better.
    features : LocalFeatures, default=None
        Computes descriptors of images. With None, :meth:`fit` and :meth:`transform` take
        descriptors.
    n_training_descriptors : int, default=100_000
        Maximum number of descriptors to learn from, a random sample. Fewer are faster. With
        ``features``, an image contributes at most ``features.patches.n`` of them.
    max_iter : int, default=100
        Maximum number of EM iterations.
    tol : float, default=1e-3
        Gain in mean log-likelihood below which EM stops.
    random_state : int, RandomState or None, default=None
        Seed of the sample of descriptors and of the initial mixture.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    features_ : LocalFeatures or None
        The local features that were used in fitting.
    pca_mean_ : ndarray of shape (n_features,) or None
        Mean of the descriptors; None without a projection.
    pca_components_ : ndarray of shape (n_pca, n_features) or None
        The principal components; None without a projection.
    weights_ : ndarray of shape (n_components,)
        Weights of the Gaussians.
    means_ : ndarray of shape (n_components, n_pca)
        Their means.
    covariances_ : ndarray of shape (n_components, n_pca)
        Their variances.
    n_features_in_ : int
        Length of a descriptor.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import FisherVectors
    >>> images = [np.random.default_rng(i).normal(size=(40, 8)) for i in range(5)]
    >>> FisherVectors(2, n_pca=4, random_state=0).fit_transform(images).shape
    (5, 18)
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_components": [Integer(1, 1 << 16)],
        "n_pca": [Nothing(), Integer(1, 1 << 20)],
        "features": [Nothing(), IS_LOCAL_FEATURES],
        "n_training_descriptors": [Integer(1, 1 << 40)],
        "max_iter": [Integer(1, 1 << 30)],
        "tol": [Number(0.0)],
        "random_state": [Nothing(), RandomState()],
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        n_components: int = 16,
        *,
        n_pca: int | None = 64,
        features: LocalFeatures | None = None,
        n_training_descriptors: int = 100_000,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_pca = n_pca
        self.features = features
        self.n_training_descriptors = n_training_descriptors
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @exclusive
    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn projection and mixture.

        Parameters
        ----------
        X : RaggedArray, list of matrices, or list of images
            Descriptors of each image; with ``features``, images as in :func:`read_image`.
        y : ignored
            Present for pipelines.

        Returns
        -------
        self : estimator
            The fitted estimator. If fitting fails or is interrupted, it is unchanged.
        """
        self._check_parameters()
        random = check_random_state(self.random_state)
        features = None if self.features is None else clone(self.features)
        mixture = fit_mixture(
            self._training_rows(features, X, random),
            n_components=int(self.n_components),
            n_pca=None if self.n_pca is None else int(self.n_pca),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            random=random,
        )
        self._set_fitted(FittedFisher(mixture, features))
        return self

    def _training_rows(
        self, features: LocalFeatures | None, X: Any, random: np.random.RandomState
    ) -> Rows:
        total = int(self.n_training_descriptors)
        if features is None:
            rows = RaggedArray.of(X).values
        else:
            X = X if isinstance(X, Sized) else list(X)
            n_patches = patches_per_image(features.patches, total, len(X))
            options: dict[str, Any] = {"on_error": "raise", "verbose": self.verbose}
            found = iterate_descriptors(features, X, n_patches=n_patches, **options)
            rows = RaggedArray.of(one for _, one in found).values  # type: ignore[misc]
        if len(rows) > total:
            rows = rows[np.sort(random.choice(len(rows), total, replace=False))]
        return check_descriptors(rows)

    def _set_fitted(self, fitted: FittedFisher) -> None:
        for array in fitted.mixture.arrays().values():
            array.setflags(write=False)
        replace_fitted(self, {"_fitted": fitted})

    @property
    def features_(self) -> LocalFeatures | None:
        """The local features; None if the input is descriptors."""
        return self._require_fitted().features

    @property
    def weights_(self) -> Floats:
        """Weights of the Gaussians."""
        return self._require_fitted().mixture.weights

    @property
    def means_(self) -> Floats:
        """Means of the Gaussians."""
        return self._require_fitted().mixture.means

    @property
    def covariances_(self) -> Floats:
        """Variances of the Gaussians."""
        return self._require_fitted().mixture.covariances

    @property
    def pca_mean_(self) -> Floats | None:
        """Mean of the descriptors; None without a projection."""
        return self._require_fitted().mixture.pca_mean

    @property
    def pca_components_(self) -> Floats | None:
        """The principal components; None without a projection."""
        return self._require_fitted().mixture.pca_components

    @property
    def n_features_in_(self) -> int:
        """Length of a descriptor."""
        return self._require_fitted().mixture.n_features

    def transform(self, X: Any) -> Rows:
        """Compute one vector per image.

        Parameters
        ----------
        X : RaggedArray, list of matrices, or list of images
            As in :meth:`fit`.

        Returns
        -------
        vectors : ndarray of shape (n_images, n_components * (2 * n_pca + 1))
            Gradients for the weights, then the means, then the variances, float32. An image without
            descriptors has zeros.
        """
        return cast("Rows", self.extract(X).features)

    def extract(self, X: Iterable[Any], *, on_error: str = "raise") -> Extraction:
        """Compute one vector per image that can be read.

        Parameters
        ----------
        X : RaggedArray, list of matrices, or list of images
            As in :meth:`fit`.
        on_error : {"raise", "skip"}, default="raise"
            What to do if an image cannot be read: raise an error, or leave it out and warn.

        Returns
        -------
        extraction : Extraction
            The vectors, the indices of their images, and the problems.
        """
        self._check_parameters()
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        return self._require_fitted().extract(X, on_error=on_error, verbose=self.verbose)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays of a model file, or of a part of another model's file."""
        fitted = self._require_fitted()
        self._check_parameters()
        check_saveable(type(self))
        parameters = plain_parameters(self.get_params(deep=False)) | fitted.parameters()
        return common_header(self, parameters, None), fitted.mixture.arrays()

    @classmethod
    def _from_file(
        cls,
        header: dict[str, Any],
        tensors: dict[str, npt.NDArray[Any]],
        build: Build,  # noqa: ARG003
    ) -> Self:
        parameters = parameters_of(header)
        fitted = FittedFisher.from_file(parameters, tensors)
        features = None if fitted.features is None else clone(fitted.features)
        model = cls(**{**parameters, "features": features})
        model._check_parameters()
        model._set_fitted(fitted)
        return model

    @property
    def _n_features_out(self) -> int:
        """Number of output columns, which scikit-learn names."""
        return self._require_fitted().mixture.n_features_out
