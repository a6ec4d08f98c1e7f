"""Fit, update, forget and rename: what changes a forest.

Each call checks its input, asks :mod:`evergrow.estimators.forest.change` for the next fitted value
and replaces the old one. A call that fails or is interrupted changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import validate_weights
from evergrow.estimators.forest.change.addition import add_samples
from evergrow.estimators.forest.change.growth import check_growable, check_has_rows, grow_forest
from evergrow.estimators.forest.change.relabeling import rename_classes
from evergrow.estimators.forest.change.removal import as_ids, forget, refuse_examples
from evergrow.estimators.forest.cluster.driver_grow import resumed_seed
from evergrow.estimators.forest.predictor import ForestPredictor
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.splits import Splits
from evergrow.estimators.forest.value.fitted import FittedForest, ForestBatch
from evergrow.estimators.forest.value.report import UpdateReport
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.locks import exclusive


class ForestLearner(ForestPredictor):
    """Training and updating; subclasses add parameters and what :class:`ForestPredictor` asks."""

    splits: Literal["auto"] | Splits
    random_state: int | np.random.RandomState | None

    @exclusive
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train on samples and their classes, replacing everything learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: an array of floats or integers, which may be memory-mapped or read-only, a
            DataFrame, or :class:`evergrow.Shards`.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, relative to their mean. A weight is the mean number of times
            that a tree uses a sample: with weight 2.5, half of the trees use it twice and the
            others three times. Samples of weight 0 are left out.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> X = [[0, 0], [0, 1], [9, 8], [9, 9]]
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit(X, ["cat", "cat", "dog", "dog"]).predict([[8, 8]])
        array(['dog'], dtype='<U3')
        """
        request = self._request()
        X, y, names = self._checked_first(X, y, min_samples=2)
        X, y, weights = validate_weights(X, y, sample_weight)
        labels, codes = ClassList.of(y)
        self._grow(labels, ForestBatch(X, codes, _first_ids(X), weights), names, request)
        return self

    @exclusive
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add samples of known and new classes.

        The first call on a new estimator trains it. Later calls use the strategy of the parameter
        `update`. Known classes keep their columns. New classes are sorted and get the next ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            Classes, of the same kind (numbers or strings) as the known ones.
        classes : array-like, default=None
            Classes that get a column before their first sample. Not needed, because new classes
            may come in any call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, on the same scale as in the first call. None gives each sample
            the mean weight of the first call.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.partial_fit([[0, 0], [0, 1], [9, 8], [9, 9]], ["b", "b", "c", "c"])
        >>> forest = forest.partial_fit([[0, 8], [0, 9]], ["a", "a"])
        >>> forest.classes_, forest.predict([[1, 9]])
        (array(['b', 'c', 'a'], dtype='<U1'), array(['a'], dtype='<U1'))
        """
        request = self._request()
        if not self.__sklearn_is_fitted__():
            X, y, names = self._checked_first(X, y, min_samples=1)
            X, y, weights = validate_weights(X, y, sample_weight)
            request = request.limited_to(X.shape[0])
            labels, codes = self._first_labels(y, classes)
            self._grow(labels, ForestBatch(X, codes, _first_ids(X), weights), names, request)
            return self
        known = self._fitted
        X, y = self._checked_more(X, y)
        X, y, weights = validate_weights(X, y, sample_weight)
        labels, codes = known.labels.extend_with(y, as_classes(classes))
        check_growable(known, request)
        ids = known.history.n_seen + np.arange(X.shape[0], dtype=np.int64)
        fitted, report = add_samples(known, labels, ForestBatch(X, codes, ids, weights), request)
        self._trained(fitted, ids, report)
        return self

    @exclusive
    def forget(
        self,
        *examples: object,
        classes: npt.ArrayLike | None = None,
        samples: npt.ArrayLike | None = None,
    ) -> Self:
        """Remove classes or single samples from the forest.

        A removed class loses its column and its means. The other columns keep their order. Removed
        samples are deleted, and leaves no longer count them. Leaves that become too small are
        merged with their siblings and grown again. Class means that were computed from a removed
        sample and others do not change until their node changes. So the forest is not the same as
        one that was trained without the samples. ``forget`` of :class:`RLSClassifier` and
        :class:`NCMClassifier` is exact.

        Parameters
        ----------
        *examples : object
            Nothing: a forest cannot forget examples that are given as `X` and `y`, and says so.
        classes : array-like, default=None
            Classes to remove.
        samples : array-like of int, default=None
            Ids of the samples to remove. ``sample_ids_`` has those of the last :meth:`fit` or
            :meth:`partial_fit`, ``stored_ids_`` all of them.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [5], [6], [8], [9]], ["a", "a", "b", "b", "c", "c"])
        >>> forest.forget(classes=["b"]).classes_
        array(['a', 'c'], dtype='<U1')
        >>> forest.forget(samples=[0]).predict([[1]])
        array(['a'], dtype='<U1')
        """
        refuse_examples(self, examples)
        request = self._request()
        known = self._require_fitted("samples to forget")
        if classes is None and samples is None:
            raise InvalidInputError("forget needs classes, samples, or both")
        check_has_rows(known, "forget")
        codes = sorted(set(known.labels.columns_of(as_classes(classes).tolist())))
        ids = as_ids([] if samples is None else samples)
        fitted, report = forget(known, codes, ids, request)
        latest = getattr(self, "sample_ids_", None)
        if latest is not None:
            latest = latest[np.isin(latest, fitted.stored_ids)]
        self._trained(fitted, latest, report)
        return self

    @exclusive
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Rename classes; classes that get the same name are merged.

        Parameters
        ----------
        names : mapping
            Old name to new name, of the same kind (numbers or strings). Classes that get the same
            name, or the name of an existing class, are merged into the first of their columns. If
            the merged class has more samples than ``Storage.per_class``, the next update removes
            some.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [5], [6], [8], [9]], ["a", "a", "b", "b", "c", "c"])
        >>> forest.rename_classes({"a": "x", "c": "x"}).classes_
        array(['x', 'b'], dtype='<U1')
        """
        self._request()
        known = self._require_fitted("classes to rename")
        self._replace(rename_classes(known, names))
        return self

    @exclusive
    def compact(self) -> Self:
        """Free memory that updates left unused; predictions stay the same.

        Updates compact a tree if about a quarter of its memory is unused. This method compacts all
        trees at once and frees the memory and disk space of removed samples. The others are then
        where ``Storage.limit`` says.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier
        >>> forest = NCMForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> forest.compact().predict([[8]])
        array([1])
        """
        request = self._request()
        known = self._require_fitted("trees to compact")
        n_stored = len(known.samples) - known.samples.n_removed
        forest = known.forest.compact(request.storage._folder(n_stored, known.n_features))
        self._replace(replace(known, forest=forest))
        return self

    def _replace(self, fitted: FittedForest) -> None:
        # Everything else that was learnt stays.
        ids, report = getattr(self, "sample_ids_", None), getattr(self, "update_report_", None)
        self._trained(fitted, ids, report)

    def _trained(
        self,
        fitted: FittedForest,
        ids: npt.NDArray[np.int64] | None,
        report: UpdateReport | None,
    ) -> None:
        names = getattr(self, "feature_names_in_", None)
        self._set_fitted(fitted, names, sample_ids_=ids, update_report_=report)

    def _grow(
        self,
        labels: ClassList,
        batch: ForestBatch,
        names: npt.NDArray[Any] | None,
        request: ForestRequest,
    ) -> None:
        seed = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        if self.random_state is None:
            seed = resumed_seed(seed, batch, request, labels)
        fitted, report = grow_forest(labels, batch, seed, request)
        self._set_fitted(fitted, names, sample_ids_=batch.ids, update_report_=report)

    def _check_parameters(self) -> None:
        self._request()

    def _request(self) -> ForestRequest:
        """The parameters of one call; a ``ValueError`` if they are not valid."""
        super()._check_parameters()
        splits = self._kinds[0]() if isinstance(self.splits, str) else self.splits
        return ForestRequest.of(self, splits)


def _first_ids(X: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.arange(X.shape[0], dtype=np.int64)
