"""Learning from weighted examples: what least squares, class means and rejection share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.estimators.classifier.predictor import ScoringClassifier
from evergrow.estimators.sums.accumulation import check_weights
from evergrow.estimators.sums.changes import check_forget_arguments
from evergrow.estimators.sums.moments import Batch
from evergrow.foundation.device import translate_full
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.locks import exclusive

Method = Literal["fit", "partial_fit"]


class Examples(NamedTuple):
    """The arguments of one call; rows and labels are checked, unless they are the first."""

    X: Any
    y: Any
    sample_weight: npt.ArrayLike | None
    classes: npt.ArrayLike | None = None


class ExampleLearner(GrowingClassifier):
    """A classifier that learns and forgets weighted examples; subclasses say how."""

    @abstractmethod
    def _start(self, given: Examples, method: Method) -> Self:
        """Learn the first examples, in a call of ``method``."""

    @abstractmethod
    def _learn_more(self, known: Any, given: Examples) -> Any:
        """Return the fitted value with more examples."""

    @abstractmethod
    def _forget(self, known: Any, given: Examples) -> Any:
        """Return the fitted value without examples; a ``ValueError`` if they were not learnt."""

    @abstractmethod
    def _forget_classes(self, known: Any, columns: list[int]) -> Any:
        """Return the fitted value without classes and their columns."""

    @abstractmethod
    def _rename(self, known: Any, names: Mapping[Any, Any]) -> Any:
        """Return the fitted value with other names; equal new names become one class."""

    @exclusive
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train on examples and their classes, replacing everything learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: an array of floats or integers, which may be memory-mapped or read-only, a
            DataFrame, or :class:`evergrow.Shards`.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples, at least 0; None gives each a weight of 1. An example of weight
            2 counts as two equal examples, one of weight 0 as none.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> X = [[0, 0], [0, 1], [9, 8], [9, 9]]
        >>> NCMClassifier().fit(X, ["cat", "cat", "dog", "dog"]).predict([[8, 8]])
        array(['dog'], dtype='<U3')
        """
        self._check_parameters()
        return self._start(Examples(X, y, sample_weight), "fit")

    @exclusive
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add examples of known and new classes.

        The first call on a new estimator trains it. Known classes keep their columns. New classes
        are sorted and get the next columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            Classes, of the same kind (numbers or strings) as the known ones.
        classes : array-like, default=None
            Classes that get a column before their first example; they are not predicted until then.
            Not needed, because new classes may come in any call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, as in :meth:`fit`.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().partial_fit([[0, 0], [9, 9]], ["b", "c"])
        >>> means = means.partial_fit([[0, 9]], ["a"])
        >>> means.classes_, means.predict([[1, 9]])
        (array(['b', 'c', 'a'], dtype='<U1'), array(['a'], dtype='<U1'))
        """
        if not self.__sklearn_is_fitted__():
            self._check_parameters()
            return self._start(Examples(X, y, sample_weight, classes), "partial_fit")
        known = self._known("update")
        given = Examples(*self._checked_more(X, y), sample_weight, classes)
        return self._replace(self._learn_more(known, given))

    @exclusive
    def forget(
        self,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        *,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Remove examples or whole classes, as if they had never been learnt.

        Pass examples as `X` and `y`, or whole classes as `classes`, or both. A class in `classes`
        loses its column; the other columns keep their order. If all examples of a class are removed
        one by one, the class keeps its column but is not predicted any more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Features of the examples to remove, exactly as they were learnt.
        y : array-like of shape (n_samples,), default=None
            Classes of these examples.
        classes : array-like, default=None
            Classes to remove. :class:`~evergrow.RLSClassifier`, and
            :class:`~evergrow.NCMClassifier` with ``metric="mahalanobis"``, need
            ``keep_class_statistics=True`` for it, unless all examples of the class were removed
            before or are in `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights with which the examples were learnt.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Raises
        ------
        ValueError
            If more examples of a class are given than were learnt, if the sums show that some of
            them were never learnt, or if no examples would be left.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[0], [4], [5], [9]], ["a", "a", "b", "c"])
        >>> means.forget([[4]], ["a"]).means_.ravel()
        array([0., 5., 9.])
        >>> means.forget(classes=["b"]).classes_
        array(['a', 'c'], dtype='<U1')
        """
        known = self._known("forget")
        check_forget_arguments(known.labels, X, y, classes, sample_weight)
        if X is not None and y is not None:
            known = self._forget(known, Examples(*self._checked_more(X, y), sample_weight))
        if classes is not None:
            removed = sorted(set(known.labels.columns_of(as_classes(classes).tolist())))
            known = self._forget_classes(known, removed)
        return self._replace(known)

    @exclusive
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Rename classes; classes that get the same name are merged.

        Parameters
        ----------
        names : mapping
            Old name to new name, of the same kind (numbers or strings). Classes that get the same
            name, or the name of an existing class, are merged into the first of their columns.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[0], [5], [8]], ["a", "b", "c"])
        >>> means.rename_classes({"a": "x", "c": "x"}).classes_, means.means_.ravel()
        (array(['x', 'b'], dtype='<U1'), array([4., 5.]))
        """
        return self._replace(self._rename(self._known("rename"), names))

    def _known(self, action: str) -> Any:
        """Return the fitted value if this action can change it under the current parameters."""
        self._check_parameters()
        return self._require_fitted(f"model to {action}")

    def _replace(self, fitted: Any) -> Self:
        self._set_fitted(fitted, getattr(self, "feature_names_in_", None))
        return self


class SumsRequest(Protocol):
    """The parameters of one call, frozen."""

    @classmethod
    def of(cls, estimator: Any, /) -> Self:
        """Copy the parameters from an estimator."""

    def check(self, known: Any, action: str, /) -> None:
        """Raise a ``ValueError`` if a fitted value does not suit the parameters."""


class SumsLearner(ExampleLearner, ScoringClassifier):
    """A classifier that learns sums over examples.

    Sums do not depend on the order of the examples, examples can be subtracted again, and sums of
    different models add up. So learning, forgetting and merging are exact. The fitted value, a
    :class:`~evergrow.estimators.sums.changes.FittedSums`, says how it changes.
    """

    # The class of the parameters of one call.
    _request: ClassVar[type[SumsRequest]]

    @abstractmethod
    def _begin(self, labels: ClassList, new: Batch) -> Any:
        """Return the fitted value for the first examples."""

    @translate_full()
    def _start(self, given: Examples, method: Method) -> Self:  # noqa: ARG002
        X, y, names = self._checked_first(given.X, given.y, min_samples=1)
        X, y, weights = check_weights(X, y, given.sample_weight)
        labels, codes = self._first_labels(y, given.classes)
        self._set_fitted(self._begin(labels, Batch(X, codes, weights)), names)
        return self

    @translate_full()
    def _learn_more(self, known: Any, given: Examples) -> Any:
        request = self._checked_request(known, "update")
        X, y, weights = check_weights(given.X, given.y, given.sample_weight)
        labels, codes = known.labels.extend_with(y, as_classes(given.classes))
        return known.extend(labels, Batch(X, codes, weights), request)

    @translate_full()
    def _forget(self, known: Any, given: Examples) -> Any:
        request = self._checked_request(known, "forget")
        X, y, weights = check_weights(given.X, given.y, given.sample_weight)
        present, inverse = ClassList.of(y)
        columns = np.array(known.labels.columns_of(present.classes.tolist()), dtype=np.int32)
        return known.forget(Batch(X, columns[inverse], weights), request)

    @translate_full()
    def _forget_classes(self, known: Any, columns: list[int]) -> Any:
        return known.forget_classes(columns, self._checked_request(known, "forget"))

    @translate_full()
    def _rename(self, known: Any, names: Mapping[Any, Any]) -> Any:
        return known.rename(names, self._checked_request(known, "rename"))

    def _checked_request(self, known: Any, action: str) -> SumsRequest:
        """Return the parameters of this call; a ``ValueError`` if they do not suit the value."""
        request = self._request.of(self)
        request.check(known, action)
        return request

    def _is_same_kind(self, other: object) -> bool:
        # The class of the request tells the kind, also for a model that is not fitted.
        return isinstance(other, SumsLearner) and other._request is self._request

    @exclusive
    @translate_full()
    def merge(self, other: Self) -> Self:
        """Add everything that another model has learnt, as if this one had learnt its examples.

        Parameters
        ----------
        other : estimator
            A fitted estimator of the same type, with the same features and the same parameters on
            which its sums depend, such as the metric or the seed of random features. It may know
            other classes. It is not changed.

        Returns
        -------
        self : estimator
            The merged estimator; unchanged if an error is raised. Known classes keep their columns.
            New classes are sorted and get the next columns.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> here = NCMClassifier().fit([[0], [8]], ["cat", "dog"])
        >>> there = NCMClassifier().fit([[2], [20]], ["cat", "ant"])
        >>> here.merge(there).classes_, here.means_.ravel()
        (array(['cat', 'dog', 'ant'], dtype='<U3'), array([ 1.,  8., 20.]))
        """
        known = self._known("merge")
        request = self._checked_request(known, "merge")
        if not self._is_same_kind(other):
            kind = type(self).__name__
            raise InvalidTypeError(f"merge needs another {kind}, got {type(other).__name__}")
        reader = other._frozen_copy()
        theirs = reader._known("merge")
        reader._checked_request(theirs, "merge")
        differing = known.differences(theirs)
        names = [list(getattr(model, "feature_names_in_", [])) for model in (self, reader)]
        # A model without names may well have the same features.
        if all(names) and names[0] != names[1]:
            differing.append("the names of the features")
        if differing:
            raise InvalidInputError(f"cannot merge models that differ in {', '.join(differing)}")
        return self._replace(known.merge(theirs, request))
