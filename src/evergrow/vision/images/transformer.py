"""What the transformers of this room share: parameter checks, model files, scikit-learn tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from evergrow.estimators.classifier.documentation import DocLinkMixin
from evergrow.estimators.classifier.learner import frozen_copy, replace_fitted
from evergrow.estimators.classifier.persistence import FittedSaveMixin, SaveMixin
from evergrow.foundation.params import Rule, check_parameters
from evergrow.storage.models.header import check_saveable, common_header

Fitted = TypeVar("Fitted")


class ImageTransformer(SaveMixin, DocLinkMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that can be saved; subclasses add parameters and their rules."""

    _rules: ClassVar[dict[str, list[Rule]]]

    def _check_parameters(self) -> None:
        check_parameters({name: getattr(self, name) for name in self._rules}, self._rules)

    def _file_header(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """The header of a model file, after checks that the file can be loaded."""
        self._check_parameters()
        check_saveable(type(self))
        return common_header(self, parameters)

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


class FittedTransformer(FittedSaveMixin, ImageTransformer, Generic[Fitted]):
    """A transformer that learns; ``_fitted`` is immutable, and calls replace it as a whole."""

    _fitted: Fitted

    def _set_fitted(self, fitted: Fitted, names: npt.NDArray[Any] | None = None) -> None:
        """Replace the fitted value and the names of the features."""
        replace_fitted(self, {"_fitted": fitted, "feature_names_in_": names})

    def _checked_to_save(self) -> Self:
        reader = frozen_copy(self)
        reader._require_fitted()
        # A file with invalid parameters could not be loaded.
        reader._check_parameters()
        check_saveable(type(self))
        return reader

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


def fitted_attribute(description: str, read: Callable[[Any], Any]) -> Any:
    """A property of a :class:`FittedTransformer` that reads from its fitted value."""
    return property(lambda self: read(self._require_fitted()), doc=description)
