"""A classifier that can predict "unknown"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from evergrow.estimators.classifier.persistence import Header, ModelContent, Tensors
from evergrow.estimators.novelty.calibration import exceeds
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.novelty.learner import RejectionLearner, predicted_labels
from evergrow.estimators.novelty.serialization import fitted_from_arrays, fitted_to_arrays
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.params import check_parameters
from evergrow.storage.models.header import (
    Build,
    check_saveable,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)


def _estimator_has(method: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        # Raises an AttributeError that names the wrapped estimator.
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


@dataclass(eq=False, repr=False)
class RejectingClassifier(RejectionLearner):
    """Wrapper that lets a classifier predict "unknown" for examples that fit no class.

    An example is rejected if its novelty exceeds ``level_``. Its novelty is how far its score is
    below the usual one, in units of the spread of the scores. With ``measure="auto"`` it is the
    weighted mean of five of these: the cosine to the nearest class mean, relative to the usual
    cosine of that class; the best score of a ridge regression; the lowest Mahalanobis distance to a
    class, with one covariance for all classes; the same minus the distance to the mean of all
    examples; and the length of the example. The cosine is measured from the point half way between
    zero and the mean of all classes. The weights are those that best tell stored examples from the
    same examples when their classes are left out. Usual scores, spreads and the level are
    calibrated on stored examples, so that about ``false_alarms`` of the examples of known classes
    are rejected.

    With ``measure="auto"`` the estimator learns all examples, and a uniform sample of them is
    stored for the calibration. Each is scored as if it had never been learnt, which has a closed
    form for all scores. Ridge regression and distances need the products of all pairs of
    features, at most 4096 features, and between two and 500 classes; otherwise the cosine
    alone decides. It also does after a class is forgotten of which not all examples are stored,
    because its part in the products is then not known.

    With the other measures every ``validation_every``-th example of each class is stored. With
    ``measure="estimator"`` the estimator never learns it.

    The usual score and the spread of a class are shrunk towards those of all classes with the
    weight of 30 examples, so that they are sensible for a class with few stored examples or none.
    With fewer than 20 stored examples in all nothing is rejected, and ``level_`` is infinite.

    The set of classes grows with :meth:`partial_fit` if that of the wrapped estimator does; for an
    estimator of scikit-learn, list all classes in the first call. Weights of examples need an
    estimator that accepts them, and also apply to class means and the level. No class may have the
    unknown label. :meth:`forget` takes examples exactly as they were learnt.

    Parameters
    ----------
    estimator : classifier
        The classifier to wrap; it is cloned. :meth:`partial_fit`, :meth:`forget` and
        :meth:`rename_classes` need methods of the same name. Its parameters may change between
        updates if it allows that; they take effect with the next update.
    false_alarms : float, default=0.1
        Share of the examples of known classes that may be rejected. A higher one finds more
        unknown examples. May change at any time.
    unknown_label : int, float or str, default=None
        The prediction for rejected examples. None is "unknown" if classes are strings; if they are
        numbers, the largest negative integer that is not a class: -1, but -2 for the classes -1 and
        1. Set it if a class is called "unknown". May change at any time.
    measure : {"auto", "cosine", "estimator"}, default="auto"
        The score. ``"auto"`` weights five and finds the most unknown examples with features of a
        network; it needs 8 bytes per pair of features. ``"cosine"`` takes the cosine alone: use it
        for very many features, or if all classes should have the same share of false alarms.
        Both do not depend on the estimator, which then learns every example. ``"estimator"`` takes
        its best score: use it if it separates classes better than class means do. Scores of linear
        models grow with the distance from the decision boundary, so that unknown examples far from
        it may get a high score.
    validation_every : int, default=6
        Every n-th example of a class is stored, unless the measure is ``"auto"``, which may store
        all. A lower value makes the level more exact with few examples; with
        ``measure="estimator"`` the estimator then learns fewer examples.
    max_held_out : int, default=2000
        Maximum number of examples that are stored, in equal shares per class and at least one of
        each: a uniform sample per class. They need 8 bytes per feature, twice that after the first
        prediction.
    random_state : int, RandomState or None, default=None
        Seed of that sample. The estimator has its own seed.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The known classes, in the order of the columns of :meth:`predict_proba`.
    level_ : float
        Novelty above which an example is rejected; infinite if nothing is rejected.
    usual_scores_ : ndarray of shape (n_classes,)
        The usual score of each class; with ``measure="auto"`` the usual cosine.
    spreads_ : ndarray of shape (n_classes,)
        Root mean square deviation of the scores of each class from the usual score.
    n_held_out_ : ndarray of shape (n_classes,)
        Number of stored examples per class.

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
        """Compute the novelty of each example; above ``level_`` it is rejected.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            How far the best score is below the usual score of that class, in units of
            ``spreads_``: about 0 for a typical example.

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
        """Whether each example fits a known class, that is, is not rejected.

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

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Classes and the unknown label, of a type that can hold both.

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
        """Predict the class of each example without rejection.

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
        """Compute the accuracy; ``y`` has the unknown label for examples to reject.

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

    def _to_file(self) -> ModelContent:
        reader = self._checked_to_save()
        fitted: FittedRejection = reader._fitted
        # The file could not be loaded otherwise.
        reader._check_same_measure(fitted)
        predicted_labels(fitted.labels, reader.unknown_label)
        check_saveable(type(fitted.estimator))
        parameters = plain_parameters(reader.get_params(deep=False))
        del parameters["estimator"]
        learnt, arrays = fitted_to_arrays(fitted)
        return {**common_header(reader, parameters, fitted.labels), **learnt}, arrays

    @classmethod
    def _from_file(cls, header: Header, tensors: Tensors, build: Build) -> Self:
        fitted = fitted_from_arrays(header, tensors, build)
        # Fails if the parameters contain an estimator too.
        model = cls(clone(fitted.estimator), **parameters_of(header))
        model._check_parameters()
        if model.measure != fitted.measure:
            raise ModelFileError("the model file is inconsistent: it has another measure")
        predicted_labels(fitted.labels, model.unknown_label)
        model._set_fitted(fitted, feature_names(header, fitted.n_features))
        return model
