"""Fisher vectors: how the descriptors of an image differ from those of all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sized
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from evergrow.errors import ModelFileError
from evergrow.features.extraction import Extraction
from evergrow.features.local import LocalFeatures
from evergrow.features.local_file import features_from_json, features_to_json
from evergrow.features.many import ON_ERROR, BadImage, warn_of
from evergrow.features.mixture import Mixture, fit_mixture, improved
from evergrow.files import write_model
from evergrow.learner import swap_learnt
from evergrow.modelfile import (
    Build,
    check_saveable,
    common_header,
    parameters_of,
    plain_parameters,
)
from evergrow.params import (
    Flag,
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
    check_parameters,
)
from evergrow.progress import progress_bar
from evergrow.ragged import RaggedArray
from evergrow.turns import one_at_a_time

__all__ = ["FisherVectors"]

Rows = npt.NDArray[np.float32]

# Descriptors are at most as large, so that sums of their squares stay finite in single precision.
_LARGEST = 1e15


class _AnyLocalFeatures:
    """Local features, as a rule for parameters."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, LocalFeatures)

    def __str__(self) -> str:
        """Say what is allowed."""
        return "LocalFeatures(...)"


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
        Most descriptors to learn from, a random choice. Fewer are faster.
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
    pca_mean_ : ndarray of shape (n_features,)
        Mean of the descriptors, if there is a projection.
    pca_components_ : ndarray of shape (n_pca, n_features)
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
    >>> from evergrow.features import FisherVectors
    >>> images = [np.random.default_rng(i).normal(size=(40, 8)) for i in range(5)]
    >>> FisherVectors(2, n_pca=4, random_state=0).fit_transform(images).shape
    (5, 18)
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_components": [Integer(1, 1 << 16)],
        "n_pca": [Nothing(), Integer(1, 1 << 20)],
        "features": [Nothing(), _AnyLocalFeatures()],
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
        rows = self._training_rows(X, random)
        mixture = fit_mixture(
            rows,
            n_components=int(self.n_components),
            n_pca=None if self.n_pca is None else int(self.n_pca),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            random=random,
        )
        self._become(mixture)
        return self

    def _training_rows(self, X: Any, random: np.random.RandomState) -> Rows:
        most = int(self.n_training_descriptors)
        if self.features is None:
            rows = RaggedArray.of(X).values
        else:
            X = X if isinstance(X, Sized) else list(X)
            per_image = -(-most // max(1, len(X)))
            described = [rows for _, rows in self._described(X, "raise", per_image)]
            rows = RaggedArray.of(described).values  # type: ignore[arg-type]
        if len(rows) > most:
            rows = rows[np.sort(random.choice(len(rows), most, replace=False))]
        return _checked_rows(rows)

    def _described(
        self, X: Any, on_error: str, n_patches: int | None = None
    ) -> Iterator[tuple[int, Rows | BadImage]]:
        """Descriptors of one image after the other."""
        if self.features is None:
            yield from enumerate(RaggedArray.of(X))
            return
        # A random set of patches must not be larger than what describes an image.
        if n_patches is not None and self.features.patches.n is not None:
            n_patches = min(n_patches, self.features.patches.n)
        total = len(X) if isinstance(X, Sized) else 0
        with progress_bar("Describing images", total, self.verbose) as show:
            for index, rows in self.features.iterate(X, n_patches=n_patches, on_error=on_error):
                yield index, rows
                if show is not None:
                    show(index + 1)

    def _become(self, mixture: Mixture) -> None:
        learnt = {f"{name}_": array for name, array in mixture.arrays().items()}
        for array in learnt.values():
            array.setflags(write=False)
        swap_learnt(self, {**learnt, "n_features_in_": mixture.n_features})

    def _mixture(self) -> Mixture:
        check_is_fitted(self, "means_")
        arrays: dict[str, Any] = {name: getattr(self, f"{name}_", None) for name in Mixture.names()}
        return Mixture(**arrays)

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
        mixture = self._mixture()
        vectors, kept, problems = [], [], []
        for index, rows in self._described(X, on_error):
            if isinstance(rows, BadImage):
                problems.append(rows)
            else:
                vectors.append(mixture.fisher_vector(_checked_rows(rows)))
                kept.append(index)
        warn_of(problems)
        matrix = np.array(vectors).reshape(len(vectors), mixture.n_features_out)
        places = np.array(kept, dtype=np.int64)
        return Extraction(improved(matrix).astype(np.float32), places, tuple(problems))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced whole or not at all.
        """
        header, tensors = self._to_file()
        write_model(path, header, tensors)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays, for a file of its own or inside that of another estimator."""
        mixture = self._mixture()
        self._check()
        check_saveable(type(self))
        parameters = plain_parameters(self.get_params(deep=False))
        if self.features is not None:
            parameters["features"] = features_to_json(self.features)
        return common_header(self, parameters, None), mixture.arrays()

    @classmethod
    def _from_file(
        cls,
        header: dict[str, Any],
        tensors: dict[str, npt.NDArray[Any]],
        build: Build,  # noqa: ARG003
    ) -> Self:
        parameters = dict(parameters_of(header))
        if parameters.get("features") is not None:
            parameters["features"] = features_from_json(LocalFeatures, parameters["features"])
        model = cls(**parameters)
        model._check()
        mixture = Mixture.from_arrays(tensors)
        n_components, n_kept = mixture.means.shape
        as_asked = n_components == model.n_components and model.n_pca in (None, n_kept)
        if not as_asked or (model.n_pca is None) != (mixture.pca_components is None):
            raise ModelFileError("the model file is inconsistent: its mixture has another size")
        if model.features is not None and model.features.n_features_out_ != mixture.n_features:
            raise ModelFileError("the model file is inconsistent: its features have another size")
        model._become(mixture)
        return model

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn, which names the output by number."""
        return self._mixture().n_features_out

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that it takes images or their descriptors."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def _checked_rows(rows: npt.NDArray[Any]) -> Rows:
    # Also false for what is not a number.
    if rows.dtype.kind not in "biuf" or not (np.abs(rows) <= _LARGEST).all():
        raise ValueError(f"descriptors must be finite numbers of at most {_LARGEST:g}")
    return rows.astype(np.float32, copy=False)
