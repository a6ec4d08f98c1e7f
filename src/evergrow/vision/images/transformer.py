"""What the transformers of this room share: parameter checks, model files, scikit-learn tags."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Generic, TypeVar

import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from evergrow.foundation.params import Rule, check_parameters
from evergrow.storage.files import write_model

Fitted = TypeVar("Fitted")


class ImageTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that can be saved; subclasses add parameters and their rules."""

    _rules: ClassVar[dict[str, list[Rule]]]

    def _check_parameters(self) -> None:
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays of a model file, or of a part of another model's file."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a file that :func:`evergrow.load` reads.

        Parameters
        ----------
        path : path
            File to write; an existing file is replaced atomically.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> from evergrow.vision import LocalFeatures
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     LocalFeatures("sift").save(os.path.join(folder, "features.evergrow"))
        ...     evergrow.load(os.path.join(folder, "features.evergrow"))
        LocalFeatures(descriptor='sift')
        """
        write_model(path, *self._to_file())

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is not a matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


class StatelessTransformer(ImageTransformer):
    """A transformer of images that learns nothing."""

    def __sklearn_is_fitted__(self) -> bool:
        """Always true, because nothing is learnt."""
        return True

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the input is not a matrix and that nothing is learnt."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        return tags


class FittedTransformer(ImageTransformer, Generic[Fitted]):
    """A transformer that learns; ``_fitted`` is immutable, and calls replace it as a whole."""

    _fitted: Fitted

    def _require_fitted(self) -> Fitted:
        """The fitted value; a ``NotFittedError`` before ``fit``."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first."
            )
        return self._fitted

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether it is fitted."""
        return "_fitted" in vars(self)
