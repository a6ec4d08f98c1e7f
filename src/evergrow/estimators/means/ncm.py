"""The nearest class mean classifier: taught, corrected and merged exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from evergrow.estimators.means.columns import differences, merge, rename
from evergrow.estimators.means.estimator import MeansClassifier, fitted_means
from evergrow.estimators.means.fitted import FittedMeans
from evergrow.estimators.means.metric import NCMMetric
from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.examples import add_examples, mapped_batches, weighted
from evergrow.estimators.sums.forgetting import (
    check_forget_arguments,
    check_something_left,
    without_classes,
    without_examples,
)
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.turns import one_at_a_time

__all__ = ["NCMClassifier"]


class NCMClassifier(MeansClassifier):
    """A class is the mean of its examples; an example belongs to the nearest mean.

    The quickest classifier here to teach, and the easiest to extend: a new class is a new mean and
    moves no other. Whatever the order of the examples and however they come in calls, the model
    is the same to rounding; examples can be taken out again, and models taught in different places
    add up to one.

    Parameters
    ----------
    metric : {"euclidean", "mahalanobis"} or NCMMetric, default="euclidean"
        What "near" means. ``"euclidean"`` keeps class means only. ``"mahalanobis"`` also keeps how
        features vary together within classes, ``n_features ** 2`` numbers that all classes share,
        and measures in their units (linear discriminant analysis); it is more accurate on nearly
        all image features. ``NCMMetric()`` learns a projection, more accurate still, from the data
        of :meth:`fit` or of the first :meth:`partial_fit`; it stays as it is when classes are
        added later, and serves those less well than the ones it was learnt from.
    shrinkage : float, default=0.1
        For ``"mahalanobis"``: how far the covariance of the features takes them for independent,
        from 0 to 1, each keeping its own variance. More for few examples of many features: 0.3 if
        there are not many times more examples than features. With 0 there must be enough examples
        to vary in every direction. May change at any time: predictions follow it at once.
    keep_class_statistics : bool, default=False
        For ``"mahalanobis"``: keep the covariance of each class too, so that whole classes can be
        forgotten without their examples. Takes ``n_features ** 2`` numbers per class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    means_ : ndarray of shape (n_classes, n_features)
        Class means; not a number for a class without examples.
    class_counts_ : ndarray of shape (n_classes,)
        Number of examples of each class.
    metric_ : NCMMetric
        The metric that was learnt, if one was.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from evergrow import NCMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> old = y_train < 8
    >>> means = NCMClassifier(metric="mahalanobis").fit(X_train[old], y_train[old])
    >>> means = means.partial_fit(X_train[~old], y_train[~old])
    >>> bool(means.score(X_test, y_test) > 0.94)
    True
    """

    def __init__(
        self,
        *,
        metric: Literal["euclidean", "mahalanobis"] | NCMMetric = "euclidean",
        shrinkage: float = 0.1,
        keep_class_statistics: bool = False,
    ) -> None:
        self.metric = metric
        self.shrinkage = shrinkage
        self.keep_class_statistics = keep_class_statistics

    @one_at_a_time
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train on examples and their classes, forgetting whatever was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: floating point or integers of any size, in any memory order; a DataFrame;
            a memory-mapped or read-only array; :class:`evergrow.Shards`, which are read once, a
            block at a time.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.
        sample_weight : array-like of shape (n_samples,), default=None
            What each example counts; None for 1. An example of weight 2 counts as two, one of
            weight 0 is as good as absent.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> X = [[0, 0], [0, 1], [9, 8], [9, 9]]
        >>> NCMClassifier().fit(X, ["cat", "cat", "dog", "dog"]).predict([[8, 8]])
        array(['dog'], dtype='<U3')
        """
        self._check_parameters()
        self._start(X, y, None, sample_weight)
        return self

    @one_at_a_time
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add examples, of known classes and of new ones.

        Old classes keep their columns; new ones get the next, sorted within the call. A metric to
        learn is learnt on the first call, which should bring as many classes as there are by then,
        and kept from then on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            Classes, of the same kind (numbers or strings) as the known ones.
        classes : array-like, default=None
            Never needed. Classes to give a column now, before any example of them is seen.
        sample_weight : array-like of shape (n_samples,), default=None
            What each example counts, as in :meth:`fit`.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().partial_fit([[0, 0], [9, 9]], ["b", "c"])
        >>> means = means.partial_fit([[0, 9]], ["a"])
        >>> means.classes_, means.predict([[1, 9]])
        (array(['b', 'c', 'a'], dtype='<U1'), array(['a'], dtype='<U1'))
        """
        self._check_parameters()
        if not self.__sklearn_is_fitted__():
            self._start(X, y, classes, sample_weight)
            return self
        known = self._checked_known("classes to add to")
        checked, y = self._checked_more(X, y)
        checked, y, weights = weighted(checked, y, sample_weight)
        labels, codes = known.labels.extend_with(y, as_classes(classes))
        moments = known.moments.with_classes(len(labels))
        self._replace(labels, add_examples(moments, checked, codes, weights))
        return self

    @one_at_a_time
    def forget(
        self,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        *,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Take examples or whole classes out, as if they had never been learnt.

        A class whose examples are all taken out keeps its column and is no longer predicted. A
        class taken out as such loses its column; the other columns keep their order. A learnt
        metric stays as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Examples that were learnt.
        y : array-like of shape (n_samples,), default=None
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            What each counted when it was learnt.
        classes : array-like, default=None
            Classes to forget. With ``metric="mahalanobis"`` this needs
            ``keep_class_statistics=True``, or their examples to be forgotten before.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[0], [4], [5], [9]], ["a", "a", "b", "c"])
        >>> means.forget([[4]], ["a"]).means_.ravel()
        array([0., 5., 9.])
        >>> means.forget(classes=["b"]).classes_
        array(['a', 'c'], dtype='<U1')
        """
        self._check_parameters()
        known = self._checked_known("examples to forget")
        check_forget_arguments(X, y, classes, sample_weight)
        labels, moments = known.labels, known.moments
        gone = sorted(set(labels.columns_of(as_classes(classes).tolist())))
        if X is not None and y is not None:
            moments = self._without_examples(known, X, y, sample_weight)
        check_something_left(moments, gone)
        if gone:
            labels, _, moments = without_classes(labels, moments, gone)
        self._replace(labels, moments)
        return self

    @one_at_a_time
    def merge(self, other: NCMClassifier) -> Self:
        """Add all that another model has learnt, as if this one had learnt it.

        Parameters
        ----------
        other : NCMClassifier
            A model with the same metric and features, taught on other examples, of the
            same classes or others. It stays as it is; feature names must agree where both have
            some. Two models that each learnt a metric of
            their own cannot be merged: learn one :class:`NCMMetric` first, and use it in a
            pipeline before both.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed. Its own columns stay; classes that are new
            to it are appended, sorted.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> here = NCMClassifier().fit([[0], [8]], ["cat", "dog"])
        >>> there = NCMClassifier().fit([[2], [20]], ["cat", "ant"])
        >>> here.merge(there).classes_, here.means_.ravel()
        (array(['cat', 'dog', 'ant'], dtype='<U3'), array([ 1.,  8., 20.]))
        """
        self._check_parameters()
        known = self._checked_known("classes to merge with")
        if not isinstance(other, NCMClassifier):
            raise TypeError(f"merge takes an NCMClassifier, got {type(other).__name__}")
        reader = other._snapshot()
        reader._check_parameters()
        theirs = reader._checked_known("classes to merge")
        differing = differences(known, theirs)
        names = [list(getattr(model, "feature_names_in_", [])) for model in (self, reader)]
        # One without names may well mean the same features.
        if all(names) and names[0] != names[1]:
            differing.append("the names of the features")
        if differing:
            raise ValueError(f"cannot merge models that differ in {', '.join(differing)}")
        self._replace(*merge(known, theirs))
        return self

    @one_at_a_time
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Give classes other names; classes that get one name become one class.

        Parameters
        ----------
        names : mapping
            From old to new names. A class that takes the name of another one joins it: their
            examples then have one mean, in the first of their columns.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[0], [5], [8]], ["a", "b", "c"])
        >>> means.rename_classes({"a": "x", "c": "x"}).classes_, means.means_.ravel()
        (array(['x', 'b'], dtype='<U1'), array([4., 5.]))
        """
        known = self._checked_known("classes to rename")
        self._replace(*rename(known.labels, known.moments, names))
        return self

    def _start(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
    ) -> None:
        checked, y, names = self._checked_first(X, y, min_samples=1)
        checked, y, weights = weighted(checked, y, sample_weight)
        labels, codes = self._first_labels(y, classes)
        none = Moments.none(
            checked.shape[1],
            len(labels),
            gram=self._needs_gram(),
            per_class=self._needs_class_grams(),
        )
        moments = add_examples(none, checked, codes, weights)
        learnt = None
        if isinstance(self.metric, NCMMetric):
            learnt = clone(self.metric).fit(checked, codes, weights)
        self._become(fitted_means(labels, moments, learnt), names, metric_=learnt)

    def _replace(self, labels: ClassList, moments: Moments) -> None:
        learnt = getattr(self, "metric_", None)
        names = getattr(self, "feature_names_in_", None)
        self._become(fitted_means(labels, moments, learnt), names, metric_=learnt)

    def _without_examples(
        self,
        known: FittedMeans,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
    ) -> Moments:
        checked, y = self._checked_more(X, y)
        checked, y, weights = weighted(checked, y, sample_weight)
        present, inverse = ClassList.of(y)
        columns = np.array(known.labels.columns_of(present.classes.tolist()), dtype=np.int32)
        gone = Batch(checked, columns[inverse], weights)
        return without_examples(known.labels, known.moments, mapped_batches(gone))
