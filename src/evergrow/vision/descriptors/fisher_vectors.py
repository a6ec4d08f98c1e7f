"""Fisher vectors: how the descriptors of an image differ from those of all images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils import check_random_state

from evergrow.foundation.errors import BadImage, InvalidInputError, ModelFileError
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import (
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.foundation.progress import progress_bar
from evergrow.storage.models.codec import Fields, Model, Nested
from evergrow.storage.ragged import RaggedArray
from evergrow.vision.descriptors.kinds import check_descriptors
from evergrow.vision.descriptors.local_features import IS_LOCAL_FEATURES, LocalFeatures
from evergrow.vision.descriptors.mixture import Mixture, fit_mixture, normalize
from evergrow.vision.descriptors.patches import patches_per_image
from evergrow.vision.images.parameters import ON_ERROR, VERBOSE
from evergrow.vision.images.results import Extraction, warn_about
from evergrow.vision.images.transformer import FittedTransformer, fitted_attribute

Rows = npt.NDArray[np.float32]


def _iterate_descriptors(
    features: LocalFeatures | None,
    X: Any,
    *,
    on_error: str,
    verbose: int,
    n_patches: int | None = None,
) -> Iterator[tuple[int, Rows | BadImage]]:
    """Yield the descriptors of each image; without features, the input is descriptors."""
    if features is None:
        yield from enumerate(RaggedArray.of(X))
        return
    total = len(X) if isinstance(X, Sized) else 0
    with progress_bar("Describing images", total, verbose) as show:
        for index, rows in features.iterate(X, n_patches=n_patches, on_error=on_error):
            yield index, rows
            if show is not None:
                show(index + 1)


@dataclass(frozen=True, eq=False)
class FittedFisher:
    """Everything that is learnt, as one immutable value."""

    mixture: Mixture
    features: LocalFeatures | None

    _stored: ClassVar[Fields] = {
        "mixture": Nested(Mixture),
        "features": Model(IS_LOCAL_FEATURES, optional=True),
    }

    def extract(self, X: Any, *, on_error: str, verbose: int) -> Extraction:
        """Compute the vectors of the images that can be read."""
        vectors, kept, problems = [], [], []
        options: dict[str, Any] = {"on_error": on_error, "verbose": verbose}
        for index, rows in _iterate_descriptors(self.features, X, **options):
            if isinstance(rows, BadImage):
                problems.append(rows)
            else:
                vectors.append(self.mixture.fisher_vector(check_descriptors(rows)))
                kept.append(index)
        warn_about(problems)
        matrix = np.array(vectors).reshape(len(vectors), self.mixture.n_features_out)
        places = np.array(kept, dtype=np.int64)
        return Extraction(normalize(matrix).astype(np.float32), places, tuple(problems))

    @property
    def sizes(self) -> dict[str, Any]:
        """The parameters that the mixture was learnt with."""
        n_components, n_kept = self.mixture.means.shape
        n_pca = None if self.mixture.pca_components is None else n_kept
        return {"n_components": n_components, "n_pca": n_pca}

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the features do not suit the mixture."""
        n_features = self.mixture.n_features
        if self.features is not None and self.features.n_features_out_ != n_features:
            raise InvalidInputError("its features have another size")


@dataclass(eq=False, repr=False)
class FisherVectors(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    FittedTransformer[FittedFisher],
):
    """Turn the local descriptors of each image into one Fisher vector.

    A Gaussian mixture is learnt from the principal components of all descriptors. The vector of an
    image is the gradient of the likelihood of its descriptors with respect to the weights, means
    and variances of the mixture. It then gets signed square roots and unit length (the improved
    Fisher vector of Perronnin, Sanchez and Mensink, 2010). A linear classifier of these vectors
    works well with few Gaussians.

    Parameters
    ----------
    n_components : int, default=16
        Number of Gaussians. More give a finer description and a longer vector.
    n_pca : int, default=64
        Number of principal components. None uses the descriptors as they are. The Gaussians have
        diagonal covariances, which fit uncorrelated components better.
    features : LocalFeatures, default=None
        Computes descriptors of images. With None, :meth:`fit` and :meth:`transform` take
        descriptors.
    n_training_descriptors : int, default=100_000
        Maximum number of descriptors to learn from, drawn at random. Fewer are faster. With
        `features`, an image contributes at most ``features.patches.n``.
    max_iter : int, default=100
        Maximum number of EM iterations.
    tol : float, default=1e-3
        Gain in mean log-likelihood below which EM stops.
    random_state : int, RandomState or None, default=None
        Seed of the sample of descriptors and of the initial mixture.
    verbose : int, default=0
        Show a progress bar if positive.

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

    _kind = FittedFisher
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

    n_components: int = 16
    _: KW_ONLY
    n_pca: int | None = 64
    features: LocalFeatures | None = None
    n_training_descriptors: int = 100_000
    max_iter: int = 100
    tol: float = 1e-3
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

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
            found = _iterate_descriptors(features, X, n_patches=n_patches, **options)
            rows = RaggedArray.of(one for _, one in found).values  # type: ignore[misc]
        if len(rows) > total:
            rows = rows[np.sort(random.choice(len(rows), total, replace=False))]
        return check_descriptors(rows)

    def _set_fitted(self, fitted: FittedFisher, names: npt.NDArray[Any] | None = None) -> None:
        for array in vars(fitted.mixture).values():
            if array is not None:
                array.setflags(write=False)
        super()._set_fitted(fitted, names)

    features_ = fitted_attribute(
        "The local features; None if the input is descriptors.", lambda fitted: fitted.features
    )
    weights_ = fitted_attribute("Weights of the Gaussians.", lambda f: f.mixture.weights)
    means_ = fitted_attribute("Means of the Gaussians.", lambda f: f.mixture.means)
    covariances_ = fitted_attribute("Variances of the Gaussians.", lambda f: f.mixture.covariances)
    pca_mean_ = fitted_attribute(
        "Mean of the descriptors; None without a projection.", lambda f: f.mixture.pca_mean
    )
    pca_components_ = fitted_attribute(
        "The principal components; None without a projection.", lambda f: f.mixture.pca_components
    )
    n_features_in_ = fitted_attribute("Length of a descriptor.", lambda f: f.mixture.n_features)
    # The number of output columns, which scikit-learn names.
    _n_features_out = fitted_attribute(
        "Length of a Fisher vector.", lambda f: f.mixture.n_features_out
    )

    def transform(self, X: Iterable[Any]) -> Rows:
        """Compute one Fisher vector per image; an error if an image cannot be read.

        Parameters
        ----------
        X : RaggedArray, list of matrices, or list of images
            As in :meth:`fit`.

        Returns
        -------
        vectors : ndarray of shape (n_images, n_components * (2 * n_pca + 1))
            Gradients for the weights, the means, then the variances, float32. An image without
            descriptors has zeros.

        Raises
        ------
        evergrow.ImageError
            For the first image that cannot be read; :meth:`extract` can skip it instead.
        """
        vectors: Rows = self.extract(X).features
        return vectors

    def extract(self, X: Iterable[Any], *, on_error: str = "raise") -> Extraction:
        """Compute one vector per image that can be read.

        Parameters
        ----------
        X : RaggedArray, list of matrices, or list of images
            As in :meth:`fit`.
        on_error : {"raise", "skip"}, default="raise"
            What to do if an image cannot be read: raise an error, or skip it and warn.

        Returns
        -------
        extraction : Extraction
            The vectors, of shape (n_images, n_components * (2 * n_pca + 1)), with gradients for the
            weights, the means, then the variances; the indices of their images; the problems. An
            image without descriptors has zeros.
        """
        self._check_parameters()
        check_parameters({"on_error": on_error}, {"on_error": ON_ERROR})
        return self._require_fitted().extract(X, on_error=on_error, verbose=self.verbose)

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:
        parameters = super()._stored_parameters(inference_only)
        # Those of the fit: the estimator's own may have been changed for the next one.
        return {**parameters, **self._fitted.sizes, "features": None}

    @classmethod
    def _read_parameters(cls, entries: dict[str, Any], fitted: FittedFisher) -> dict[str, Any]:
        if any(entries.get(name, 0) != size for name, size in fitted.sizes.items()):
            raise ModelFileError("the model file is inconsistent: its mixture has another size")
        if entries.get("features") is not None:
            raise ModelFileError("the model file has features among its parameters")
        return {**entries, "features": None if fitted.features is None else clone(fitted.features)}
