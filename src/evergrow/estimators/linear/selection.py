"""Selection of penalty, recoding and temperature.

By default a choice is judged on examples that are left out in turn, which has a closed form
(:mod:`evergrow.estimators.linear.leave_one_out`). The rule of [Camoriano2017 Sec. VI-C], on
held-out examples, is ``selection=HoldOut()``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from evergrow.estimators.linear.equations import SCORINGS, Ridge, Scoring
from evergrow.estimators.linear.leave_one_out import LeftOutExamples, Validation
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Choice, Flag, Integer, Nothing, Number
from evergrow.storage.models.codec import MOST_COUNTED, Array, Fields, Nested, Several

Floats = npt.NDArray[np.float64]

Rule = Literal["leave-one-out", "hold-out"]
RULES: tuple[Rule, ...] = ("leave-one-out", "hold-out")
# By leave-one-out the first penalties are these powers of ten times the default one. From the best
# of them the search moves by smaller steps, in quarters of a decade, as long as left-out examples
# are predicted better, beyond the first penalties too, but not beyond the limits.
_FIRST_DECADES = (-6, -4, -2, 0, 2)
_STEPS = (4, 2, 1)
_STEPS_PER_DECADE = 4
_LOWEST, _HIGHEST = 1e-10, 1e4
# With fewer examples to judge by, nothing is selected: as many as are left out in turn, or held
# out.
_FEWEST: dict[Rule, int] = {"leave-one-out": 10, "hold-out": 20}
# Penalties of the paper's rule, as multiples of `penalty_unit`: a coarse grid first, then the
# neighbours of the best one.
_PENALTIES = tuple(10.0**k for k in range(-5, 2))
# Recodings of the paper's rule, and those to choose among by leave-one-out.
_PAPER_RECODINGS = tuple(k / 10 for k in range(11))
_RECODINGS = tuple(k / 20 for k in range(21))
# The recoding is selected again when this share of the classes has grown or shrunk.
_MOVED_CLASSES = 0.01
# Accuracy of well-represented classes that recoding may cost if there are rare classes: those with
# less than this share of the examples of the median class.
_TOLERANCE = 0.01
_RARE = 0.25
DEFAULT_TEMPERATURE = 0.05


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


@dataclass(frozen=True, eq=False)
class Selection:
    """What was selected, for which request, and after how many examples."""

    penalty: float
    recoding: float
    temperature: float
    request: SelectionRequest
    # When the penalty was selected, and when the rest was.
    n_examples: int
    weight: float
    class_examples: npt.NDArray[np.int64]
    # The blocks of columns that take part.
    blocks: tuple[int, ...] = ()
    # Whether cosines are those of the equations of class means.
    by_means: bool = True

    _stored: ClassVar[Fields] = {
        "penalty": [Number(0.0)],
        "recoding": [Number(0.0, 1.0)],
        "temperature": [Number(0.0, open_low=True)],
        "request": Nested(SelectionRequest),
        "n_examples": [Integer(0, MOST_COUNTED)],
        "weight": [Number(0.0)],
        "class_examples": Array(np.int64, (None,), 0),
        "blocks": Several([Integer(0, MOST_COUNTED)]),
        "by_means": [Flag()],
    }

    def check_stored(self) -> None:
        """Raise a ``ValueError`` for blocks that there are not."""
        n_blocks, used = len(self.request.blocks), self.blocks
        fits = not used or (used[0] == 0 and [*used] == sorted({*used}) and used[-1] < n_blocks)
        if not fits or self.request.n_random_blocks > max(0, n_blocks - 1):
            raise InvalidInputError("it uses blocks that it does not have")

    def penalty_is_due(self, moments: Moments, request: SelectionRequest) -> bool:
        """Whether the examples or their weight have doubled or halved since the last selection."""
        now = np.array([moments.n_examples, moments.weight])
        moved = _n_moved(now, np.array([self.n_examples, self.weight])) > 0
        asked, before = (
            (r.penalty, r.standardize, r.rule, r.blocks, r.scoring) for r in (request, self.request)
        )
        return moved or asked != before

    def is_due(self, moments: Moments, request: SelectionRequest) -> bool:
        """Whether to select again: the request changed, or the examples did.

        That is, one in a hundred classes, and at least one, is new or its number of examples has
        doubled or halved.
        """
        if request != self.request or self.penalty_is_due(moments, request):
            return True
        then = np.zeros_like(moments.class_examples)
        then[: len(self.class_examples)] = self.class_examples
        n_moved = _n_moved(moments.class_examples, then)
        return n_moved >= max(1.0, _MOVED_CLASSES * moments.n_classes)


def _n_moved(now: npt.NDArray[Any], then: npt.NDArray[Any]) -> int:
    """Return how many numbers have doubled or halved; zero that stays zero has not."""
    return int((((now >= 2 * then) | (2 * now <= then)) & (now != then)).sum())


def are_enough(validation: Validation, rule: Rule) -> bool:
    """Whether there are enough examples of more than one class to select anything."""
    judged = validation.n_others > 0
    n_classes = len(np.unique(validation.held.codes[judged]))
    return n_classes > 1 and validation.count(judged) >= _FEWEST[rule]


def select(
    validation: Validation,
    last: Selection | None,
    ridge: Callable[[float], Ridge],
    request: SelectionRequest,
    *,
    force: bool = False,
) -> Selection | None:
    """Select what is requested; returns the last selection if no example has a vote.

    ``force`` selects the penalty again even if that is not due.
    """
    if not validation.votes.any():
        return last
    everything = validation.everything
    n_examples, weight = everything.n_examples, everything.weight
    blocks = tuple(range(len(request.blocks)))
    if isinstance(validation, LeftOutExamples):
        if last is not None and not force and not last.penalty_is_due(everything, request):
            blocks, n_examples, weight = last.blocks, last.n_examples, last.weight
            validation = _with_blocks(validation, ridge, request, blocks)
            same = replace(ridge(last.penalty), by_means=last.by_means)
            chosen = _Choice.of(validation, same)
        else:
            penalty, blocks = best_blocks(validation, ridge, request)
            validation = _with_blocks(validation, ridge, request, blocks)
            chosen = _choose_equations(validation, ridge, request, penalty)
    else:
        penalty, recoding = _select_as_paper(validation, ridge, request)
        chosen = _Choice(ridge(penalty), recoding, validation.scores(ridge(penalty)))
    recoding = chosen.recoding if request.recoding is None else request.recoding
    return Selection(
        chosen.ridge.penalty,
        recoding,
        _likeliest(validation, chosen.scores, recoding),
        request,
        n_examples,
        weight,
        everything.class_examples,
        blocks,
        chosen.ridge.by_means,
    )


@dataclass(frozen=True, eq=False)
class _Choice:
    """Equations to solve, the recoding for them, and the scores of left-out examples."""

    ridge: Ridge
    recoding: float
    scores: Floats

    @classmethod
    def of(cls, validation: LeftOutExamples, ridge: Ridge) -> _Choice:
        """Select the recoding for some equations."""
        scores = validation.scores(ridge)
        return cls(ridge, _largest_harmless(validation, scores), scores)


def _with_blocks(
    validation: LeftOutExamples,
    ridge: Callable[[float], Ridge],
    request: SelectionRequest,
    blocks: tuple[int, ...],
) -> LeftOutExamples:
    """Return the same examples with the features of some blocks."""
    used = replace(ridge(1.0), columns=request.columns(blocks))
    return validation.with_features(used.places(validation.everything.n_features))


def _choose_equations(
    validation: LeftOutExamples,
    ridge: Callable[[float], Ridge],
    request: SelectionRequest,
    penalty: float,
) -> _Choice:
    """Choose the equations of class means, or those of all examples if these are more accurate.

    They can be only if classes have different sizes. They must be more accurate over all examples,
    and not less accurate averaged over classes, or rare classes would pay for it. So every class
    must have examples enough to be judged.
    """
    by_means = _Choice.of(validation, ridge(penalty))
    everything, judged = validation.everything, validation.n_others > 0
    codes = validation.held.codes[judged]
    n_judged = np.bincount(codes, minlength=everything.n_classes)
    is_any_alone = ((everything.class_examples > 0) & (n_judged == 0)).any()
    if request.scoring != "cosine" or is_any_alone or not _are_unequal(everything):
        return by_means

    def with_examples(penalty: float) -> Ridge:
        return replace(ridge(penalty), by_means=False)

    penalty = request.penalty or best_penalty(validation, with_examples, penalty)
    by_examples = _Choice.of(validation, with_examples(penalty))
    right = [
        validation.recoded(choice.scores, choice.recoding)[judged].argmax(axis=1) == codes
        for choice in (by_examples, by_means)
    ]
    gains = right[0].astype(np.float64) - right[1]
    known = n_judged > 0
    by_class = np.bincount(codes, gains, everything.n_classes)[known] / n_judged[known]
    overall = float(np.average(gains, weights=validation.represented[judged]))
    return by_examples if overall > 0 and by_class.mean() >= 0 else by_means


def _are_unequal(moments: Moments) -> bool:
    """Whether a class weighs more than twice as much as another."""
    counts = moments.class_weights[moments.class_examples > 0]
    return bool(counts.max() > 2 * counts.min())


def fit_temperature(validation: Validation, ridge: Ridge, recoding: float) -> float:
    """Return the most likely temperature for a given penalty and recoding."""
    return _likeliest(validation, validation.scores(ridge), recoding)


def _select_as_paper(
    validation: Validation, ridge: Callable[[float], Ridge], request: SelectionRequest
) -> tuple[float, float]:
    """Return penalty and recoding by the rule of [Camoriano2017 Sec. VI-C].

    The best penalty is found for each recoding. Of the recodings the largest is taken whose
    accuracy is not below that of 0.
    """
    unit = penalty_unit(validation.trained, ridge(1.0))
    recodings = _PAPER_RECODINGS if request.recoding is None else (request.recoding,)
    # By penalty: the accuracy for each recoding.
    accuracies: dict[float, list[float]] = {}

    def attempt(penalty: float) -> None:
        if penalty not in accuracies:
            scores = validation.scores(ridge(penalty))
            accuracies[penalty] = [
                validation.accuracy(validation.recoded(scores, recoding)) for recoding in recodings
            ]

    def best(k: int) -> float:
        """Return the penalty with the highest accuracy for a recoding; of equals the largest."""
        return max(accuracies, key=lambda penalty: (accuracies[penalty][k], penalty))

    if request.penalty is not None:
        attempt(request.penalty)
    else:
        for multiple in _PENALTIES:
            attempt(multiple * unit)
        for middle in {best(k) for k in range(len(recodings))}:
            attempt(middle / 10**0.5)
            attempt(middle * 10**0.5)
    plain = accuracies[best(0)][0]
    chosen = max(k for k in range(len(recodings)) if accuracies[best(k)][k] >= plain)
    return best(chosen), recodings[chosen]


def _largest_harmless(validation: Validation, scores: Floats) -> float:
    """Return the largest recoding with the best accuracy of well-represented classes.

    For the sake of rare classes a loss of one point, or of one standard error if that is more, is
    allowed: with a stricter limit they would lose most of what recoding gives them.
    """
    accuracies = [
        validation.accuracy(validation.recoded(scores, recoding)) for recoding in _RECODINGS
    ]
    best, tolerance = max(accuracies), 0.0
    if has_rare_classes(validation.everything):
        n_votes = max(1, validation.count(validation.votes))
        tolerance = max(_TOLERANCE, (best * (1 - best) / n_votes) ** 0.5)
    pairs = zip(_RECODINGS, accuracies, strict=True)
    return max(recoding for recoding, accuracy in pairs if accuracy >= best - tolerance)


def has_rare_classes(moments: Moments) -> bool:
    """Whether a class has far fewer examples than the median class."""
    counts = moments.class_weights[moments.class_examples > 0]
    return bool(counts.min() < _RARE * np.median(counts))


def _likeliest(validation: Validation, scores: Floats, recoding: float) -> float:
    logits = validation.normalised(scores, recoding)
    # A class without other examples has no score and is ignored.
    seen = np.isfinite(logits[np.arange(len(logits)), validation.held.codes])
    weights = validation.held.weights[seen]
    one_example = float(weights.sum()) / max(1, validation.count(seen))
    return best_temperature(logits[seen], validation.held.codes[seen], weights, one_example)


def best_temperature(
    logits: Floats,
    codes: npt.NDArray[np.int32],
    weights: Floats | None = None,
    one_example: float = 1.0,
) -> float:
    """Return the temperature that maximises the likelihood of the examples.

    As if there were one more example that could belong to any class, with the weight
    ``one_example``: if no prediction is wrong, the likelihood alone would make the model certain of
    everything.
    """
    if not len(codes):
        return DEFAULT_TEMPERATURE
    own = logits[np.arange(len(codes)), codes]
    weights = np.ones(len(own)) if weights is None else weights
    known = np.isfinite(logits)
    level = np.where(known, logits, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    squares = np.where(known, logits - level[:, None], 0.0) ** 2
    spread = float(np.sqrt(np.average(squares.mean(axis=1), weights=weights)))
    if spread <= 0:
        return DEFAULT_TEMPERATURE

    def loss(log_temperature: float) -> float:
        temperature = np.exp(log_temperature)
        totals: Any = logsumexp(logits / temperature, axis=1)
        right = float(weights @ (totals - own / temperature))
        any_class = float(np.average(totals - level / temperature, weights=weights))
        return right + one_example * any_class

    found = minimize_scalar(
        loss,
        bounds=(np.log(1e-3 * spread), np.log(1e3 * spread)),
        method="bounded",
        options={"xatol": 0.01},
    )
    return float(np.exp(found.x))


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
