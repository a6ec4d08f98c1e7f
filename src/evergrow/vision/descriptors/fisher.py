"""Fisher vectors: how the descriptors of an image differ from those of all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sized
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import swap_learnt
from evergrow.foundation.params import (
    Flag,
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.foundation.ragged import RaggedArray
from evergrow.foundation.turns import one_at_a_time
from evergrow.storage.files import write_model
from evergrow.storage.modelfile import (
    Build,
    check_saveable,
    common_header,
    parameters_of,
    plain_parameters,
)
from evergrow.vision.descriptors.describer import AnyLocalFeatures, patches_per_image
from evergrow.vision.descriptors.fisher_fitted import FittedFisher, described
from evergrow.vision.descriptors.kinds import checked_descriptors
from evergrow.vision.descriptors.local import LocalFeatures
from evergrow.vision.descriptors.mixture import fit_mixture
from evergrow.vision.images.extraction import Extraction
from evergrow.vision.images.many import ON_ERROR

__all__ = ["FisherVectors"]

Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


class FisherVectors(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """One vector per image from any number of local descriptors.

    A mixture of Gaussians is learnt from the descriptors of all images, after a projection to
    their principal components. An image is then described by how its own descriptors would change
    the mixture's weights, means and variances, with signed square roots and unit length (the
    improved Fisher vector of Perronnin, Sanchez and Mensink, 2010). A linear classifier on top
    does well with few Gaussians.

    Parameters
    ----------
    n_components : int, default=16
        Gaussians. More describe more finely; the vector grows with them.
    n_pca : int, default=64
        Principal components of the descriptors to keep; None for the descriptors as they are.
        Gaussians without correlations suit components better.
    features : LocalFeatures, default=None
        Makes descriptors of images. With None, descriptors are what is given to :meth:`fit` and
        :meth:`transform`.
    n_training_descriptors : int, default=100_000
        Most descriptors to learn from, a random choice. Fewer are faster. With ``features``, no
        image gives more than its patches, ``features.patches.n`` of them at most.
    max_iter : int, default=100
        Most steps of the mixture's learning.
    tol : float, default=1e-3
        Gain in mean log-likelihood below which it stops.
    random_state : int, RandomState or None, default=None
        Seed of the choice of descriptors and of the mixture's start.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    features_ : LocalFeatures or None
        What describes images, as it was when fitting.
    pca_mean_ : ndarray of shape (n_features,) or None
        Mean of the descriptors, if there is a projection.
    pca_components_ : ndarray of shape (n_pca, n_features) or None
        The projection, if there is one.
    weights_ : ndarray of shape (n_components,)
        Shares of the Gaussians.
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
        "features": [Nothing(), AnyLocalFeatures()],
        "n_training_descriptors": [Integer(1, 1 << 40)],
        "max_iter": [Integer(1, 1 << 30)],
        "tol": [Number(0.0)],
        "random_state": [Nothing(), RandomState()],
        "verbose": [Integer(0), Flag()],
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

    # All that is learnt: calls replace it and never change it.
    _fitted: FittedFisher

    def _check(self) -> None:
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)

    @one_at_a_time
    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn projection and mixture.

        Parameters
        ----------
        X : RaggedArray, list of matrices, or list of images
            Descriptors of each image; with ``features``, images as :func:`read_image` takes them.
        y : ignored
            For pipelines.

        Returns
        -------
        self : estimator
            The fitted estimator. If learning fails or is interrupted it stays as it was.
        """
        self._check()
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
        self._become(FittedFisher(mixture, features))
        return self

    def _training_rows(
        self, features: LocalFeatures | None, X: Any, random: np.random.RandomState
    ) -> Rows:
        most = int(self.n_training_descriptors)
        if features is None:
            rows = RaggedArray.of(X).values
        else:
            X = X if isinstance(X, Sized) else list(X)
            n_patches = patches_per_image(features, most, len(X))
            options: dict[str, Any] = {"on_error": "raise", "verbose": self.verbose}
            found = described(features, X, n_patches=n_patches, **options)
            rows = RaggedArray.of(one for _, one in found).values  # type: ignore[misc]
        if len(rows) > most:
            rows = rows[np.sort(random.choice(len(rows), most, replace=False))]
        return checked_descriptors(rows)

    def _become(self, fitted: FittedFisher) -> None:
        for array in fitted.mixture.arrays().values():
            array.setflags(write=False)
        swap_learnt(self, {"_fitted": fitted})

    def _learnt(self) -> FittedFisher:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet, so it has no mixture. "
                "Call 'fit' first."
            )
        return self._fitted

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is a mixture."""
        return "_fitted" in vars(self)

    @property
    def features_(self) -> LocalFeatures | None:
        """What describes images; None where the input is descriptors."""
        return self._learnt().features

    @property
    def weights_(self) -> Floats:
        """Shares of the Gaussians."""
        return self._learnt().mixture.weights

    @property
    def means_(self) -> Floats:
        """Means of the Gaussians."""
        return self._learnt().mixture.means

    @property
    def covariances_(self) -> Floats:
        """Variances of the Gaussians."""
        return self._learnt().mixture.covariances

    @property
    def pca_mean_(self) -> Floats | None:
        """Mean of the descriptors; None without a projection."""
        return self._learnt().mixture.pca_mean

    @property
    def pca_components_(self) -> Floats | None:
        """The projection; None without one."""
        return self._learnt().mixture.pca_components

    @property
    def n_features_in_(self) -> int:
        """Length of a descriptor."""
        return self._learnt().mixture.n_features

    def transform(self, X: Any) -> Rows:
        """One vector per image.

        Parameters
        ----------
        X : RaggedArray, list of matrices, or list of images
            As in :meth:`fit`.

        Returns
        -------
        vectors : ndarray of shape (n_images, n_components * (2 * n_pca + 1))
            Changes of the weights, then of the means, then of the variances, float32. An image
            without descriptors has zeros.
        """
        vectors: Rows = self.extract(X).features
        return vectors

    def extract(self, X: Iterable[Any], *, on_error: str = "raise") -> Extraction:
        """One vector per image that can be described, and which those are.

        Parameters
        ----------
        X : RaggedArray, list of matrices, or list of images
            As in :meth:`fit`.
        on_error : {"raise", "skip"}, default="raise"
            What to do about an image that cannot be read: raise an error, or leave it out and
            warn.

        Returns
        -------
        extraction : Extraction
            The vectors, the places of their images, the problems.
        """
        self._check()
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        return self._learnt().extract(X, on_error=on_error, verbose=self.verbose)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        After loading, ``n_components``, ``n_pca`` and ``features`` are those it was fitted with.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced whole or not at all.
        """
        header, tensors = self._to_file()
        write_model(path, header, tensors)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays, for a file of its own or inside that of another estimator."""
        fitted = self._learnt()
        self._check()
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
        model._check()
        model._become(fitted)
        return model

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn, which names the output by number."""
        return self._learnt().mixture.n_features_out

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that it takes images or their descriptors."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags
