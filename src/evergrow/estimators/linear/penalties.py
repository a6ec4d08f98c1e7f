"""Which penalty, and which blocks of features, predict left-out examples best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from evergrow.estimators.linear.equations import SCORINGS, Ridge, Scoring
from evergrow.estimators.linear.leave_one_out import LeftOutExamples
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.params import Choice, Flag, Integer, Nothing, Number
from evergrow.storage.models.codec import MOST_COUNTED, Fields, Several

Rule = Literal["leave-one-out", "hold-out"]
RULES: tuple[Rule, ...] = ("leave-one-out", "hold-out")
# By leave-one-out the first penalties are these powers of ten times the default one. From the best
# of them the search moves by smaller steps, in quarters of a decade, as long as left-out examples
# are predicted better, beyond the first penalties too, but not beyond the limits.
_FIRST_DECADES = (-6, -4, -2, 0, 2)
_STEPS = (4, 2, 1)
_STEPS_PER_DECADE = 4
_LOWEST, _HIGHEST = 1e-10, 1e4


@dataclass(frozen=True)
class SelectionRequest:
    """The values that a caller asks for; None for those to be selected."""

    penalty: float | None
    recoding: float | None
    standardize: bool = False
    rule: Rule = "leave-one-out"
    # Widths of blocks of columns among which to select; the first always takes part.
    blocks: tuple[int, ...] = ()
    scoring: Scoring = "cosine"
    # How many of the last blocks are random features: of these, earlier ones are used first.
    n_random_blocks: int = 0

    _stored: ClassVar[Fields] = {
        "penalty": [Nothing(), Number(0.0)],
        "recoding": [Nothing(), Number(0.0)],
        "standardize": [Flag()],
        "rule": [Choice(RULES)],
        "blocks": Several([Integer(0, MOST_COUNTED)]),
        "scoring": [Choice(SCORINGS)],
        "n_random_blocks": [Integer(0, MOST_COUNTED)],
    }

    @property
    def needs_examples(self) -> bool:
        """Whether there is anything to select."""
        return self.penalty is None or self.recoding is None or len(self.blocks) > 1

    def columns(self, used: Sequence[int]) -> tuple[tuple[int, int], ...] | None:
        """Return the ranges of columns of some blocks; None for all."""
        if len(used) >= len(self.blocks):
            return None
        ends = np.cumsum(self.blocks).tolist()
        return tuple((ends[k] - self.blocks[k], ends[k]) for k in used)

    def n_random_used(self, used: Sequence[int]) -> int:
        """Return how many random features are in some blocks."""
        first = len(self.blocks) - self.n_random_blocks
        return sum(self.blocks[k] for k in used if k >= first)

    def next_blocks(self, left: Sequence[int]) -> list[int]:
        """Return the blocks that may be used next, of those that are left."""
        first = len(self.blocks) - self.n_random_blocks
        ordered = [k for k in left if k >= first]
        return [k for k in left if k < first] + ordered[:1]


def total_square(moments: Moments, ridge: Ridge) -> float:
    """Return the weighted sum of squared lengths of the examples.

    With an intercept they are measured from their mean, so that an offset of the features has no
    effect. Standardised features have a mean square of 1.
    """
    if ridge.standardize:
        return moments.weight * moments.n_features
    squares = moments.squares
    if ridge.intercept:
        # Without the constant feature, next to which small features are rounding errors.
        squares -= moments.weight
        if moments.settled is not None:
            squares = float(moments.diagonal[:-1].sum())
        total = moments.sums.sum(axis=0)[:-1]
        about_mean = squares - float(total @ total) / moments.weight
        # For constant features the difference is only rounding error.
        squares = about_mean if about_mean > 1e-12 * squares else squares
    return squares


def penalty_unit(moments: Moments, ridge: Ridge) -> float:
    """Return the unit of penalties: the mean square of the features times the total weight."""
    return total_square(moments, ridge) / moments.n_features or 1.0


def default_penalty(moments: Moments, ridge: Ridge) -> float:
    """Return the penalty to use until one is selected: the mean squared length of the examples.

    With one example per class, it is close to the best one for image features of any number. It is
    a power of two, so that it stays the same for many examples in a row and the solver can follow
    them one by one.
    """
    wanted = total_square(moments, ridge) / moments.weight or 1.0
    return float(2.0 ** np.round(np.log2(wanted)))


def best_blocks(
    validation: LeftOutExamples, ridge: Callable[[float], Ridge], request: SelectionRequest
) -> tuple[float, tuple[int, ...]]:
    """Return the penalty, and the blocks that predict left-out examples best.

    It begins with the first block and adds the most useful one as long as the left-out examples
    are predicted measurably better: not less accurately, and by more than two standard errors. So a
    block that only might help is not used.
    """

    def attempt(used: tuple[int, ...], near: float | None) -> tuple[LeftOutExamples, float]:
        columns = request.columns(used)
        places = replace(ridge(1.0), columns=columns).places(validation.everything.n_features)
        some = validation.with_features(places)
        return some, request.penalty or best_penalty(some, ridge, near)

    used: tuple[int, ...] = (0,) if request.blocks else ()
    best = attempt(used, None)
    left = list(range(1, len(request.blocks)))
    while left:
        next_ones = request.next_blocks(left)
        tried = {k: attempt(tuple(sorted((*used, k))), best[1]) for k in next_ones}
        most_useful = max(next_ones, key=lambda k: tried[k][0].quality(ridge(tried[k][1])))
        if not _is_better(tried[most_useful], best, ridge):
            break
        used, best = tuple(sorted((*used, most_useful))), tried[most_useful]
        left.remove(most_useful)
    return best[1], used


def _is_better(
    more: tuple[LeftOutExamples, float],
    fewer: tuple[LeftOutExamples, float],
    ridge: Callable[[float], Ridge],
) -> bool:
    """Whether examples are predicted measurably better, each by its own features and penalty."""
    now, before = (stream.judge(ridge(penalty)) for stream, penalty in (more, fewer))
    if now is None or before is None:
        return now is not None
    gain, weights = now.qualities - before.qualities, now.weights
    n_judged = fewer[0].count(fewer[0].n_others > 0)
    mean = float(np.average(gain, weights=weights))
    error = (float(np.average((gain - mean) ** 2, weights=weights)) / n_judged) ** 0.5
    return mean > 2 * error and float(weights @ now.right) >= float(weights @ before.right)


def best_penalty(
    validation: LeftOutExamples, ridge: Callable[[float], Ridge], near: float | None = None
) -> float:
    """Return the penalty that predicts left-out examples best; of equals the largest.

    ``near`` is a penalty to begin with, if a good one is known.
    """
    default = default_penalty(validation.everything, ridge(1.0))
    start = near or default
    tried: dict[int, float] = {}

    def penalty(step: int) -> float:
        return float(start * 10.0 ** (step / _STEPS_PER_DECADE))

    def quality(step: int) -> tuple[float, int]:
        if step not in tried:
            tried[step] = validation.quality(ridge(penalty(step)))
        return tried[step], step

    decades = (0,) if near else _FIRST_DECADES
    best = max((_STEPS_PER_DECADE * decade for decade in decades), key=quality)
    for width in _STEPS:
        while True:
            nearby = [
                step
                for step in (best - width, best + width)
                if _LOWEST <= penalty(step) / default <= _HIGHEST
            ]
            better = max([best, *nearby], key=quality)
            if better == best:
                break
            best = better
    return penalty(best) if tried[best] > -np.inf else start
