"""A classifier that may answer "unknown"."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from evergrow.estimators.novelty.answers import answers_of
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.novelty.growing import GrowingRejection
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.params import check_parameters
from evergrow.storage.files import write_model
from evergrow.storage.modelfile import (
    Build,
    check_saveable,
    common_header,
    feature_names,
    parameters_of,
    plain_parameters,
)

__all__ = ["RejectingClassifier"]


def _inside_has(method: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        # Raises an AttributeError that names the one who lacks it.
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


class RejectingClassifier(GrowingRejection):
    """A classifier around another one that answers "unknown" to what fits none of its classes.

    An example's score is the cosine between its features and the nearest class mean, both seen from
    half way between zero and the mean of all classes, or the best score of the wrapped estimator.
    Its novelty is how far this score lies below what is usual for that class, in units of how far
    the scores of that class spread, and it is rejected when that exceeds ``level_``. Usual scores,
    spreads and the level come from held-out examples, so that about ``false_alarms`` of the known
    examples are rejected, whatever the features and however many classes there are.

    Every ``validation_every``-th example of each class is held out. With ``measure="cosine"`` the
    estimator learns it all the same: each held-out example is compared with the mean of its own
    class taken without it, which is exactly the mean there would be had it never come. With
    ``measure="estimator"`` the estimator never sees it. A class's usual score and spread are drawn
    towards those of all classes as by 30 more examples, so that a class with few held-out examples,
    or none, gets sensible ones. Below 20 held-out examples in all nothing is rejected yet:
    ``level_`` is then infinite.

    The set of classes grows with :meth:`partial_fit` if the wrapped estimator's does.

    Parameters
    ----------
    estimator : classifier
        What classifies; it is cloned. It needs ``fit``, for growing ``partial_fit``, and for
        taking back ``forget`` and ``rename_classes``. Its parameters may change between updates,
        where it allows that; they take effect with the next one.
    false_alarms : float, default=0.1
        Share of the examples of known classes that may be rejected. Raise it to find more of the
        unknown ones, lower it where asking for help is expensive. May be changed at any time.
    unknown_label : int, float or str, default=None
        The answer to what is unknown; None for "unknown" among strings and -1 among numbers. Set
        it if a class has this name. May be changed at any time.
    measure : {"cosine", "estimator"}, default="cosine"
        What the score is. The cosine needs nothing of the estimator, which learns from every
        example; take the estimator's own score if it knows better than class means what belongs
        together. Scores of linear models grow with the distance from the border between classes, so
        that things far out may look well known.
    validation_every : int, default=6
        Every how many-th example of a class is held out. Lower it for a level that is more exact
        with few examples; with ``measure="estimator"`` these are lost to learning.
    max_held_out : int, default=2000
        How many held-out examples are kept in memory as 8 bytes per feature, twice once something
        was asked, in equal shares per class and at least one of each. Each class keeps a uniform
        choice of all it had.
    random_state : int, RandomState or None, default=None
        Seed of that choice. The estimator has its own.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The known classes, in the order of the columns of :meth:`predict_proba`.
    level_ : float
        Novelty above which an example is rejected; infinite as long as nothing is.
    usual_scores_ : ndarray of shape (n_classes,)
        The score that is usual for each class.
    spreads_ : ndarray of shape (n_classes,)
        How far scores of each class lie from the usual one.
    n_held_out_ : ndarray of shape (n_classes,)
        Number of held-out examples that are kept.

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

    def __init__(
        self,
        estimator: Any,
        *,
        false_alarms: float = 0.1,
        unknown_label: str | float | None = None,
        measure: Literal["cosine", "estimator"] = "cosine",
        validation_every: int = 6,
        max_held_out: int = 2000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.false_alarms = false_alarms
        self.unknown_label = unknown_label
        self.measure = measure
        self.validation_every = validation_every
        self.max_held_out = max_held_out
        self.random_state = random_state

    @property
    def estimator_(self) -> Any:
        """The fitted estimator; do not train it on its own."""
        return self._learnt("estimator_").estimator

    @property
    def level_(self) -> float:
        """Novelty above which an example is rejected; infinite as long as nothing is."""
        name = "false_alarms"
        check_parameters({name: self.false_alarms}, {name: self._rules[name]})
        level: float = self._learnt("level_").calibration.level(self.false_alarms)
        return level

    @property
    def usual_scores_(self) -> npt.NDArray[np.float64]:
        """The score that is usual for each class."""
        usual: npt.NDArray[np.float64] = self._learnt("usual_scores_").calibration.usual
        return usual.copy()

    @property
    def spreads_(self) -> npt.NDArray[np.float64]:
        """How far scores of each class lie from the usual one: the root of the mean square."""
        spreads: npt.NDArray[np.float64] = self._learnt("spreads_").calibration.spreads
        return spreads.copy()

    @property
    def n_held_out_(self) -> npt.NDArray[np.int64]:
        """Number of held-out examples of each class that are kept."""
        counts: npt.NDArray[np.int64] = self._learnt("n_held_out_").held_out.counts
        return counts

    def novelty(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """How strange each example is; above ``level_`` it is rejected.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features as in :meth:`fit`.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            How far the best score lies below what is usual for that class, in units of
            ``spreads_``: the larger the stranger, about 0 for a common example.

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
        # Not "at most the level": what has no score is no proof of being strange.
        return ~np.greater(self._fitted.novelty(X), level)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Class of each example as the estimator sees it, or the unknown label.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Of a type that holds all classes and the unknown label.

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
        unknown, answers = answers_of(reader._fitted.labels, reader.unknown_label)
        labels: npt.NDArray[Any] = reader._fitted.estimator.predict(X).astype(answers.dtype)
        labels[~reader._accepted(X)] = unknown
        return labels

    def predict_known(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The estimator's answer to each example, without rejection.

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
        labels: npt.NDArray[Any] = reader._fitted.estimator.predict(X)
        return labels

    @available_if(_inside_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The estimator's class probabilities, given that the class is a known one.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model.fit([[0], [1], [8], [9]], [0, 0, 1, 1]).predict_proba([[9]])
        array([[0., 1.]])
        """
        reader, X = self._checked_query(X)
        probabilities: npt.NDArray[np.float64] = reader._fitted.estimator.predict_proba(X)
        return probabilities

    @available_if(_inside_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The estimator's scores of the known classes.

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
        scores: npt.NDArray[np.float64] = reader._fitted.estimator.decision_function(X)
        return scores

    def score(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Share of right answers; ``y`` holds the unknown label where that is the right one.

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, the estimator inside it, to a file that :func:`evergrow.load` reads.

        Only Evergrow's own estimators can be saved: nothing in a model file is ever executed.
        After loading, ``estimator`` has the parameters of ``estimator_``.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced, whole or not at all.

        Examples
        --------
        >>> import evergrow, tempfile, os
        >>> forest = evergrow.NCMForestClassifier(5, min_samples_leaf=1)
        >>> model = evergrow.RejectingClassifier(forest).fit([[0], [1], [8], [9]], [0, 0, 1, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.evergrow")
        ...     model.save(path)
        ...     evergrow.load(path).predict([[9]])
        array([1])
        """
        write_model(path, *self._to_file())

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays of a model file, or of a part of another model's file."""
        reader = self._checked_to_save()
        fitted: FittedRejection = reader._fitted
        # Else the file could not be loaded.
        reader._check_same_measure(fitted)
        answers_of(fitted.labels, reader.unknown_label)
        check_saveable(type(fitted.estimator))
        parameters = plain_parameters(reader.get_params(deep=False))
        del parameters["estimator"]
        learnt, tensors = fitted.to_file()
        return {**common_header(reader, parameters, fitted.labels), **learnt}, tensors

    @classmethod
    def _from_file(
        cls, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], build: Build
    ) -> Self:
        fitted = FittedRejection.from_file(header, tensors, build)
        # A second estimator among the parameters is an error, as there is one inside.
        model = cls(clone(fitted.estimator), **parameters_of(header))
        model._check_parameters()
        if model.measure != fitted.measure:
            raise ModelFileError("the model file is inconsistent: it was made by another measure")
        answers_of(fitted.labels, model.unknown_label)
        model._become(fitted, feature_names(header, fitted.n_features))
        return model
