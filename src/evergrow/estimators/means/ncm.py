"""The nearest class mean classifier [Ristin2014 Eq. 1, 2].

Learning adds examples to sums per class: ``partial_fit`` is that of
:mod:`evergrow.estimators.sums.learner`, the sums and means are in
:mod:`evergrow.estimators.sums.moments`. Predicting turns means into scores, in
:mod:`evergrow.estimators.means.fitted`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from evergrow.estimators.classifier.predictor import as_decision, identity, log_softmax, softmax
from evergrow.estimators.means.fitted import IS_METRIC, FittedMeans, LinearScores
from evergrow.estimators.means.ncm_metric import NCMMetric
from evergrow.estimators.sums.accumulation import add_examples, first_shift
from evergrow.estimators.sums.learner import SumsLearner
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Choice, Flag, Number, Rule, check_parameters
from evergrow.storage.models.header import parameters_of, plain_parameters

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MeansRequest:
    """The parameters of one call that decide what is learnt."""

    metric: str | NCMMetric
    keep_class_statistics: bool

    @classmethod
    def of(cls, estimator: Any) -> MeansRequest:
        """Copy the parameters from an estimator."""
        return cls(estimator.metric, estimator.keep_class_statistics)

    @property
    def gram(self) -> bool:
        """Whether the sums include a Gram matrix."""
        return self.metric == "mahalanobis"

    @property
    def per_class(self) -> bool:
        """Whether the sums include a Gram matrix per class."""
        return self.gram and bool(self.keep_class_statistics)

    def check(self, known: FittedMeans, action: str) -> None:  # noqa: ARG002
        """Raise a ``ValueError`` if a fitted value does not suit the parameters."""
        has_gram, is_learnt = known.moments.settled is not None, known.metric is not None
        if has_gram != self.gram or is_learnt != isinstance(self.metric, NCMMetric):
            raise InvalidInputError(
                f"metric is {self.metric!r} but the model was trained with another one: "
                "fit again to change it"
            )
        if (known.moments.class_settled is not None) != self.per_class:
            raise InvalidInputError(
                f"keep_class_statistics is {self.keep_class_statistics} but the model was trained "
                "with another value: fit again to change it"
            )


@dataclass(eq=False, repr=False, kw_only=True)
class NCMClassifier(SumsLearner):
    """Classifier that predicts the class with the nearest mean (NCM); new classes can be added.

    A new class adds a mean and changes no other, so this is the fastest classifier of Evergrow to
    train and to extend. It keeps only sums over the examples. So the time per example is constant,
    the order of the examples does not matter, and :meth:`forget` and :meth:`merge` are exact.

    Parameters
    ----------
    metric : {"euclidean", "mahalanobis"} or NCMMetric, default="euclidean"
        The distance from a class mean:

        - ``"euclidean"`` needs only the class means;
        - ``"mahalanobis"`` divides by the covariance within classes, which all classes share
          (linear discriminant analysis). It is more accurate on nearly all image features;
        - ``NCMMetric()`` learns a projection from the data of :meth:`fit`, or of the first
          :meth:`partial_fit`. It is the most accurate on the classes that it was learnt from. It
          does not change later and suits new classes less well, so the first data should have as
          many classes as possible.
    shrinkage : float, default=0.1
        Only for ``"mahalanobis"``: how much the covariance is shrunk towards its diagonal, from 0
        to 1. Use more, such as 0.3, if there are not many more examples than features. With 0,
        examples must vary in every direction. Can be changed at any time.
    keep_class_statistics : bool, default=False
        Only for ``"mahalanobis"``: whether to keep a covariance for each class too, so that
        :meth:`forget` can remove a class without its examples. This takes ``n_features ** 2``
        numbers per class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    means_ : ndarray of shape (n_classes, n_features)
        Class means; NaN for a class without examples.
    class_counts_ : ndarray of shape (n_classes,)
        Number of examples of each class.
    metric_ : NCMMetric
        The learnt metric; only with ``metric=NCMMetric()``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    See Also
    --------
    RLSClassifier : Least squares, the default learner for images.
    NCMMetric : Learns the metric.
    NCMForestClassifier : A forest whose nodes compare with class means.

    References
    ----------
    T. Mensink, J. Verbeek, F. Perronnin, G. Csurka: *Distance-Based Image Classification:
    Generalizing to New Classes at Near-Zero Cost*, TPAMI 2013. See :doc:`/papers`.

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
        "metric": [Choice(("euclidean", "mahalanobis")), IS_METRIC],
        "shrinkage": [Number(0.0, 1.0)],
        "keep_class_statistics": [Flag()],
    }

    _request = MeansRequest
    _kind = FittedMeans
    _fitted: FittedMeans = field(init=False)
    metric_: NCMMetric = field(init=False)

    metric: Literal["euclidean", "mahalanobis"] | NCMMetric = "euclidean"
    shrinkage: float = 0.1
    keep_class_statistics: bool = False

    @property
    def means_(self) -> Floats:
        """Class means [Ristin2014 Eq. 1], of shape (n_classes, n_features).

        NaN for a class without examples.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> NCMClassifier().fit([[0, 0], [2, 0], [8, 8]], ["a", "a", "b"]).means_
        array([[1., 0.],
               [8., 8.]])
        """
        moments: Moments = self._require_fitted("means_").moments
        means = moments.means + moments.origin
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
        """Compute the score of each class: minus half the squared distance from its mean.

        A constant is added that is the same for all classes and differs between examples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            One column per class. With two classes there is one column: the score of the second
            class minus that of the first. A class without examples has minus infinity.

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
        """Predict class probabilities, assuming that all classes are equally frequent and wide.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

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
        return reader._map_scores(X, softmax)

    def predict_log_proba(self, X: npt.ArrayLike) -> Floats:
        """Predict the logarithm of the class probabilities, without underflow.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            One column per class, in the order of ``classes_``.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[-1], [1], [9], [11]], ["a", "a", "b", "b"])
        >>> means.predict_log_proba([[1000]]).round()
        array([[-9950.,     0.]])
        """
        reader, X = self._checked_query(X)
        return reader._map_scores(X, log_softmax)

    def _begin(self, labels: ClassList, new: Batch) -> FittedMeans:
        request = MeansRequest.of(self)
        none = Moments.none(
            new.rows.shape[1],
            len(labels),
            gram=request.gram,
            per_class=request.per_class,
            shift=first_shift(new.rows),
        )
        moments, _ = add_examples(none, new)
        learnt = None
        if isinstance(self.metric, NCMMetric):
            learnt = clone(self.metric).fit(new.rows, new.codes, new.weights)
        return FittedMeans(labels, moments, learnt)

    def _set_fitted(self, fitted: Any, names: npt.NDArray[Any] | None, **learnt: Any) -> None:
        super()._set_fitted(fitted, names, metric_=fitted.metric, **learnt)

    def _checked_shrinkage(self) -> float:
        check_parameters({"shrinkage": self.shrinkage}, {"shrinkage": self._rules["shrinkage"]})
        return float(self.shrinkage)

    def _portable_scores(self) -> LinearScores:
        return self._fitted.scores(self._checked_shrinkage())

    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, Floats]]:
        return self._portable_scores().blocks(X)

    def _comparable_scores(self, X: npt.NDArray[Any]) -> Floats:
        return self._fitted.fit_scores(X, self._checked_shrinkage())

    def _check_suits(self, fitted: FittedMeans) -> None:
        MeansRequest.of(self).check(fitted, "save")

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:
        parameters = super()._stored_parameters(inference_only)
        if isinstance(self.metric, NCMMetric):
            options = self.metric.get_params(deep=False)
            check_parameters(options, NCMMetric._rules)
            parameters["metric"] = {"parameters": plain_parameters(options)}
        return parameters

    @classmethod
    def _read_parameters(cls, entries: dict[str, Any], fitted: FittedMeans) -> dict[str, Any]:  # noqa: ARG003
        metric = entries.get("metric")
        if not isinstance(metric, dict):
            return entries
        return {**entries, "metric": NCMMetric._from_parameters(parameters_of(metric))}
