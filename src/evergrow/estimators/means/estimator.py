"""Predicting with class means, and keeping them in files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from evergrow.estimators.classifier.scoring import ScoringClassifier, as_decision, unchanged
from evergrow.estimators.means.distances import DISTANCES, Distance, Learnt
from evergrow.estimators.means.fitted import FittedMeans, Planes, moments_from_file
from evergrow.estimators.means.metric import NCMMetric
from evergrow.estimators.sums.moments import Moments
from evergrow.estimators.sums.moments_file import moments_to_tensors
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Choice, Flag, Number, Rule, check_parameters
from evergrow.storage.files import write_model
from evergrow.storage.modelfile import (
    Build,
    arrays_inside,
    class_list,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)

__all__ = ["MeansClassifier", "fitted_means"]

_PREFIX = "metric."


@dataclass(frozen=True)
class _Metric:
    """A metric to learn."""

    def admits(self, value: object) -> bool:
        """Tell whether the value follows the rule."""
        return isinstance(value, NCMMetric)

    def __str__(self) -> str:
        """Say what is allowed."""
        return "an NCMMetric"


class MeansClassifier(ScoringClassifier):
    """Fitted class means as an estimator; the subclass adds parameters and training."""

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "metric": [Choice(tuple(DISTANCES)), _Metric()],
        "shrinkage": [Number(0.0, 1.0)],
        "keep_class_statistics": [Flag()],
    }

    metric: str | NCMMetric
    shrinkage: float
    keep_class_statistics: bool
    metric_: NCMMetric
    _fitted: FittedMeans

    @property
    def means_(self) -> npt.NDArray[np.float64]:
        """Class means, Eq. (1) of Ristin 2014, shape (n_classes, n_features).

        Not a number for a class without examples.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> NCMClassifier().fit([[0, 0], [2, 0], [8, 8]], ["a", "a", "b"]).means_
        array([[1., 0.],
               [8., 8.]])
        """
        moments = self._learnt("means_").moments
        means: npt.NDArray[np.float64] = moments.means.copy()
        means[moments.class_examples == 0] = np.nan
        return means

    @property
    def class_counts_(self) -> npt.NDArray[np.int64]:
        """Number of examples of each class, shape (n_classes,).

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> NCMClassifier().fit([[0], [2], [8]], ["a", "a", "b"]).class_counts_
        array([2, 1])
        """
        examples: npt.NDArray[np.int64] = self._learnt("class_counts_").moments.class_examples
        return examples.copy()

    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Scores of the classes: logarithms of their probabilities up to a number per example.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Minus half the squared distance from each mean, but for a number that all classes
            share; minus infinity for a class without examples. For two classes the score of the
            second minus that of the first.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[-1], [1], [9], [11]], ["a", "a", "b", "b"])
        >>> means.decision_function([[4], [5], [6]])
        array([-10.,   0.,  10.])
        """
        reader, X = self._checked_query(X)
        return as_decision(reader._finished(X, unchanged))

    def _score_blocks(self, X: npt.NDArray[Any]) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
        return self._travelling_scores().blocks(X)

    def _travelling_scores(self) -> Planes:
        return self._fitted.planes(self._distance())

    def _fit_scores(self, X: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return self._fitted.fit_scores(X, self._distance())

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Class probabilities: all classes equally likely and equally wide around their means.

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
        return reader._finished(X, partial(softmax, axis=1))

    def predict_log_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Logarithm of the class probabilities, also where those are too small for a number.

        Examples
        --------
        >>> from evergrow import NCMClassifier
        >>> means = NCMClassifier().fit([[-1], [1], [9], [11]], ["a", "a", "b", "b"])
        >>> means.predict_log_proba([[1000]]).round()
        array([[-9950.,     0.]])
        """
        reader, X = self._checked_query(X)
        return reader._finished(X, partial(log_softmax, axis=1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that :func:`evergrow.load` reads.

        The file holds the sums over all examples, so that training goes on after loading as if
        nothing had happened; it holds no example itself.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced whole or not at all.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> means = evergrow.NCMClassifier().fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.evergrow")
        ...     means.save(path)
        ...     evergrow.load(path).predict([[9]])
        array([1])
        """
        write_model(path, *self._to_file())

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays of a model file, or of a part of another model's file."""
        reader = self._checked_to_save()
        # Else the file could not be loaded: its sums would not suit its parameters.
        fitted = reader._checked_known("model to save")
        parameters = plain_parameters(reader.get_params(deep=False))
        tensors = moments_to_tensors(fitted.moments)
        learnt = None
        if isinstance(reader.metric, NCMMetric):
            options = plain_parameters(reader.metric.get_params(deep=False))
            check_parameters(options, NCMMetric._rules)
            parameters["metric"] = {"estimator": NCMMetric.__name__, "parameters": options}
        if hasattr(reader, "metric_"):
            learnt, arrays = reader.metric_._to_file()
            tensors |= {_PREFIX + name: array for name, array in arrays.items()}
        header = {**common_header(reader, parameters, fitted.labels), "metric": learnt}
        return header, tensors

    @classmethod
    def _from_file(
        cls, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], build: Build
    ) -> Self:
        parameters = dict(parameters_of(header))
        if isinstance(parameters.get("metric"), dict):
            parameters["metric"] = _metric_from_json(parameters["metric"])
        check_parameters({**cls().get_params(deep=False), **parameters}, cls._rules)
        estimator = cls(**parameters)
        learnt = _learnt_metric(header, tensors, build)
        if isinstance(estimator.metric, NCMMetric) != (learnt is not None):
            raise ModelFileError("the model file is inconsistent: it lacks its learnt metric")
        labels = class_list(header)
        moments = moments_from_file(
            tensors, labels, gram=estimator._needs_gram(), per_class=estimator._needs_class_grams()
        )
        if learnt is not None and learnt.components_.shape[1] != moments.n_features:
            raise ModelFileError("the model file is inconsistent: its metric has other features")
        names = feature_names(header, moments.n_features)
        fitted = fitted_means(labels, moments, learnt)
        if fitted.learnt is not None:
            with np.errstate(all="ignore"):
                are_finite = fitted.planes(fitted.learnt).are_finite
            if not are_finite:
                raise ModelFileError("the model file is inconsistent: its metric gives no numbers")
        estimator._become(fitted, names, metric_=learnt)
        return estimator

    def _checked_known(self, what: str) -> FittedMeans:
        """What was learnt, if it was learnt with the parameters that count now."""
        known: FittedMeans = self._learnt(what)
        has_gram = known.moments.settled is not None
        is_learnt = known.learnt is not None
        if has_gram != self._needs_gram() or is_learnt != isinstance(self.metric, NCMMetric):
            raise ValueError(
                f"metric is {self.metric!r} but the model was trained with another: "
                "fit again to change it"
            )
        if (known.moments.class_settled is not None) != self._needs_class_grams():
            raise ValueError(
                f"keep_class_statistics is {self.keep_class_statistics} but the model was trained "
                "otherwise: fit again to change it"
            )
        return known

    def _needs_gram(self) -> bool:
        return DISTANCES[self.metric] if isinstance(self.metric, str) else False

    def _needs_class_grams(self) -> bool:
        return self._needs_gram() and bool(self.keep_class_statistics)

    def _distance(self) -> Distance:
        """How to measure, by what was learnt and the shrinkage as it is now."""
        check_parameters({"shrinkage": self.shrinkage}, {"shrinkage": self._rules["shrinkage"]})
        return self._fitted.distance(float(self.shrinkage))


def fitted_means(labels: ClassList, moments: Moments, metric: NCMMetric | None) -> FittedMeans:
    """What there is to predict with."""
    return FittedMeans(labels, moments, None if metric is None else Learnt(metric.components_))


def _metric_from_json(entry: dict[str, Any]) -> NCMMetric:
    parameters = entry.get("parameters")
    if entry.get("estimator") != NCMMetric.__name__ or not isinstance(parameters, dict):
        raise ModelFileError("the model file has a damaged parameter: metric")
    return NCMMetric._from_parameters(parameters)


def _learnt_metric(
    header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], build: Build
) -> NCMMetric | None:
    entry = header.get("metric")
    if entry is None:
        return None
    if not isinstance(entry, dict) or entry.get("estimator") != NCMMetric.__name__:
        raise ModelFileError("the model file is inconsistent: its metric is of an unknown kind")
    metric = build(entry, arrays_inside(tensors, _PREFIX))
    assert isinstance(metric, NCMMetric)  # noqa: S101
    return metric
