"""A classifier that can predict "unknown"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from evergrow.estimators.novelty.calibration import exceeds
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.novelty.learner import RejectionLearner, predicted_labels
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.params import check_parameters
from evergrow.storage.models.header import check_saveable


def _estimator_has(method: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        # Raises an AttributeError that names the wrapped estimator.
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


@dataclass(eq=False, repr=False)
class RejectingClassifier(RejectionLearner):
    """Wrapper that lets a classifier predict "unknown" for examples that fit no class.

    Each example gets a *novelty*: how far it is from all known classes. It is rejected, that is,
    predicted as unknown, if its novelty exceeds ``level_``. The level is calibrated on stored
    examples, so that about a share `false_alarms` of the examples of known classes are rejected.
    With fewer than 20 stored examples nothing is rejected, and ``level_`` is infinite. See
    :doc:`/unknown`.

    New classes can be added with :meth:`partial_fit` if the wrapped estimator can learn them. For
    an estimator of scikit-learn, list all classes in the first call. Sample weights need an
    estimator that accepts them.

    Parameters
    ----------
    estimator : classifier
        The classifier to wrap; it is cloned. :meth:`partial_fit`, :meth:`forget` and
        :meth:`rename_classes` need methods of the same name. If its parameters are changed, they
        take effect with the next update.
    false_alarms : float, default=0.1
        Share of the examples of known classes that may be rejected. A higher share finds more
        unknown examples. Can be changed at any time.
    unknown_label : int, float or str, default=None
        The prediction for rejected examples. It must not be the name of a class. None is
        ``"unknown"`` if classes are strings. If classes are numbers, None is -1, or the next lower
        integer that is not a class. Can be changed at any time.
    measure : {"auto", "cosine", "estimator"}, default="auto"
        The score from which the novelty is computed:

        - ``"auto"`` combines five scores, see Notes. It finds the most unknown examples with
          features of a network, and takes 8 bytes per pair of features.
        - ``"cosine"`` is the cosine to the nearest class mean. Use it for very many features, or if
          all classes should have the same share of false alarms.
        - ``"estimator"`` is the best score of the estimator. Use it if the estimator separates
          classes better than class means do. Linear models may give high scores to unknown
          examples that are far from the decision boundary.
    validation_every : int, default=6
        Only for ``"cosine"`` and ``"estimator"``: every n-th example of each class is stored for
        the calibration. A lower value calibrates better with few examples. With
        ``measure="estimator"`` the estimator never learns these examples.
    max_held_out : int, default=2000
        Maximum number of stored examples: a uniform sample of each class, in equal shares and at
        least one per class. They take 8 bytes per feature, and twice that after the first
        prediction.
    random_state : int, RandomState or None, default=None
        Seed of the sample of stored examples. The estimator has its own seed.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The known classes, in the order of the columns of :meth:`predict_proba`.
    unknown_label_ : int, float or str
        The prediction for rejected examples: `unknown_label`, or what None stands for.
    level_ : float
        Novelty above which an example is rejected; infinite if nothing is rejected.
    usual_scores_ : ndarray of shape (n_classes,)
        The usual score of the examples of each class. With ``measure="auto"`` it is the cosine.
    spreads_ : ndarray of shape (n_classes,)
        Root mean square deviation of the scores of each class from its usual score.
    n_held_out_ : ndarray of shape (n_classes,)
        Number of stored examples per class.

    See Also
    --------
    ImageClassifier : Takes a RejectingClassifier as its learner.

    Notes
    -----
    A score becomes a novelty by comparison with the usual score of known examples, in units of the
    spread of the scores. The usual score and the spread of each class are shrunk towards those of
    all classes with the weight of 30 examples, so that they also make sense for a class with few
    stored examples.

    ``measure="auto"`` takes a weighted mean of five novelties:

    - the cosine to the nearest class mean, measured from the point halfway between zero and the
      mean of all classes;
    - the best score of a ridge regression;
    - the smallest Mahalanobis distance from a class, with one covariance for all classes;
    - the same distance minus the distance from the mean of all examples;
    - the length of the example.

    The weights are those that best separate stored examples from the same examples with their
    classes left out. Each stored example is scored as if it had never been learnt, which has a
    closed form, so the estimator can learn all examples. The cosine alone is used if there are more
    than 4096 features, fewer than two or more than 500 classes, or after a class was forgotten of
    which not all examples are stored.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow import NCMForestClassifier, RejectingClassifier
    >>> random = np.random.default_rng(0)
    >>> cats, dogs, birds = (random.normal(c, 0.5, (99, 3)) for c in 5 * np.eye(3))
    >>> model = RejectingClassifier(NCMForestClassifier(5, random_state=0), random_state=0)
    >>> model = model.fit(np.concatenate([cats, dogs]), ["cat"] * 99 + ["dog"] * 99)
    >>> model.predict([[5, 0, 0], [0, 0, 5]])
    array(['cat', 'unknown'], dtype='<U7')
    >>> model.partial_fit(birds, ["bird"] * 99).predict([[5, 0, 0], [0, 0, 5]])
    array(['cat', 'bird'], dtype='<U7')
    """

    @property
    def estimator_(self) -> Any:
        """The fitted estimator; do not train it separately."""
        return self._require_fitted("estimator_").estimator

    @property
    def unknown_label_(self) -> Any:
        """The prediction for rejected examples."""
        labels = self._require_fitted("unknown_label_").labels
        return predicted_labels(labels, self.unknown_label)[0]

    @property
    def level_(self) -> float:
        """Novelty above which an example is rejected; infinite if nothing is rejected."""
        name = "false_alarms"
        check_parameters({name: self.false_alarms}, {name: self._rules[name]})
        return float(self._require_fitted("level_").calibration.level(self.false_alarms))

    @property
    def usual_scores_(self) -> npt.NDArray[np.float64]:
        """The usual score of each class."""
        return np.array(self._require_fitted("usual_scores_").calibration.usual)

    @property
    def spreads_(self) -> npt.NDArray[np.float64]:
        """Root mean square deviation of the scores of each class from the usual score."""
        return np.array(self._require_fitted("spreads_").calibration.spreads)

    @property
    def n_held_out_(self) -> npt.NDArray[np.int64]:
        """Number of stored examples per class."""
        return cast("npt.NDArray[np.int64]", self._require_fitted("n_held_out_").holdout.counts)

    def novelty(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Compute the novelty of each example; those above ``level_`` are rejected.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            About 0 for a typical example of a known class, larger for stranger ones. One unit is
            the spread of the scores of known examples.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model = model.fit([[1, 0, 0], [9, 0, 0], [0, 1, 0], [0, 9, 0]], [0, 0, 1, 1])
        >>> common, strange = model.novelty([[5, 0, 0], [1, 1, 5]])
        >>> bool(common < strange)
        True
        """
        reader, X = self._checked_query(X)
        fitted: FittedRejection = reader._fitted
        return fitted.novelty(X)

    def is_known(self, X: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Tell which examples fit a known class, that is, are not rejected.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        known : ndarray of shape (n_samples,)
            True for each example that :meth:`predict` does not reject.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model = model.fit([[1, 0, 0], [9, 0, 0], [0, 1, 0], [0, 9, 0]], [0, 0, 1, 1])
        >>> model.level_, model.is_known([[1, 1, 5]])  # too few examples to reject any
        (inf, array([ True]))
        """
        reader, X = self._checked_query(X)
        return reader._accepted(X)

    def _accepted(self, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        if (level := self.level_) == float("inf"):
            return np.ones(len(X), dtype=bool)
        # An example without a score is not rejected.
        return ~exceeds(self._fitted.novelty(X), level)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Predict the class of each example, or the unknown label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Classes, and the unknown label for rejected examples.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> X = np.random.default_rng(0).normal(np.repeat(np.eye(2, 3), 99, axis=0), 0.1)
        >>> model = RejectingClassifier(NCMForestClassifier(5, random_state=0))
        >>> model.fit(X, np.repeat([7, 8], 99)).predict([[1, 0, 0], [0, 0, 1]])
        array([ 7, -1])
        """
        reader, X = self._checked_query(X)
        unknown, all_labels = predicted_labels(reader._fitted.labels, reader.unknown_label)
        labels: npt.NDArray[Any] = reader._fitted.estimator.predict(X).astype(all_labels.dtype)
        labels[~reader._accepted(X)] = unknown
        return labels

    def predict_known(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Predict the class of each example without rejecting any.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Predictions of the wrapped estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> X = np.random.default_rng(0).normal(np.repeat(np.eye(2, 3), 99, axis=0), 0.1)
        >>> model = RejectingClassifier(NCMForestClassifier(5, random_state=0))
        >>> model.fit(X, np.repeat([7, 8], 99)).predict_known([[1, 0, 0], [0.2, 0, 1]])
        array([7, 7])
        """
        reader, X = self._checked_query(X)
        return cast("npt.NDArray[Any]", reader._fitted.estimator.predict(X))

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Predict class probabilities, given that the class is a known one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities of the wrapped estimator, in the order of ``classes_``.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict_proba([[9]])
        array([[0., 1.]])
        """
        reader, X = self._checked_query(X)
        return cast("npt.NDArray[np.float64]", reader._fitted.estimator.predict_proba(X))

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Compute the scores of the known classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            Scores of the wrapped estimator.

        Examples
        --------
        >>> from sklearn.linear_model import RidgeClassifier
        >>> from evergrow import RejectingClassifier
        >>> model = RejectingClassifier(RidgeClassifier())
        >>> scores = model.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).decision_function([[9]])
        >>> bool(scores > 0)
        True
        """
        reader, X = self._checked_query(X)
        return cast("npt.NDArray[np.float64]", reader._fitted.estimator.decision_function(X))

    def score(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Return the accuracy, where a rejection counts as a prediction of the unknown label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            The true classes, and the unknown label for examples that should be rejected.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; None weights all equally.

        Returns
        -------
        accuracy : float
            Share of the examples that are predicted correctly, from 0 to 1.

        Examples
        --------
        >>> import numpy as np
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> X = np.random.default_rng(0).normal(np.repeat(np.eye(2, 3), 99, axis=0), 0.1)
        >>> model = RejectingClassifier(NCMForestClassifier(5, random_state=0))
        >>> model.fit(X, np.repeat([7, 8], 99)).score([[1, 0, 0], [0, 0, 1]], [7, -1])
        1.0
        """
        return float(super().score(X, y, sample_weight))

    def _check_suits(self, fitted: FittedRejection) -> None:
        self._check_same_measure(fitted)
        predicted_labels(fitted.labels, self.unknown_label)
        check_saveable(type(fitted.estimator), " in a RejectingClassifier")

    def _stored_parameters(self, inference_only: bool) -> dict[str, Any]:
        parameters = super()._stored_parameters(inference_only)
        del parameters["estimator"]
        return parameters

    @classmethod
    def _read_parameters(cls, entries: dict[str, Any], fitted: FittedRejection) -> dict[str, Any]:
        if "estimator" in entries:
            raise ModelFileError("the model file has an estimator among its parameters")
        return {**entries, "estimator": clone(fitted.estimator)}
