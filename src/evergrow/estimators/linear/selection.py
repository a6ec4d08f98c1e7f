"""Selection of penalty, recoding and temperature on held-out examples [Camoriano2017 Sec. VI-C]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from evergrow.estimators.linear.solver import Ridge, solve
from evergrow.estimators.sums.moments import Batch, Moments

Floats = npt.NDArray[np.float64]

# A class with fewer training examples has no influence on recoding and penalty.
_ENOUGH = 30
# With fewer held-out examples nothing is selected.
_FEWEST_HELD_OUT = 20
# Penalties to try, as multiples of `penalty_unit`: a coarse grid first, then the neighbours of the
# best one.
_PENALTIES = tuple(10.0**k for k in range(-5, 2))
_RECODINGS = tuple(k / 10 for k in range(11))
# Used until something is selected.
_DEFAULT_MULTIPLE = 0.01
DEFAULT_TEMPERATURE = 0.05


@dataclass(frozen=True)
class SelectionRequest:
    """The values that a caller asks for; None for those to be selected."""

    penalty: float | None
    recoding: float | None
    standardize: bool = False

    @property
    def needs_holdout(self) -> bool:
        """Whether there is anything to select."""
        return self.penalty is None or self.recoding is None


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

    def penalty_is_due(self, moments: Moments, request: SelectionRequest) -> bool:
        """Whether the examples or their weight have doubled or halved since the last selection."""
        now = np.array([moments.n_examples, moments.weight])
        moved = _has_moved(now, np.array([self.n_examples, self.weight]))
        asked, before = ((r.penalty, r.standardize) for r in (request, self.request))
        return moved or asked != before

    def is_due(self, moments: Moments, request: SelectionRequest) -> bool:
        """Whether to select again: the request changed, or the examples did.

        That is, the number of examples of any class has doubled or halved, or a class is new.
        """
        if request != self.request or self.penalty_is_due(moments, request):
            return True
        n_new = moments.n_classes - len(self.class_examples)
        return _has_moved(moments.class_examples, np.pad(self.class_examples, (0, n_new)))


def _has_moved(now: npt.NDArray[Any], then: npt.NDArray[Any]) -> bool:
    """Whether any number has doubled or halved; zero that stays zero has not."""
    return bool((((now >= 2 * then) | (2 * now <= then)) & (now != then)).any())


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out examples as features, the sums over all others, and the sums over all.

    Subclasses score examples in another way.
    """

    held: Batch
    trained: Moments
    everything: Moments

    def scores(self, ridge: Ridge) -> Floats:
        """Score the held-out examples, before recoding, with weights learnt without them."""
        return self.held.rows @ solve(self.trained, ridge).T

    def recoded(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores."""
        return scores * recode(self.trained, recoding)

    def normalised(self, scores: Floats, recoding: float) -> Floats:
        """Recode scores and bring them back to the scale of plain ones."""
        return normalised(scores, self.trained, recoding)

    @property
    def n_others(self) -> npt.NDArray[np.int64]:
        """Number of training examples of the class of each held-out example."""
        return self.trained.class_examples[self.held.codes]

    @cached_property
    def votes(self) -> npt.NDArray[np.bool_]:
        """Which held-out examples are from classes with enough training examples.

        Without any such class, those from classes with at least half as many as the largest.
        """
        counts = self.n_others
        enough: npt.NDArray[np.bool_] = counts >= _ENOUGH
        return enough if enough.any() else (counts > 0) & (2 * counts >= counts.max())


def are_enough(counts: npt.NDArray[np.int64]) -> bool:
    """Whether these numbers of held-out examples per class are enough to select anything."""
    return int(counts.sum()) >= _FEWEST_HELD_OUT and int(np.count_nonzero(counts)) > 1


def penalty_unit(moments: Moments, ridge: Ridge) -> float:
    """Return the unit of penalties: the mean square of the features times the total weight.

    With an intercept it is the variance instead, so that an offset of the features has no effect.
    Standardised features have a mean square of 1.
    """
    if ridge.standardize:
        return moments.weight
    squares = moments.squares
    if ridge.intercept:
        total = moments.sums.sum(axis=0)
        about_mean = squares - float(total @ total) / moments.weight
        # For constant features the difference is only rounding error.
        squares = about_mean if about_mean > 1e-12 * squares else squares
    return squares / moments.n_features if squares > 0 else 1.0


def default_penalty(moments: Moments, ridge: Ridge) -> float:
    """Return the penalty to use until one is selected.

    It is a power of two, so that it stays the same for many examples in a row and the solver can
    follow them one by one.
    """
    wanted = _DEFAULT_MULTIPLE * penalty_unit(moments, ridge)
    return float(2.0 ** np.round(np.log2(wanted)))


def recode(moments: Moments, recoding: float) -> Floats:
    """Return ``(total / count)^alpha`` per class, 0 without examples [Camoriano2017 Eq. 21]."""
    counts = moments.class_weights
    known = counts > 0
    ratio = np.divide(counts.sum(), counts, out=np.ones_like(counts), where=known)
    return np.where(known, ratio**recoding, 0.0)


def select(
    validation: Validation,
    last: Selection | None,
    ridge: Callable[[float], Ridge],
    request: SelectionRequest,
    *,
    force: bool = False,
) -> Selection | None:
    """Select what is requested; returns the last selection if no held-out example has a vote.

    ``force`` selects the penalty again even if that is not due.
    """
    if not validation.votes.any():
        return last
    n_examples, weight = validation.everything.n_examples, validation.everything.weight
    penalty = request.penalty
    if penalty is None:
        if last is None or force or last.penalty_is_due(validation.everything, request):
            penalty = _best_penalty(validation, ridge)
        else:
            penalty, n_examples, weight = last.penalty, last.n_examples, last.weight
    scores = validation.scores(ridge(penalty))
    recoding = request.recoding
    if recoding is None:
        recoding = _largest_harmless(validation, scores)
    return Selection(
        penalty,
        recoding,
        _likeliest(validation, scores, recoding),
        request,
        n_examples,
        weight,
        validation.everything.class_examples,
    )


def fit_temperature(validation: Validation, ridge: Ridge, recoding: float) -> float:
    """Return the most likely temperature for a given penalty and recoding."""
    return _likeliest(validation, validation.scores(ridge), recoding)


def _accuracy(scores: Floats, validation: Validation) -> float:
    votes = validation.votes
    right = scores[votes].argmax(axis=1) == validation.held.codes[votes]
    return float(np.average(right, weights=validation.held.weights[votes]))


def _best_penalty(validation: Validation, ridge: Callable[[float], Ridge]) -> float:
    """Return the penalty with the highest accuracy without recoding; of equals the largest."""
    unit = penalty_unit(validation.trained, ridge(1.0))
    tried: dict[float, float] = {}

    def attempt(multiple: float) -> None:
        if multiple not in tried:
            tried[multiple] = _accuracy(validation.scores(ridge(multiple * unit)), validation)

    for multiple in _PENALTIES:
        attempt(multiple)
    best = max(tried, key=lambda multiple: (tried[multiple], multiple))
    for neighbour in (best / 10**0.5, best * 10**0.5):
        attempt(neighbour)
    best = max(tried, key=lambda multiple: (tried[multiple], multiple))
    return best * unit


def _largest_harmless(validation: Validation, scores: Floats) -> float:
    """Return the largest recoding that does not lower the accuracy of well-represented classes.

    A loss of up to one standard error is allowed. A stricter limit would leave the decision to
    chance, and new classes would lose most of what recoding gives them.
    """
    plain = _accuracy(scores, validation)
    n_votes = max(1, int(validation.votes.sum()))
    tolerance = (plain * (1 - plain) / n_votes) ** 0.5
    harmless = 0.0
    for recoding in _RECODINGS:
        if _accuracy(validation.recoded(scores, recoding), validation) >= plain - tolerance:
            harmless = recoding
    return harmless


def normalising_factors(moments: Moments, recoding: float) -> Floats:
    """Return factors that recode scores and keep their scale; 0 for classes without examples."""
    factors = recode(moments, recoding)
    shares = moments.class_weights / moments.class_weights.sum()
    return factors / float(shares @ factors)


def normalised(scores: Floats, moments: Moments, recoding: float) -> Floats:
    """Recode scores and keep their scale; minus infinity for classes without examples."""
    factors = normalising_factors(moments, recoding)
    recoded: Floats = scores * factors
    recoded[:, factors == 0] = -np.inf
    return recoded


def _likeliest(validation: Validation, scores: Floats, recoding: float) -> float:
    held = validation.held
    return best_temperature(validation.normalised(scores, recoding), held.codes, held.weights)


def best_temperature(
    logits: Floats, codes: npt.NDArray[np.int32], importance: Floats | None = None
) -> float:
    """Return the temperature that maximises the likelihood of the held-out examples."""
    own = logits[np.arange(len(codes)), codes]
    # A class whose examples are all held out has no score and is ignored.
    seen = np.isfinite(own)

    # As if there were one more example that could belong to any class: if no prediction is wrong,
    # the likelihood alone would make the model certain of everything.
    logits, own = logits[seen], own[seen]
    known = np.isfinite(logits)
    weights = np.ones(len(own)) if importance is None else importance[seen]
    level = np.where(known, logits, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)

    def loss(log_temperature: float) -> float:
        temperature = np.exp(log_temperature)
        totals: Any = logsumexp(logits / temperature, axis=1)
        right = float(weights @ (totals - own / temperature))
        any_class = float(np.mean(totals - level / temperature))
        return right + float(weights.mean()) * any_class

    if not seen.any():
        return DEFAULT_TEMPERATURE
    found = minimize_scalar(
        loss,
        bounds=(np.log(1e-5), np.log(10.0)),
        method="bounded",
        options={"xatol": 0.01},
    )
    return float(np.exp(found.x))
