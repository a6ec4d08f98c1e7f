"""Coding, prediction and model files of an ERC forest."""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from evergrow.estimators.classifier.learner import GrowingClassifier, validate_rows
from evergrow.estimators.classifier.persistence import InferenceSaveMixin
from evergrow.foundation.errors import InvalidInputError, ModelFileError
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
)
from evergrow.storage.ragged import RaggedArray
from evergrow.storage.shards import ShardImages
from evergrow.vision.images.parameters import VERBOSE
from evergrow.vision.words.codebooks.vocabulary import Vocabulary, as_images, as_rows, is_ragged
from evergrow.vision.words.erc.fitted import MAX_TRIALS, FittedERC


class ERCPredictor(Vocabulary, InferenceSaveMixin, GrowingClassifier):
    """Coding and prediction with a fitted ERC forest; the subclass adds training."""

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_estimators": [Integer(1, 1 << 16)],
        "n_words": [Integer(1, 1 << 26), Nothing()],
        "min_score": [Number(0.0, 1.0)],
        "max_trials": [Integer(1, MAX_TRIALS), Choice(("sqrt", "auto"))],
        "supervised": [Flag()],
        "min_gain": [Number(0.0)],
        "stop_early": [Flag()],
        "keep_descriptors": [Flag()],
        "n_jobs": [Nothing(), Integer(-(1 << 15), 1 << 15)],
        "random_state": [Nothing(), RandomState()],
        "verbose": VERBOSE,
    }
    _fitted: FittedERC
    _kind = FittedERC

    def _checked_query(self, X: Any) -> tuple[Self, npt.NDArray[Any]]:
        """A copy of the forest for this call, and descriptors."""
        reader = self._frozen_copy()
        check_is_fitted(reader)
        return reader, reader._checked_descriptors(X)

    def _coding_copy(self) -> Self:
        """A copy that later training does not affect, without the training descriptors."""
        reader: Self = self._frozen_copy()
        reader._fitted = reader._fitted.without_descriptors()
        return reader

    def _coder(self) -> FittedERC:
        return self._fitted.without_descriptors()

    def _checked_descriptors(self, rows: Any) -> Any:
        """Descriptors; values are checked when they are coded."""
        return validate_rows(self, rows, reset=False, ensure_all_finite=False)

    def predict_proba(self, D: Any) -> npt.NDArray[np.float64]:
        """Predict class probabilities from the class shares of the words.

        The probabilities are the mean over all trees. For an image, they are also the mean over its
        descriptors, or all equal if it has none.

        Parameters
        ----------
        D : array-like of shape (n_descriptors, n_features), or descriptors of each image
            Descriptors, as in :meth:`fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_descriptors, n_classes) or (n_images, n_classes)
            One column per class, in the order of ``classes_``.

        Examples
        --------
        >>> from evergrow import ERCForest
        >>> forest = ERCForest(2, random_state=0).fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> forest.predict_proba([[9.5]])
        array([[0., 1.]])
        """
        rows, _ = as_rows(D)
        reader, checked = self._checked_query(rows)
        if reader._fitted.labels is None:
            raise InvalidInputError(
                "the forest was fitted without labels and cannot predict classes"
            )
        votes = reader._fitted.probabilities(checked, effective_n_jobs(self.n_jobs))
        return _mean_per_image(votes, as_images(D)) if is_ragged(D) else votes

    def predict(self, D: Any) -> npt.NDArray[Any]:
        """Predict the most probable class of each descriptor or image.

        Parameters
        ----------
        D : array-like of shape (n_descriptors, n_features), or descriptors of each image
            Descriptors, as in :meth:`fit`.

        Returns
        -------
        classes : ndarray of shape (n_descriptors,) or (n_images,)
            The class with the highest probability of :meth:`predict_proba`. If classes are equally
            probable, the one that comes first in ``classes_``.

        Examples
        --------
        >>> from evergrow import ERCForest
        >>> forest = ERCForest(2, random_state=0).fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> forest.predict([[[1.0], [0.5], [9.0]], [[8.0]]])
        array([0, 1])
        """
        reader = self._frozen_copy()
        best = reader.predict_proba(D).argmax(axis=1)
        return np.asarray(reader.classes_[best])

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes, in the order of the columns of :meth:`predict_proba`."""
        labels = self._require_fitted("classes_").labels
        if labels is None:
            raise AttributeError("the forest was fitted without labels, so it has no classes_")
        return cast("npt.NDArray[Any]", labels.classes)

    @property
    def words_per_tree_(self) -> npt.NDArray[np.int64]:  # type: ignore[override]
        """Number of leaves of each tree."""
        return cast("FittedERC", self._require_fitted("words_per_tree_")).words_per_tree

    @property
    def word_columns_(self) -> npt.NDArray[np.int64]:
        """The column of each word in a histogram, tree by tree."""
        return cast("FittedERC", self._require_fitted("word_columns_")).columns.copy()

    @property
    def word_shares_(self) -> npt.NDArray[np.float64]:
        """The share of each class among the training descriptors of each word."""
        return cast("FittedERC", self._require_fitted("word_shares_")).word_shares

    @property
    def max_trials_(self) -> int:
        """The number of trials that was used."""
        return int(self._require_fitted("max_trials_").max_trials)

    def _stored_value(self, inference_only: bool) -> FittedERC:
        return self._fitted.without_descriptors() if inference_only else self._fitted

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:
        # The actual number; the parameter may have been changed for the next fit.
        n_trees = len(self._fitted.words_per_tree)
        return {**super()._stored_parameters(inference_only), "n_estimators": n_trees}

    @classmethod
    def _read_parameters(cls, entries: dict[str, Any], fitted: FittedERC) -> dict[str, Any]:
        if entries.get("n_estimators") != len(fitted.words_per_tree):
            raise ModelFileError("the model file is inconsistent: its number of trees is different")
        return entries

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn whether fitting needs labels."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(self.supervised)
        tags.transformer_tags.preserves_dtype = []
        return tags


def _mean_per_image(
    votes: npt.NDArray[np.float64], images: RaggedArray | ShardImages
) -> npt.NDArray[np.float64]:
    n_classes = votes.shape[1]
    mean = np.full((len(images), n_classes), 1.0 / n_classes)
    some = images.lengths > 0
    # reduceat sums from one offset to the next, so images without rows are left out.
    sums = np.add.reduceat(votes, images.offsets[:-1][some], axis=0)
    mean[some] = sums / images.lengths[some][:, None]
    return mean
