"""Learning of a rejecting classifier: first examples, more examples, forgetting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.estimators.novelty import wrapped_estimator
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.novelty.measures import MEASURES
from evergrow.estimators.novelty.unknown_label import IsLabel, predicted_labels
from evergrow.estimators.novelty.wrapped_estimator import IsClassifier, LabelledBatch
from evergrow.estimators.sums.accumulation import check_magnitude, check_weights, iter_batches
from evergrow.estimators.sums.changes import check_forget_arguments, subtract_examples
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import Choice, Integer, Nothing, Number, RandomState, Rule


class RejectionLearner(GrowingClassifier):
    """Learns and forgets; the subclass adds parameters and predictions."""

    estimator: Any
    unknown_label: str | float | None
    measure: Literal["cosine", "estimator"]
    validation_every: int
    max_held_out: int
    random_state: int | np.random.RandomState | None
    _fitted: FittedRejection

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "estimator": [IsClassifier()],
        "false_alarms": [Number(0.0, 1.0)],
        "unknown_label": [Nothing(), IsLabel()],
        "measure": [Choice(tuple(MEASURES))],
        # With 1, no example would be left to learn.
        "validation_every": [Integer(2)],
        "max_held_out": [Integer(20)],
        "random_state": [Nothing(), RandomState()],
    }

    @exclusive
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train on examples and their classes, discarding what was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Classes: integers or strings, none of them the unknown label.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, if the estimator accepts them; they also apply to class means and the level.
            An example of weight 0 is ignored.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted, it stays as it was.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model.fit([[0], [1], [8], [9]], ["cat", "cat", "dog", "dog"]).predict([[8]])
        array(['dog'], dtype='<U7')
        """
        self._check_parameters()
        X, y, names = self._checked_first(X, y, min_samples=1)
        batch = _checked_batch(X, y, sample_weight)
        labels, codes = ClassList.of(batch.y)
        self._learn("fit", self._nothing(X.shape[1]), labels, codes, batch, names)
        return self

    @exclusive
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add examples of known and new classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            Classes, of the same kind (numbers or strings) as the known ones.
        classes : array-like, default=None
            Never needed with Evergrow's own estimators. The classes of scikit-learn's estimators
            cannot grow: list all classes in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, as in :meth:`fit`.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted, it stays as it was.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model = model.partial_fit([[0, 0], [0, 1], [9, 8], [9, 9]], ["b", "b", "c", "c"])
        >>> model.partial_fit([[0, 8], [0, 9]], ["a", "a"]).classes_
        array(['b', 'c', 'a'], dtype='<U1')
        """
        self._check_parameters()
        if not hasattr(self.estimator, "partial_fit"):
            raise InvalidTypeError(
                f"{type(self.estimator).__name__} cannot learn more examples: it has no "
                "method partial_fit"
            )
        if not self.__sklearn_is_fitted__():
            X, y, names = self._checked_first(X, y, min_samples=1)
            batch = _checked_batch(X, y, sample_weight)
            labels, codes = self._first_labels(batch.y, classes)
            if wrapped_estimator.accepts(self.estimator, "partial_fit", "classes"):
                batch = replace(batch, classes=labels.classes)
            known = self._nothing(X.shape[1])
        else:
            known, names = self._fitted, getattr(self, "feature_names_in_", None)
            self._check_same_measure(known)
            X, y = self._checked_more(X, y)
            listed = None if classes is None else as_classes(classes)
            batch = replace(_checked_batch(X, y, sample_weight), classes=listed)
            labels, codes = known.labels.extend_with(batch.y, as_classes(classes))
        self._learn("partial_fit", known, labels, codes, batch, names)
        return self

    @exclusive
    def forget(
        self,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        *,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Remove examples or whole classes, if the estimator can.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Examples to forget, exactly as they were learnt.
        y : array-like of shape (n_samples,), default=None
            Their classes.
        classes : array-like, default=None
            Classes to forget; the other columns keep their order.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights that they were learnt with.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model = model.fit([[0], [1], [5], [6], [8], [9]], ["a", "a", "b", "b", "c", "c"])
        >>> model.forget(classes=["b"]).classes_
        array(['a', 'c'], dtype='<U1')
        """
        self._check_parameters()
        known = self._require_fitted("examples to forget")
        check_forget_arguments(X, y, classes, sample_weight)
        batch = None
        if X is not None and y is not None:
            batch = _checked_batch(*self._checked_more(X, y), sample_weight)
        fitted, unlearnt = (known, None) if batch is None else _without(known, batch)
        leaving = sorted(set(known.labels.columns_of(as_classes(classes).tolist())))
        if len(leaving) == len(known.labels):
            raise InvalidInputError("forget would leave no class: train a new model instead")
        if leaving:
            fitted = fitted.relabel(*known.labels.without(leaving))
        # Last, because everything before may fail without any change.
        names = known.labels.classes[leaving].tolist()
        estimator = wrapped_estimator.forget(known.estimator, self.estimator, unlearnt, names)
        self._set_fitted(
            replace(fitted, estimator=estimator), getattr(self, "feature_names_in_", None)
        )
        return self

    @exclusive
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Rename classes; classes that get the same name become one class.

        Parameters
        ----------
        names : mapping
            From old to new names. The joint class has the first of their columns.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model = model.fit([[0], [1], [5], [6], [8], [9]], ["a", "a", "b", "b", "c", "c"])
        >>> model.rename_classes({"a": "x", "c": "x"}).classes_
        array(['x', 'b'], dtype='<U1')
        """
        known = self._require_fitted("classes to rename")
        labels, columns = known.labels.renamed(names)
        predicted_labels(labels, self.unknown_label)
        fitted = known.relabel(labels, columns)
        estimator = wrapped_estimator.rename(known.estimator, names)
        self._set_fitted(
            replace(fitted, estimator=estimator), getattr(self, "feature_names_in_", None)
        )
        return self

    def _nothing(self, n_features: int) -> FittedRejection:
        """Return the fitted value before the first example."""
        estimator = clone(self.estimator)
        has_scores = any(hasattr(estimator, m) for m in ("decision_function", "predict_proba"))
        if self.measure == "estimator" and not has_scores:
            raise InvalidTypeError(
                "measure='estimator' needs an estimator with decision_function or predict_proba, "
                f"but {type(estimator).__name__} has neither"
            )
        seed = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        holdout = Holdout.none(self.max_held_out, seed)
        # Sums need at least one class to know the number of features.
        moments = Moments.none(n_features, 1, gram=False)
        labels = ClassList(np.zeros(0))
        return FittedRejection(labels, estimator, moments, holdout, self.measure)

    def _learn(
        self,
        method: str,
        known: FittedRejection,
        labels: ClassList,
        codes: npt.NDArray[np.int32],
        batch: LabelledBatch,
        names: npt.NDArray[Any] | None,
    ) -> None:
        predicted_labels(labels, self.unknown_label)
        new = Batch.of(batch.X, codes, batch.weights)
        holdout, drawn = known.holdout.add(
            new,
            labels.classes.tolist(),
            every=self.validation_every,
            max_held_out=self.max_held_out,
        )
        moments = known.moments.with_classes(len(labels)).add_all(iter_batches(new))
        if not MEASURES[known.measure].learns_held_out:
            batch = batch.where(~drawn)
        # Last, because everything before may fail without any change.
        estimator = wrapped_estimator.train(known.estimator, self.estimator, method, batch, labels)
        self._set_fitted(
            FittedRejection(labels, estimator, moments, holdout, known.measure),
            names,
        )

    def _check_same_measure(self, known: FittedRejection) -> None:
        if known.measure != self.measure:
            raise InvalidInputError(
                f"measure is {self.measure!r} but the model was trained with {known.measure!r}: "
                "fit again to change it"
            )


def _checked_batch(
    X: npt.NDArray[Any], y: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> LabelledBatch:
    check_magnitude(X)
    if sample_weight is None:
        return LabelledBatch(X, y)
    return LabelledBatch(*check_weights(X, y, sample_weight))


def _without(known: FittedRejection, batch: LabelledBatch) -> tuple[FittedRejection, LabelledBatch]:
    """Remove examples; also return those of them that the estimator has learnt."""
    codes = np.array(known.labels.columns_of(batch.y.tolist()), dtype=np.int32)
    gone = Batch.of(batch.X, codes, batch.weights)
    holdout, found = known.holdout.remove(gone)
    learns_held_out = MEASURES[known.measure].learns_held_out
    if not learns_held_out:
        _check_separable(known, np.unique(codes[~found]).tolist())
    moments = subtract_examples(known.labels, known.moments, iter_batches(gone))
    fitted = replace(known, moments=moments, holdout=holdout, fixed=None)
    return fitted, batch if learns_held_out else batch.where(~found)


def _check_separable(known: FittedRejection, columns: list[int]) -> None:
    """Raise a ``ValueError`` if it is unclear which examples the estimator has learnt."""
    for column in columns:
        if not known.holdout.is_complete(column):
            label = known.labels.classes.tolist()[column]
            raise InvalidInputError(
                f"cannot forget single examples of class {label!r}: "
                "not all of its held-out examples are kept; fit again with a higher max_held_out"
            )
