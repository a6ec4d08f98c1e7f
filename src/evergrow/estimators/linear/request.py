"""The parameters of one call of least squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from evergrow.estimators.linear.equations import Ridge, Scoring
from evergrow.estimators.linear.feature_map import RFF, Auto, Features, ReLU, features_of
from evergrow.estimators.linear.selection import Rule as SelectionRule
from evergrow.estimators.linear.selection import SelectionRequest
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Choice, Flag, Integer, OneOf, Rule, Value, bytes_of

if TYPE_CHECKING:
    from evergrow.estimators.linear.fitted import FittedRLS


@dataclass(frozen=True, repr=False)
class LeaveOneOut(Value):
    """Select ``"auto"`` parameters by predictions for stored examples.

    Each one is made by the model without this example. They have a closed form, so all examples are
    used for training. Pass it as `selection` to :class:`~evergrow.RLSClassifier`;
    ``selection="leave-one-out"`` is ``LeaveOneOut()``.

    Parameters
    ----------
    max_stored : int, default=2000
        Approximate number of examples that are stored: a uniform sample of each class, and at least
        two examples per class.

    Examples
    --------
    >>> from evergrow.estimators import LeaveOneOut, RLSClassifier
    >>> model = RLSClassifier(selection=LeaveOneOut(max_stored=2), random_state=0)
    >>> model.fit([[0], [1], [2], [8], [9]], [0, 0, 0, 1, 1]).n_stored_
    array([2, 2])
    """

    max_stored: int = 2000

    _rules: ClassVar[dict[str, list[Rule]]] = {"max_stored": [Integer(1)]}
    rule: ClassVar[SelectionRule] = "leave-one-out"
    # All may be stored, and learnt. With two examples, a class can be judged.
    every: ClassVar[int] = 1
    n_first: ClassVar[int] = 2
    refit: ClassVar[bool] = True


@dataclass(frozen=True, repr=False)
class HoldOut(Value):
    """Select ``"auto"`` parameters by the rule of the paper [Camoriano2017 Sec. VI-C].

    Some examples are held out. The penalty with the highest accuracy on them is selected, and the
    largest recoding that is not less accurate on them than a recoding of 0. Pass it as `selection`
    to :class:`~evergrow.RLSClassifier`.

    Parameters
    ----------
    every : int, default=6
        Every n-th example of each class is held out.
    refit : bool, default=True
        Whether the held-out examples are learnt too, after the selection. With False, as in the
        paper, they are never learnt. Can be changed at any time.
    max_stored : int, default=2000
        Approximate number of examples that are held out and stored.

    Examples
    --------
    >>> from evergrow.estimators import HoldOut, RLSClassifier
    >>> model = RLSClassifier(selection=HoldOut(every=2), random_state=0)
    >>> model.fit([[0], [1], [2], [8], [9]], [0, 0, 0, 1, 1]).n_stored_
    array([1, 1])
    """

    every: int = 6
    refit: bool = True
    max_stored: int = 2000

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "every": [Integer(2)],
        "refit": [Flag()],
        "max_stored": [Integer(1)],
    }
    rule: ClassVar[SelectionRule] = "hold-out"
    n_first: ClassVar[int] = 0


SELECTIONS: tuple[type[Value], ...] = (LeaveOneOut, HoldOut)
SELECTION_RULES: list[Rule] = [Choice((LeaveOneOut.rule,)), OneOf(SELECTIONS)]
_LEAVE_ONE_OUT = LeaveOneOut()


def selection_of(value: str | LeaveOneOut | HoldOut) -> LeaveOneOut | HoldOut:
    """Return the selection of a parameter, given by its name or as a value."""
    return _LEAVE_ONE_OUT if isinstance(value, str) else value


@dataclass(frozen=True)
class RLSRequest:
    """The parameters of one call."""

    selection: SelectionRequest
    ridge: Callable[[float], Ridge]
    judged_by: LeaveOneOut | HoldOut
    # These determine the sums.
    features: Features
    fit_intercept: bool
    keep_class_statistics: bool

    @classmethod
    def of(cls, estimator: Any) -> RLSRequest:
        """Copy the parameters from an estimator."""
        penalty, recoding = estimator.regularization, estimator.recoding
        standardize, intercept = bool(estimator.standardize), bool(estimator.fit_intercept)
        blocks, features = estimator.blocks, features_of(estimator.features)
        judged_by = selection_of(estimator.selection)
        if isinstance(features, Auto) and isinstance(judged_by, HoldOut):
            raise InvalidInputError(
                'the number of features="auto" is selected by leave-one-out: use features=ReLU(n) '
                'with a number, or selection="leave-one-out"'
            )
        if isinstance(features, (ReLU, RFF)) and blocks is not None:
            raise InvalidInputError(
                f"blocks={blocks} cannot be selected with features={features}, which mix the "
                'columns of all blocks: use blocks=None or features="auto"'
            )
        scoring: Scoring = estimator.scoring
        return cls(
            SelectionRequest(
                None if penalty == "auto" else float(penalty),
                None if recoding == "auto" else float(recoding),
                standardize,
                judged_by.rule,
                () if blocks is None else tuple(map(int, blocks)),
                scoring,
            ),
            partial(Ridge, standardize=standardize, intercept=intercept, scoring=scoring),
            judged_by,
            features,
            intercept,
            bool(estimator.keep_class_statistics),
        )

    @property
    def needs_examples(self) -> bool:
        """Whether examples are stored: something is to be selected, now or later."""
        return self.selection.needs_examples or isinstance(self.features, Auto)

    def n_affordable(self, n_inputs: int) -> int:
        """Return how many random features may follow the inputs; a multiple of four."""
        if not isinstance(self.features, Auto):
            return 0
        width = math.isqrt(bytes_of(self.features.max_memory) // 8)
        return max(0, width - n_inputs - self.fit_intercept) // 4 * 4

    def check(self, known: FittedRLS, action: str) -> None:
        """Raise a ``ValueError`` if a fitted value cannot change, or not under these parameters."""
        if known.fixed is not None:
            raise InvalidInputError(
                f"cannot {action}: the model was saved with inference_only=True and has only "
                "weights"
            )
        self.check_structure(known)

    def check_blocks(self, n_inputs: int) -> None:
        """Raise a ``ValueError`` if the blocks are not those of the features."""
        blocks = self.selection.blocks
        if blocks and sum(blocks) != n_inputs:
            raise InvalidInputError(
                f"blocks={blocks} have {sum(blocks)} columns together but X has {n_inputs}"
            )

    def check_structure(self, known: FittedRLS) -> None:
        """Raise a ``ValueError`` if parameters that determine the sums have changed."""
        self.check_blocks(known.features.n_inputs)
        if known.fixed is not None:
            return
        wanted, trained = self.features, known.features.parameter
        if isinstance(wanted, Auto) and isinstance(trained, Auto):
            trained = wanted
        if isinstance(wanted, RFF) and wanted.gamma == "scale" and isinstance(trained, RFF):
            wanted = replace(wanted, gamma=trained.gamma)
        has_own = known.moments.class_settled is not None
        for name, now, then in (
            ("fit_intercept", self.fit_intercept, known.intercept),
            ("features", wanted, trained),
            ("keep_class_statistics", self.keep_class_statistics, has_own),
        ):
            if now != then:
                raise InvalidInputError(
                    f"{name} is {now!r} but the model was trained with {then!r}: fit again to "
                    "change it"
                )
