"""Selection of penalty, recoding and temperature.

By default a choice is judged on examples that are left out in turn, which has a closed form
(:mod:`evergrow.estimators.linear.leave_one_out`). The rule of [Camoriano2017 Sec. VI-C], on
held-out examples, is ``selection=HoldOut()``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from evergrow.estimators.linear.equations import Ridge
from evergrow.estimators.linear.leave_one_out import LeftOutExamples, Validation
from evergrow.estimators.linear.penalties import (
    Rule,
    SelectionRequest,
    best_blocks,
    best_penalty,
    penalty_unit,
)
from evergrow.estimators.sums.moments import Moments
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Flag, Integer, Number
from evergrow.storage.models.codec import MOST_COUNTED, Array, Fields, Nested, Several

Floats = npt.NDArray[np.float64]

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
