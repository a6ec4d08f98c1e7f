"""The base of codebooks that learn without classes: fitting, coding and model files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import frozen_copy, replace_fitted
from evergrow.foundation.locks import exclusive
from evergrow.vision.images.transformer import FittedTransformer, fitted_attribute
from evergrow.vision.words.codebooks.vocabulary import (
    Coder,
    Vocabulary,
    as_rows,
    check_matrix,
    load_single,
)

Rows = npt.NDArray[np.float32]


class FittedCodebook(Coder, Protocol):
    """What a codebook has learnt, as one immutable value."""

    @property
    def n_features(self) -> int:
        """Number of features of the descriptors."""


class Codebook(Vocabulary, FittedTransformer[Any], ABC):
    """A codebook that learns without classes; subclasses add parameters and learning."""

    @abstractmethod
    def _learn(self, rows: Any, random: np.random.RandomState) -> FittedCodebook:
        """Learn from checked descriptors."""

    @exclusive
    def fit(self, D: Any, y: npt.ArrayLike | None = None) -> Self:  # noqa: ARG002
        """Learn the words from descriptors.

        Parameters
        ----------
        D : array-like of shape (n_descriptors, n_features), RaggedArray, or list of such arrays
            Descriptors, in one matrix or per image. They are copied into memory in single
            precision, also from :class:`evergrow.Shards`. :class:`BagOfWords` learns from a sample
            if there are more than fit into memory.
        y : ignored
            Present for pipelines.

        Returns
        -------
        self : estimator
            The fitted codebook. If fitting fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow.vision import RandomKDTrees
        >>> RandomKDTrees(2, n_words=3, random_state=0).fit([[0], [1], [2], [3]]).n_words_
        6
        """
        self._check_parameters()
        # Validation sets attributes, so it gets a clone: this estimator changes only on success.
        validated = clone(self)
        checked = check_matrix(validated, as_rows(D)[0])
        fitted = self._learn(load_single(checked), check_random_state(self.random_state))
        self._set_fitted(fitted, getattr(validated, "feature_names_in_", None))
        return self

    def _coder(self) -> FittedCodebook:
        return cast("FittedCodebook", self._fitted)

    def _checked_descriptors(self, rows: Any) -> Any:
        return check_matrix(self, rows, reset=False)

    words_per_tree_ = fitted_attribute(
        "Number of words of each tree.", lambda fitted: fitted.words_per_tree.copy()
    )

    def _set_fitted(self, fitted: FittedCodebook, names: npt.NDArray[Any] | None = None) -> None:
        learnt = {"_fitted": fitted, "n_features_in_": fitted.n_features}
        replace_fitted(self, {**learnt, "feature_names_in_": names})

    def _frozen_copy(self) -> Self:
        return frozen_copy(self)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a matrix is accepted, and that its type does not matter."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags
