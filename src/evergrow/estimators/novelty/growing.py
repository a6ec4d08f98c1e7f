"""Training a rejecting classifier: from scratch, with more examples, and without old ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import GrowingClassifier
from evergrow.estimators.novelty.answers import IsLabel, answers_of
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.novelty.measures import MEASURES
from evergrow.estimators.novelty.wrapped import (
    IsClassifier,
    Lesson,
    accepts,
    forget,
    renamed,
    taught,
)
from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.examples import check_size, plain_batches, weighted
from evergrow.estimators.sums.forgetting import check_forget_arguments, without_examples
from evergrow.estimators.sums.held_out import HeldOut
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.params import Choice, Integer, Nothing, Number, RandomState, Rule
from evergrow.foundation.turns import one_at_a_time

__all__ = ["GrowingRejection"]


class GrowingRejection(GrowingClassifier):
    """Training and updating; the subclass adds parameters and answers."""

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
        # Of two examples one is left to learn from.
        "validation_every": [Integer(2)],
        "max_held_out": [Integer(20)],
        "random_state": [Nothing(), RandomState()],
    }

    @one_at_a_time
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train on examples and their classes, forgetting whatever was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Classes: integers or strings. None may be the unknown label.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, if the estimator takes them; class means and the level heed them too. An
            example of weight 0 is as if it had not come.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow import NCMForestClassifier, RejectingClassifier
        >>> model = RejectingClassifier(NCMForestClassifier(5, min_samples_leaf=1))
        >>> model.fit([[0], [1], [8], [9]], ["cat", "cat", "dog", "dog"]).predict([[8]])
        array(['dog'], dtype='<U7')
        """
        self._check_parameters()
        X, y, names = self._checked_first(X, y, min_samples=1)
        lesson = _checked_lesson(X, y, sample_weight)
        labels, codes = ClassList.of(lesson.y)
        self._learn("fit", self._nothing(X.shape[1]), labels, codes, lesson, names)
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

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            Classes, of the same kind (numbers or strings) as the known ones.
        classes : array-like, default=None
            Never needed with Evergrow's own estimators. Those of scikit-learn cannot grow: list
            all classes there will be at the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, as in :meth:`fit`.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted it stays as it was.

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
            raise TypeError(
                f"{type(self.estimator).__name__} cannot learn more: it has no method partial_fit"
            )
        if not self.__sklearn_is_fitted__():
            X, y, names = self._checked_first(X, y, min_samples=1)
            lesson = _checked_lesson(X, y, sample_weight)
            labels, codes = self._first_labels(lesson.y, classes)
            if accepts(self.estimator, "partial_fit", "classes"):
                lesson = replace(lesson, classes=labels.classes)
            known = self._nothing(X.shape[1])
        else:
            known, names = self._fitted, getattr(self, "feature_names_in_", None)
            self._check_same_measure(known)
            X, y = self._checked_more(X, y)
            listed = None if classes is None else as_classes(classes)
            lesson = replace(_checked_lesson(X, y, sample_weight), classes=listed)
            labels, codes = known.labels.extend_with(lesson.y, as_classes(classes))
        self._learn("partial_fit", known, labels, codes, lesson, names)
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
        """Take examples or whole classes back, as far as the estimator can.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Examples to forget, exactly as they were learnt.
        y : array-like of shape (n_samples,), default=None
            Their classes.
        classes : array-like, default=None
            Classes to forget; the other columns keep their order.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights they were learnt with.

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
        known = self._learnt("examples to forget")
        check_forget_arguments(X, y, classes, sample_weight)
        lesson = None
        if X is not None and y is not None:
            lesson = _checked_lesson(*self._checked_more(X, y), sample_weight)
        fitted, unlearnt = (known, None) if lesson is None else _without(known, lesson)
        leaving = sorted(set(known.labels.columns_of(as_classes(classes).tolist())))
        if len(leaving) == len(known.labels):
            raise ValueError("forget would leave no class: train a new model instead")
        if leaving:
            fitted = fitted.relabel(*known.labels.without(leaving))
        # Last, as all before it changed nothing.
        names = known.labels.classes[leaving].tolist()
        estimator = forget(known.estimator, self.estimator, unlearnt, names)
        self._become(replace(fitted, estimator=estimator), getattr(self, "feature_names_in_", None))
        return self

    @one_at_a_time
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Give classes other names; classes that get one name become one class.

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
        known = self._learnt("classes to rename")
        labels, columns = known.labels.renamed(names)
        answers_of(labels, self.unknown_label)
        fitted = known.relabel(labels, columns)
        estimator = renamed(known.estimator, names)
        self._become(replace(fitted, estimator=estimator), getattr(self, "feature_names_in_", None))
        return self

    def _nothing(self, n_features: int) -> FittedRejection:
        """What there is before the first example."""
        estimator = clone(self.estimator)
        has_scores = any(hasattr(estimator, m) for m in ("decision_function", "predict_proba"))
        if self.measure == "estimator" and not has_scores:
            raise TypeError(
                "measure='estimator' needs an estimator with decision_function or predict_proba, "
                f"{type(estimator).__name__} has neither"
            )
        seed = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        held_out = HeldOut.none(self.max_held_out, seed)
        # A sum knows its number of features from its classes.
        moments = Moments.none(n_features, 1, gram=False)
        labels = ClassList(np.zeros(0))
        return FittedRejection(labels, estimator, moments, held_out, self.measure)

    def _learn(
        self,
        method: str,
        known: FittedRejection,
        labels: ClassList,
        codes: npt.NDArray[np.int32],
        lesson: Lesson,
        names: npt.NDArray[Any] | None,
    ) -> None:
        answers_of(labels, self.unknown_label)
        batch = Batch.of(lesson.X, codes, lesson.weights)
        held_out, chosen = known.held_out.add(
            batch,
            labels.classes.tolist(),
            every=self.validation_every,
            max_held_out=self.max_held_out,
        )
        moments = known.moments.with_classes(len(labels)).add_all(
            plain_batches(batch.rows, batch.codes, batch.weights)
        )
        if not MEASURES[known.measure].learns_held_out:
            lesson = lesson.where(~chosen)
        # Last, as all before it changed nothing.
        estimator = taught(known.estimator, self.estimator, method, lesson, labels)
        self._become(
            FittedRejection(labels, estimator, moments, held_out, known.measure),
            names,
        )

    def _check_same_measure(self, known: FittedRejection) -> None:
        if known.measure != self.measure:
            raise ValueError(
                f"measure is {self.measure!r} but the model was made for {known.measure!r}: "
                "fit again to change it"
            )


def _checked_lesson(
    X: npt.NDArray[Any], y: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> Lesson:
    check_size(X)
    if sample_weight is None:
        return Lesson(X, y)
    return Lesson(*weighted(X, y, sample_weight))


def _without(known: FittedRejection, lesson: Lesson) -> tuple[FittedRejection, Lesson]:
    """Without some examples, and those of them that the estimator has learnt."""
    codes = np.array(known.labels.columns_of(lesson.y.tolist()), dtype=np.int32)
    batch = Batch.of(lesson.X, codes, lesson.weights)
    held_out, found = known.held_out.find(batch)
    learns_held_out = MEASURES[known.measure].learns_held_out
    if not learns_held_out:
        _check_separable(known, np.unique(codes[~found]).tolist())
    batches = plain_batches(batch.rows, batch.codes, batch.weights)
    moments = without_examples(known.labels, known.moments, batches)
    fitted = replace(known, moments=moments, held_out=held_out, fixed=None)
    return fitted, lesson if learns_held_out else lesson.where(~found)


def _check_separable(known: FittedRejection, columns: list[int]) -> None:
    """Raise unless it is certain which examples of these classes the estimator has learnt."""
    for column in columns:
        if not known.held_out.is_whole(column):
            raise ValueError(
                f"cannot forget examples of class {known.labels.classes.tolist()[column]!r} one by "
                "one: not all that were held out from the estimator are kept; raise max_held_out "
                "before fitting"
            )
