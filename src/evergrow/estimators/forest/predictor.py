"""Predict with a forest, explain its predictions, and save it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy.sparse import issparse

from evergrow.estimators.classifier.persistence import InferenceSaveMixin
from evergrow.estimators.classifier.predictor import ScoringClassifier, fill_rows
from evergrow.estimators.forest.explanation import Decision, Explanation, explain_sample
from evergrow.estimators.forest.request import BALANCE_RULES, ClassWeight
from evergrow.estimators.forest.splits import Splits
from evergrow.estimators.forest.value.fitted import FittedForest
from evergrow.estimators.forest.value.serialization import (
    parameters_from_json,
    parameters_to_json,
)
from evergrow.estimators.forest.value.virtual_votes import Balance
from evergrow.foundation.device import find_device
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import check_parameters


class TreePredictor(InferenceSaveMixin, ScoringClassifier):
    """What a forest shares with one of coarse and fine classes: cost, leaves, stored samples."""

    n_jobs: int | None

    @property
    def nbytes(self) -> int:
        """Size of the trees in bytes, without the stored training samples.

        The samples take another 4 bytes per sample and feature, or 2 with
        ``Storage(dtype="float16")``. The number of features is rounded up to a multiple of 16.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).nbytes < 2000
        True
        """
        return int(self._require_fitted("nbytes").nbytes)

    @property
    def stored_ids_(self) -> npt.NDArray[np.int64]:
        """Ids of all samples that the forest stores, for :meth:`forget`.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).forget(samples=[2]).stored_ids_.tolist()
        [0, 1, 3]
        """
        return cast("npt.NDArray[np.int64]", self._require_fitted("stored_ids_").stored_ids)

    @property
    def standardize_(self) -> str:
        """How the features were scaled, ``"whiten"``, ``"scale"`` or ``"none"``.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(3, random_state=0, standardize=False)
        >>> forest.fit([[0, 1], [1, 1], [8, 5], [9, 7]], [0, 0, 1, 1]).standardize_
        'none'
        """
        return str(self._require_fitted("standardize_").standardization.kind)

    @property
    def equal_lengths_(self) -> bool:
        """Whether samples were scaled to nearly the same length.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow import NCMForestClassifier
        >>> X = np.random.default_rng(0).normal(size=(60, 40))
        >>> NCMForestClassifier(3, random_state=0).fit(X, np.arange(60)).equal_lengths_
        True
        """
        return bool(self._require_fitted("equal_lengths_").standardization.equal_lengths)

    def _checked(self, X: npt.ArrayLike) -> tuple[Any, npt.NDArray[Any], int]:
        reader, X = self._checked_query(X)
        return reader._fitted, X, effective_n_jobs(self.n_jobs)

    def _placed(self, X: npt.NDArray[Any]) -> Any:
        """The fitted value, on the device to predict on."""
        device = find_device(X)
        return self._fitted if device is None else self._fitted.on(device)

    def apply(self, X: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Return the leaf that each sample reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        leaves : ndarray of shape (n_samples, n_estimators)
            Index of the leaf within its tree; a tensor if the samples are on a GPU.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).apply([[0], [9]]).shape
        (2, 3)
        """
        reader, X = self._checked_query(X)
        blocks = reader._placed(X).leaf_blocks(X, effective_n_jobs(self.n_jobs))
        return cast("npt.NDArray[np.int32]", fill_rows(X, blocks))

    def comparisons(self, X: npt.ArrayLike) -> float:
        """Return the mean number of comparisons per tree and sample.

        Ristin et al. measure the cost of a prediction in this way [Ristin2014 Sec. 5]. In forests
        of class means, one comparison is the distance from one mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        comparisons : float
            The mean over all trees and samples.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(3, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).comparisons([[0], [9]])
        2.0
        """
        fitted, X, n_threads = self._checked(X)
        return float(fitted.comparisons(X, n_threads) / (X.shape[0] * fitted.n_trees))

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:
        return parameters_to_json(super()._stored_parameters(inference_only))

    @classmethod
    def _read_parameters(cls, entries: dict[str, Any], fitted: Any) -> dict[str, Any]:  # noqa: ARG003
        return parameters_from_json(entries)


class ForestPredictor(TreePredictor):
    """A fitted forest as an estimator; :class:`ForestLearner` adds training."""

    # Kinds of splits that the forest may have; the first one is the default.
    _kinds: ClassVar[tuple[type[Splits], ...]]
    # Describes what a node of this kind of forest did with a sample.
    _decision: ClassVar[type[Decision]]

    _fitted: FittedForest
    _kind = FittedForest
    balance: Balance
    class_weight: ClassWeight

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Predict class probabilities: the mean class frequencies of the leaves.

        This is [Ristin2014 Eq. 4] with two corrections. The first is for classes that arrived after
        some of the trees were grown. If other trees have been grown since, an older
        tree has a weight of only 0.03 in the mean for such a class. It also predicts the class too
        rarely, so its class frequency is multiplied by five before. The second correction
        multiplies the votes for small classes (`balance`). The probabilities of a sample are then
        divided by their sum.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``; a tensor if the samples are on a
            GPU.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict_proba([[9]])
        array([[0., 1.]])
        """
        reader, X = self._checked_query(X)
        return cast("npt.NDArray[np.float64]", fill_rows(X, reader._score_blocks(X)))

    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
        n_threads, balance = effective_n_jobs(self.n_jobs), self._checked_balance()
        blocks = self._placed(X).probability_blocks(X, n_threads, balance=balance)
        return cast("Iterator[tuple[slice, npt.NDArray[np.float64]]]", blocks)

    def _checked_balance(self) -> Balance:
        # May have been set since the last call that checked all parameters.
        check_parameters({"balance": self.balance}, {"balance": BALANCE_RULES})
        # Class weights already set how much each class counts.
        return 0.0 if self.balance == "auto" and self.class_weight is not None else self.balance

    def explain(self, x: npt.ArrayLike) -> Explanation:
        """Show the path of one sample through every tree.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            One sample.

        Returns
        -------
        explanation : Explanation
            For each tree, the decisions of the nodes on the path and the class counts of the leaf.
            A decision says what the node compared: the class means and the distance of the nearest
            one, a feature and its threshold, or the distance from the hyperplane. ``print`` shows
            the explanation as text.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(1, min_samples_leaf=1, random_state=0)
        >>> print(forest.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"]).explain([7]))
        tree 0
        node 0: nearest of 2 means is 'b' at 0.372, goes left
        leaf 1: 'b': 2
        """
        if hasattr(x, "to_frame"):  # a row of a DataFrame
            x = x.to_frame().T.infer_objects()
        elif not hasattr(x, "columns") and not issparse(x):
            x = np.atleast_2d(np.asarray(x))
        fitted, X, _ = self._checked(x)
        if X.shape[0] != 1:
            raise InvalidInputError(f"explain takes one sample, got {X.shape[0]}")
        row = np.ascontiguousarray(X[0], dtype=np.float64)
        return explain_sample(fitted, row, self._decision)

    def _check_suits(self, fitted: FittedForest) -> None:
        if fitted.proposer != self._kinds[0]._proposer:
            raise InvalidInputError(
                f"the trees are those of another kind of forest, {fitted.proposer!r}"
            )

    def _stored_value(self, inference_only: bool) -> Any:
        if not inference_only:
            return self._fitted
        # Without samples the votes could not be found again: such a file holds them.
        n_threads = effective_n_jobs(self.n_jobs)
        return self._fitted.predicting(self._fitted.ballot(self._checked_balance(), n_threads))
