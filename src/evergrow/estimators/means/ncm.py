"""The nearest class mean classifier [Ristin2014 Eq. 1, 2]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax
from sklearn.base import clone

from evergrow.estimators.classifier.persistence import ModelContent
from evergrow.estimators.classifier.predictor import as_decision, identity
from evergrow.estimators.means.distances import DISTANCES, Distance
from evergrow.estimators.means.fitted import FittedMeans, LinearScores
from evergrow.estimators.means.ncm_metric import NCMMetric
from evergrow.estimators.means.serialization import (
    fitted_from_arrays,
    fitted_to_arrays,
    metric_from_json,
    metric_to_json,
)
from evergrow.estimators.sums.accumulation import add_examples, iter_batches
from evergrow.estimators.sums.changes import (
    check_examples_left,
    remove_classes,
    subtract_examples,
)
from evergrow.estimators.sums.learner import SumsLearner
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Choice, Flag, Number, Rule, check_parameters
from evergrow.storage.modelfile import (
    Build,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _IsMetric:
    """Rule: a metric to learn."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return isinstance(value, NCMMetric)

    def __str__(self) -> str:
        """Describe the allowed values."""
        return "an NCMMetric"


class NCMClassifier(SumsLearner):
    """Classifier that predicts the class with the nearest mean.

    A new class is a new mean and does not change any other, so this classifier learns and grows
    faster than all others here. It keeps only sums over the examples. So the model does not depend
    on their order, up to rounding, and examples can be forgotten and models merged exactly.

    Parameters
    ----------
    metric : {"euclidean", "mahalanobis"} or NCMMetric, default="euclidean"
        The distance from a mean. ``"euclidean"`` keeps class means only. ``"mahalanobis"`` also
        keeps the covariance of the features within classes, one matrix that all classes share
        (linear discriminant analysis). It is more accurate on nearly all image features.
        ``NCMMetric()`` learns a projection from the data of :meth:`fit`, or of the first
        :meth:`partial_fit`, which should have as many classes as possible. It is more accurate
        still, but does not change later, and suits later classes less well.
    shrinkage : float, default=0.1
        For ``"mahalanobis"``: how much the covariance is shrunk towards its diagonal, from 0 to 1.
        Use more for few examples of many features, such as 0.3 if there are not many times more
        examples than features. With 0, examples must vary in every direction. May change at any
        time.
    keep_class_statistics : bool, default=False
        For ``"mahalanobis"``: keep one covariance per class too, so that whole classes can be
        forgotten without their examples. Needs ``n_features ** 2`` numbers per class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    means_ : ndarray of shape (n_classes, n_features)
        Class means; not a number for a class without examples.
    class_counts_ : ndarray of shape (n_classes,)
        Number of examples of each class.
    metric_ : NCMMetric
        The learnt metric, if there is one.
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

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "metric": [Choice(tuple(DISTANCES)), _IsMetric()],
        "shrinkage": [Number(0.0, 1.0)],
        "keep_class_statistics": [Flag()],
    }

    metric_: NCMMetric
    _fitted: FittedMeans

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

    @property
    def means_(self) -> Floats:
        """Class means [Ristin2014 Eq. 1], of shape (n_classes, n_features).

        Not a number for a class without examples.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> NCMClassifier().fit([[0, 0], [2, 0], [8, 8]], ["a", "a", "b"]).means_
        array([[1., 0.],
               [8., 8.]])
        """
        moments: Moments = self._require_fitted("means_").moments
        means = moments.means.copy()
        means[moments.class_examples == 0] = np.nan
        return means

    @property
    def class_counts_(self) -> npt.NDArray[np.int64]:
        """Number of examples of each class, of shape (n_classes,).

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> NCMClassifier().fit([[0], [2], [8]], ["a", "a", "b"]).class_counts_
        array([2, 1])
        """
        moments: Moments = self._require_fitted("class_counts_").moments
        return moments.class_examples.copy()

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """Compute the scores of the classes: log-probabilities up to a number per example.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Minus half the squared distance from each mean, up to a number that all classes share;
            minus infinity for a class without examples. For two classes the score of the second
            minus that of the first.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[-1], [1], [9], [11]], ["a", "a", "b", "b"])
        >>> means.decision_function([[4], [5], [6]])
        array([-10.,   0.,  10.])
        """
        reader, X = self._checked_query(X)
        return as_decision(reader._map_scores(X, identity))

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Predict class probabilities, with equal priors and equal spread of all classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``; 0 for a class without examples.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[-1], [1], [9], [11]], ["a", "a", "b", "b"])
        >>> means.predict_proba([[5]])
        array([[0.5, 0.5]])
        """
        reader, X = self._checked_query(X)
        return reader._map_scores(X, partial(softmax, axis=1))

    def predict_log_proba(self, X: npt.ArrayLike) -> Floats:
        """Predict the logarithm of the class probabilities, without underflow.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[-1], [1], [9], [11]], ["a", "a", "b", "b"])
        >>> means.predict_log_proba([[1000]]).round()
        array([[-9950.,     0.]])
        """
        reader, X = self._checked_query(X)
        return reader._map_scores(X, partial(log_softmax, axis=1))

    def _begin(self, labels: ClassList, new: Batch) -> FittedMeans:
        none = Moments.none(
            new.rows.shape[1],
            len(labels),
            gram=self._needs_gram(),
            per_class=self._needs_class_grams(),
        )
        moments, _ = add_examples(none, new)
        learnt = None
        if isinstance(self.metric, NCMMetric):
            learnt = clone(self.metric).fit(new.rows, new.codes, new.weights)
        return FittedMeans(labels, moments, learnt)

    def _extend(self, known: FittedMeans, labels: ClassList, new: Batch) -> FittedMeans:
        moments, _ = add_examples(known.moments.with_classes(len(labels)), new)
        return replace(known, labels=labels, moments=moments)

    def _forget(self, known: FittedMeans, gone: Batch) -> FittedMeans:
        moments = subtract_examples(known.labels, known.moments, iter_batches(gone))
        check_examples_left(moments)
        return replace(known, moments=moments)

    def _forget_classes(self, known: FittedMeans, columns: list[int]) -> FittedMeans:
        check_examples_left(known.moments, columns)
        labels, _, moments = remove_classes(known.labels, known.moments, columns)
        return replace(known, labels=labels, moments=moments)

    def _rename(self, known: FittedMeans, names: Mapping[Any, Any]) -> FittedMeans:
        labels, columns = known.labels.renamed(names)
        return replace(known, labels=labels, moments=known.moments.relabel(columns, len(labels)))

    def _merge(self, known: FittedMeans, other: FittedMeans) -> FittedMeans:
        labels, columns = known.labels.extend(other.labels.classes)
        moments = known.moments.merged(other.moments, columns.tolist(), len(labels))
        return replace(known, labels=labels, moments=moments)

    def _differences(self, known: FittedMeans, other: FittedMeans) -> list[str]:
        if known.n_features != other.n_features:
            return ["the number of features"]
        # The shrinkage may differ: it does not affect the sums.
        if type(known.distance(0.0)) is not type(other.distance(0.0)):
            return ["metric"]
        if known.metric is not None and other.metric is not None:
            same = np.array_equal(known.metric.components_, other.metric.components_)
            return [] if same else ["the learnt metric (learn one NCMMetric before both models)"]
        per_class = [fitted.moments.class_settled is not None for fitted in (known, other)]
        return [] if per_class[0] == per_class[1] else ["keep_class_statistics"]

    def _check_unchanged(self, known: FittedMeans, action: str) -> None:  # noqa: ARG002
        has_gram, is_learnt = known.moments.settled is not None, known.metric is not None
        if has_gram != self._needs_gram() or is_learnt != isinstance(self.metric, NCMMetric):
            raise InvalidInputError(
                f"metric is {self.metric!r} but the model was trained with another one: "
                "fit again to change it"
            )
        if (known.moments.class_settled is not None) != self._needs_class_grams():
            raise InvalidInputError(
                f"keep_class_statistics is {self.keep_class_statistics} but the model was trained "
                "with another value: fit again to change it"
            )

    def _set_fitted(self, fitted: Any, names: npt.NDArray[Any] | None, **learnt: Any) -> None:
        super()._set_fitted(fitted, names, metric_=fitted.metric, **learnt)

    def _needs_gram(self) -> bool:
        return DISTANCES[self.metric] if isinstance(self.metric, str) else False

    def _needs_class_grams(self) -> bool:
        return self._needs_gram() and bool(self.keep_class_statistics)

    def _distance(self) -> Distance:
        """Return the distance for the current shrinkage."""
        check_parameters({"shrinkage": self.shrinkage}, {"shrinkage": self._rules["shrinkage"]})
        return self._fitted.distance(float(self.shrinkage))

    def _portable_scores(self) -> LinearScores:
        return self._fitted.scores(self._distance())

    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        return self._portable_scores().blocks(X)

    def _fit_scores(self, X: npt.NDArray[Any]) -> Floats:
        return self._fitted.fit_scores(X, self._distance())

    def _to_file(self) -> ModelContent:
        reader = self._checked_to_save()
        # The file could not be loaded if its sums did not suit its parameters.
        reader._check_unchanged(reader._fitted, "save")
        parameters = plain_parameters(reader.get_params(deep=False))
        if isinstance(reader.metric, NCMMetric):
            parameters["metric"] = metric_to_json(reader.metric)
        learnt, arrays = fitted_to_arrays(reader._fitted)
        return {**common_header(reader, parameters, reader._fitted.labels), **learnt}, arrays

    @classmethod
    def _from_file(
        cls, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], build: Build
    ) -> Self:
        parameters = dict(parameters_of(header))
        if isinstance(parameters.get("metric"), dict):
            parameters["metric"] = metric_from_json(parameters["metric"])
        check_parameters({**cls().get_params(deep=False), **parameters}, cls._rules)
        estimator = cls(**parameters)
        fitted = fitted_from_arrays(
            header,
            tensors,
            build,
            metric=isinstance(estimator.metric, NCMMetric),
            gram=estimator._needs_gram(),
            per_class=estimator._needs_class_grams(),
        )
        estimator._set_fitted(fitted, feature_names(header, fitted.n_features))
        return estimator
