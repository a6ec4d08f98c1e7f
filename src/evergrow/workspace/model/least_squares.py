"""What the workspace's least squares has learnt, as a value: class ids to weights.

Functions of values: a step that fails has changed nothing. Columns never move; a class without
examples keeps an empty one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear import RLSClassifier
from evergrow.estimators.linear.feature_map import FeatureMap
from evergrow.estimators.linear.fitted import FittedRLS
from evergrow.estimators.linear.selection import DEFAULT_TEMPERATURE, default_penalty, recode
from evergrow.estimators.linear.solver import Ridge, Solver
from evergrow.estimators.sums.changes import move, subtract
from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch, Moments
from evergrow.foundation.labels import ClassList
from evergrow.workspace.events import Added, Moved, Removed

__all__ = ["Choice", "Learnt", "with_constant"]

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32] | Floats

# As long as nothing was chosen: half way favours classes of few examples and costs others little.
_DEFAULT_RECODING = 0.5
# Sums that were once this many times larger than now have lost digits to what was taken out.
_WORN = 1e3
# Rows that become 64-bit features at once.
_BLOCK = 4096


@dataclass(frozen=True)
class Choice:
    """The numbers that an assessment chose.

    Attributes
    ----------
    penalty : float or None
        None for one that follows the size of the features.
    recoding : float
        How much rare classes are favoured.
    temperature : float
        What scores are divided by to become probabilities.
    """

    penalty: float | None = None
    recoding: float = _DEFAULT_RECODING
    temperature: float = DEFAULT_TEMPERATURE


@dataclass(frozen=True, eq=False)
class Learnt:
    """Sums over all examples by class id, and the numbers to solve them with.

    Attributes
    ----------
    fitted : FittedRLS or None
        None as long as there is no example.
    choice : Choice
        The numbers in use.

    Examples
    --------
    >>> learnt = Learnt().add(np.array([[0.0], [1.0], [9.0]]), np.array([1, 1, 2]))
    >>> learnt.n_examples, learnt.class_ids.tolist()
    (3, [1, 2])
    >>> learnt.remove(np.array([[9.0]]), np.array([2])).class_ids.tolist()
    [1]
    """

    fitted: FittedRLS | None = None
    choice: Choice = Choice()

    @property
    def n_examples(self) -> int:
        """Number of examples learnt."""
        return 0 if self.fitted is None else self.fitted.moments.n_examples

    @property
    def class_ids(self) -> Ids:
        """Ids of the classes that have examples, in the order of their columns."""
        if self.fitted is None:
            return np.zeros(0, dtype=np.int64)
        ids: Ids = self.fitted.labels.classes[self.present]
        return ids

    @property
    def class_counts(self) -> dict[int, int]:
        """Number of examples per class id, of classes that have any."""
        if self.fitted is None:
            return {}
        counts = self.fitted.moments.class_examples[self.present]
        return dict(zip(self.class_ids.tolist(), counts.tolist(), strict=True))

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which columns have examples."""
        if self.fitted is None:
            return np.zeros(0, dtype=bool)
        found: npt.NDArray[np.bool_] = self.fitted.moments.class_examples > 0
        return found

    @property
    def ridge(self) -> Ridge:
        """What the weights are solved for."""
        penalty = self.choice.penalty
        if penalty is None and self.fitted is not None:
            penalty = default_penalty(self.fitted.moments, Ridge(1.0))
        return Ridge(1.0 if penalty is None else penalty)

    @property
    def is_worn(self) -> bool:
        """Whether so much was taken out that what is left should be summed up anew.

        What is taken out leaves behind its rounding, which is relative to its own size.
        """
        if self.fitted is None:
            return False
        moments = self.fitted.moments
        return moments.peak > _WORN * moments.squares

    def add(self, rows: Rows, class_ids: Ids) -> Learnt:
        """With more examples, of known classes and of new ones."""
        if not len(rows):
            return self
        if self.fitted is None:
            labels, codes = ClassList.of(class_ids)
            known = _nothing(rows.shape[1], labels)
        else:
            known = self.fitted
            labels, codes = known.labels.extend(class_ids)
        moments = known.moments.with_classes(len(labels))
        if len(rows) <= _BLOCK:
            moments = moments.add(_features(rows, codes))
        else:
            moments = moments.add_all(
                _features(rows[first : first + _BLOCK], codes[first : first + _BLOCK])
                for first in range(0, len(rows), _BLOCK)
            )
        moments.check_finite()
        holdout = known.holdout.with_classes(len(labels))
        return replace(self, fitted=replace(known, labels=labels, moments=moments, holdout=holdout))

    def remove(self, rows: Rows, class_ids: Ids) -> Learnt:
        """Without some examples, as if they had never come."""
        if not len(rows) or self.fitted is None:
            return self
        gone = _features(rows, self._codes(class_ids))
        left = subtract(self.fitted.moments, [gone])
        if not left.n_examples:
            return replace(self, fitted=None)
        # Solved anew: to follow what goes costs digits, and going is rare.
        return replace(self, fitted=replace(self.fitted, moments=left, solver=Solver()))

    def move(self, rows: Rows, class_ids: Ids, to: Ids) -> Learnt:
        """With some examples in other classes, known or new."""
        elsewhere = class_ids != to
        if self.fitted is None or not elsewhere.any():
            return self
        rows, class_ids, to = rows[elsewhere], class_ids[elsewhere], to[elsewhere]
        labels, codes = self.fitted.labels.extend(to)
        moments = self.fitted.moments.with_classes(len(labels))
        moved = move(moments, _features(rows, self._codes(class_ids)), codes)
        holdout = self.fitted.holdout.with_classes(len(labels))
        fitted = replace(self.fitted, labels=labels, moments=moved, holdout=holdout)
        return replace(self, fitted=fitted)

    def after(self, fact: Added | Removed | Moved) -> Learnt:
        """With what became of some examples."""
        block = fact.block
        if isinstance(fact, Added):
            return self.add(block.rows, block.class_ids)
        if isinstance(fact, Removed):
            return self.remove(block.rows, block.class_ids)
        # An example that moved twice in a row moved once, from its first class to its last.
        _, first = np.unique(block.ids, return_index=True)
        _, last = np.unique(block.ids[::-1], return_index=True)
        to = fact.to_class_ids[::-1][last]
        return self.move(block.rows[first], block.class_ids[first], to)

    def choose(self, choice: Choice) -> Learnt:
        """With other numbers."""
        return replace(self, choice=choice)

    def scoring(self) -> tuple[Floats, Floats]:
        """Weights and offsets of the classes that have examples, recoded, on the scale of plain.

        Of shape (n_classes, n_features) and (n_classes,), the caller's own.
        """
        if self.fitted is None:
            raise ValueError("nothing was learnt yet")
        moments, present = self.fitted.moments, self.present
        factors = recode(moments, self.choice.recoding)
        shares = moments.class_weights / moments.weight
        factors = (factors / float(shares @ factors))[present, None]
        with self.fitted.weights(self.ridge, with_held_out=True) as weights:
            # A view as long as every class has examples.
            live = weights if present.all() else weights[present]
            return live[:, :-1] * factors, live[:, -1] * factors[:, 0]

    @property
    def plain_moments(self) -> Moments:
        """Class sums of the features without the constant one, for comparing with class means."""
        if self.fitted is None:
            raise ValueError("nothing was learnt yet")
        moments = self.fitted.moments
        return Moments(
            tuple(total[:-1] for total in moments.class_sums),
            moments.class_weights,
            moments.class_examples,
            moments.class_squares - moments.class_weights,
            None,
            None,
        )

    def estimator(self) -> RLSClassifier:
        """The same as an estimator over class ids, which can be saved and go on learning."""
        if self.fitted is None:
            raise ValueError("nothing was learnt yet")
        model = RLSClassifier(regularization=self.ridge.penalty, recoding=self.choice.recoding)
        model._become(self.fitted, None)
        return model

    @classmethod
    def from_estimator(cls, model: RLSClassifier, choice: Choice) -> Learnt:
        """What :meth:`estimator` gave."""
        return cls(model._learnt("sums"), choice)

    def _codes(self, class_ids: Ids) -> npt.NDArray[np.int32]:
        if self.fitted is None:
            raise ValueError("nothing was learnt yet")
        return np.array(self.fitted.labels.columns_of(class_ids.tolist()), dtype=np.int32)


def with_constant(rows: Rows) -> Floats:
    """Features as the sums have them: 64 bits, the constant one last."""
    features = np.ones((len(rows), rows.shape[1] + 1))
    features[:, :-1] = rows
    return features


def _features(rows: Rows, codes: npt.NDArray[np.int32]) -> Batch:
    return Batch(with_constant(rows), codes, np.ones(len(rows)))


def _nothing(n_features: int, labels: ClassList) -> FittedRLS:
    return FittedRLS(
        labels,
        FeatureMap.plain(n_features),
        intercept=True,
        moments=Moments.none(n_features + 1, len(labels), gram=True),
        # Nothing is held out: each example is left out in turn where something is chosen.
        holdout=Holdout.none(1, 0).with_classes(len(labels)),
    )
