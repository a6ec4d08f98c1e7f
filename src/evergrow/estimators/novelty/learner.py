"""Learning of a rejecting classifier: first examples, more examples, forgetting."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from evergrow.estimators.novelty import wrapped_estimator
from evergrow.estimators.novelty.fitted import FittedRejection
from evergrow.estimators.novelty.scores import MEASURES
from evergrow.estimators.novelty.wrapped_estimator import LabelledBatch, can_be_wrapped
from evergrow.estimators.sums.accumulation import (
    add_examples,
    check_magnitude,
    check_weights,
    first_shift,
    iter_batches,
)
from evergrow.estimators.sums.changes import subtract_examples
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.learner import ExampleLearner, Examples, Method
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import ClassList, as_classes
from evergrow.foundation.params import (
    Choice,
    Integer,
    Nothing,
    Number,
    RandomState,
    Rule,
    Satisfies,
)

# With more features, a Gram matrix would need more than 128 MiB.
MOST_FEATURES = 4096


def _is_label(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, numbers.Real) and math.isfinite(value))


@dataclass(eq=False, repr=False)
class RejectionLearner(ExampleLearner):
    """Learns and forgets; the subclass adds parameters and predictions."""

    estimator: Any
    _: KW_ONLY
    false_alarms: float = 0.1
    unknown_label: str | float | None = None
    measure: Literal["auto", "cosine", "estimator"] = "auto"
    validation_every: int = 6
    max_held_out: int = 2000
    random_state: int | np.random.RandomState | None = None
    _fitted: FittedRejection = field(init=False)
    _kind = FittedRejection

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "estimator": [
            Satisfies("a classifier with fit and predict and one label per sample", can_be_wrapped)
        ],
        "false_alarms": [Number(0.0, 1.0)],
        "unknown_label": [Nothing(), Satisfies("a string or a number", _is_label)],
        "measure": [Choice(tuple(MEASURES))],
        # With 1, no example would be left to learn.
        "validation_every": [Integer(2)],
        "max_held_out": [Integer(20)],
        "random_state": [Nothing(), RandomState()],
    }

    def _start(self, given: Examples, method: Method) -> Self:
        if method == "partial_fit":
            self._check_can_update()
        X, y, names = self._checked_first(given.X, given.y, min_samples=1)
        batch = _checked_batch(X, y, given.sample_weight)
        labels, codes = self._first_labels(batch.y, given.classes)
        if method == "partial_fit" and wrapped_estimator.accepts(self.estimator, method, "classes"):
            batch = replace(batch, classes=labels.classes)
        nothing = self._nothing(X)
        self._set_fitted(self._learn(method, nothing, labels, codes, batch), names)
        return self

    def _learn_more(self, known: FittedRejection, given: Examples) -> FittedRejection:
        self._check_can_update()
        self._check_same_measure(known)
        batch, listed = _checked_batch(*given[:3]), as_classes(given.classes)
        batch = replace(batch, classes=None if given.classes is None else listed)
        labels, codes = known.labels.extend_with(batch.y, listed)
        self._check_not_unknown(known, labels)
        return self._learn("partial_fit", known, labels, codes, batch)

    def _forget(self, known: FittedRejection, given: Examples) -> FittedRejection:
        fitted, unlearnt = _without(known, _checked_batch(*given[:3]))
        # Last, because everything before may fail without any change.
        estimator = wrapped_estimator.forget(known.estimator, self.estimator, unlearnt, [])
        return replace(fitted, estimator=estimator)

    def _forget_classes(self, known: FittedRejection, columns: list[int]) -> FittedRejection:
        if len(columns) == len(known.labels):
            raise InvalidInputError("forget would leave no class: train a new model instead")
        fitted = known.relabel(*known.labels.without(columns)) if columns else known
        names = known.labels.classes[columns].tolist()
        estimator = wrapped_estimator.forget(known.estimator, self.estimator, None, names)
        return replace(fitted, estimator=estimator)

    def _rename(self, known: FittedRejection, names: Mapping[Any, Any]) -> FittedRejection:
        labels, columns = known.labels.renamed(names)
        self._check_not_unknown(known, labels)
        fitted = known.relabel(labels, columns)
        return replace(fitted, estimator=wrapped_estimator.rename(known.estimator, names))

    def _check_not_unknown(self, known: FittedRejection, labels: ClassList) -> None:
        """Raise a ``ValueError`` if a class has the label that stood for unknown so far.

        It may be the label of an example that was predicted to be unknown.
        """
        unknown, _ = predicted_labels(known.labels, self.unknown_label)
        predicted_labels(labels, unknown)

    def _check_can_update(self) -> None:
        if not hasattr(self.estimator, "partial_fit"):
            raise InvalidTypeError(
                f"{type(self.estimator).__name__} cannot learn more examples: it has no "
                "method partial_fit"
            )

    def _nothing(self, X: npt.NDArray[Any]) -> FittedRejection:
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
        gram = self.measure == "auto" and X.shape[1] <= MOST_FEATURES
        moments = Moments.none(X.shape[1], 1, gram=gram, shift=first_shift(X) if gram else None)
        labels = ClassList(np.zeros(0))
        return FittedRejection(labels, estimator, moments, holdout, self.measure)

    def _learn(
        self,
        method: str,
        known: FittedRejection,
        labels: ClassList,
        codes: npt.NDArray[np.int32],
        batch: LabelledBatch,
    ) -> FittedRejection:
        predicted_labels(labels, self.unknown_label)
        new = Batch.of(batch.X, codes, batch.weights)
        measure = MEASURES[known.measure]
        holdout, drawn = known.holdout.add(
            new,
            labels.classes.tolist(),
            every=1 if measure.stores_all else self.validation_every,
            max_held_out=self.max_held_out,
        )
        moments, _ = add_examples(known.moments.with_classes(len(labels)), new)
        moments.check_finite(known.moments)
        if not measure.learns_held_out:
            batch = batch.where(~drawn)
        # Last, because everything before may fail without any change.
        estimator = wrapped_estimator.train(known.estimator, self.estimator, method, batch, labels)
        return replace(
            known, labels=labels, estimator=estimator, moments=moments, holdout=holdout, fixed=None
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


def predicted_labels(
    labels: ClassList, unknown_label: str | float | None
) -> tuple[Any, npt.NDArray[Any]]:
    """Return the unknown label, and an array of all labels of a type that holds them exactly.

    >>> predicted_labels(ClassList.of(np.array([3, 5], dtype=np.uint8))[0], None)
    (-1, array([ 3,  5, -1], dtype=int16))
    >>> predicted_labels(ClassList.of(np.array([-1, 1]))[0], None)
    (-2, array([-1,  1, -2]))
    """
    are_strings = labels.classes.dtype.kind in "UOT"
    unknown: Any = unknown_label
    if unknown is None:
        unknown = "unknown" if are_strings else _largest_negative(labels)
    if isinstance(unknown, str) != are_strings:
        kind = "a string" if are_strings else "a number"
        raise InvalidTypeError(f"unknown_label must be {kind} like the classes, got {unknown!r}")
    if unknown in labels.classes.tolist():
        raise InvalidInputError(
            f"unknown_label must differ from all classes, but there is a class {unknown!r}: rename "
            "the class or its folder, or set unknown_label= to another label"
        )
    grown, _ = labels.extend(_smallest(unknown))
    return unknown, grown.classes


def _largest_negative(labels: ClassList) -> int:
    """Return the largest negative integer that is not a class."""
    known = set(labels.classes.tolist())
    return next(number for number in itertools.count(-1, -1) if number not in known)


def _smallest(unknown: Any) -> npt.NDArray[Any]:
    # NumPy would use 64 bits for a Python integer, whatever the type of the classes.
    whole = isinstance(unknown, numbers.Integral) and not isinstance(unknown, (bool, np.bool_))
    return np.array([unknown], dtype=np.min_scalar_type(unknown) if whole else None)
