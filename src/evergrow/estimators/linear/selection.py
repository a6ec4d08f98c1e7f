"""Choosing penalty, recoding and temperature on held-out examples: Camoriano 2017, sec. VI-C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from evergrow.estimators.linear.ridge import Ridge, solve
from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.moments import Moments

__all__ = [
    "DEFAULT_TEMPERATURE",
    "Selection",
    "Validation",
    "Wish",
    "best_temperature",
    "default_penalty",
    "fit_temperature",
    "normalised",
    "normalising_factors",
    "recode",
    "select",
    "suffices",
]

Floats = npt.NDArray[np.float64]

# A class with fewer training examples does not vote on recoding or penalty.
_ENOUGH = 30
# From fewer held-out examples nothing is chosen.
_FEWEST_HELD_OUT = 20
# Penalties tried, as multiples of the unit below: a coarse grid first, then the neighbours of its
# best.
_PENALTIES = tuple(10.0**k for k in range(-5, 2))
_RECODINGS = tuple(k / 10 for k in range(11))
# Where nothing was chosen yet.
_DEFAULT_MULTIPLE = 0.01
DEFAULT_TEMPERATURE = 0.05


@dataclass(frozen=True)
class Wish:
    """Numbers that a caller asks for, None to be chosen, and for which features."""

    penalty: float | None
    recoding: float | None
    standardize: bool = False

    @property
    def holds_out(self) -> bool:
        """Whether there is anything to choose."""
        return self.penalty is None or self.recoding is None


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen, for which wish, and after how many examples."""

    penalty: float
    recoding: float
    temperature: float
    wish: Wish
    # When the penalty was chosen, and when the rest was.
    n_examples: int
    weight: float
    class_examples: npt.NDArray[np.int64]

    def penalty_is_due(self, moments: Moments, wish: Wish) -> bool:
        """Whether the examples, or their weight, have doubled or halved since it was chosen."""
        now = np.array([moments.n_examples, moments.weight])
        moved = _has_moved(now, np.array([self.n_examples, self.weight]))
        asked, before = ((w.penalty, w.standardize) for w in (wish, self.wish))
        return moved or asked != before

    def is_due(self, moments: Moments, wish: Wish) -> bool:
        """Whether the number of examples of any class has doubled or halved, or one is new.

        Or something else is asked for than then.
        """
        if wish != self.wish or self.penalty_is_due(moments, wish):
            return True
        n_new = moments.n_classes - len(self.class_examples)
        return _has_moved(moments.class_examples, np.pad(self.class_examples, (0, n_new)))


def _has_moved(now: npt.NDArray[Any], then: npt.NDArray[Any]) -> bool:
    """Whether any number has doubled or halved; nothing that stayed nothing has not."""
    return bool((((now >= 2 * then) | (2 * now <= then)) & (now != then)).any())


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out examples as features, the sums of all others, and those of all.

    Subclasses find scores of examples that were not learnt in another way.
    """

    held: Batch
    trained: Moments
    everything: Moments

    def scores(self, ridge: Ridge) -> Floats:
        """Scores of the held-out examples before recoding, by what was learnt without them."""
        scores: Floats = self.held.rows @ solve(self.trained, ridge).T
        return scores

    def recoded(self, scores: Floats, recoding: float) -> Floats:
        """Scores after recoding."""
        return scores * recode(self.trained, recoding)

    def normalised(self, scores: Floats, recoding: float) -> Floats:
        """Recoded scores on the scale of plain ones."""
        return normalised(scores, self.trained, recoding)

    @property
    def n_others(self) -> npt.NDArray[np.int64]:
        """Examples of its own class that each held-out example's scores were learnt from."""
        return self.trained.class_examples[self.held.codes]

    @cached_property
    def votes(self) -> npt.NDArray[np.bool_]:
        """Which held-out examples are of classes with enough training examples.

        As long as no such class is among them these are the ones with half as many as the largest.
        """
        counts = self.n_others
        enough: npt.NDArray[np.bool_] = counts >= _ENOUGH
        return enough if enough.any() else (counts > 0) & (2 * counts >= counts.max())


def suffices(counts: npt.NDArray[np.int64]) -> bool:
    """Whether so many held-out examples per class are enough to choose by."""
    return int(counts.sum()) >= _FEWEST_HELD_OUT and int(np.count_nonzero(counts)) > 1


def penalty_unit(moments: Moments, ridge: Ridge) -> float:
    """What penalties are multiples of: the mean square of the features, times all weights.

    About their mean where an intercept takes care of that, so that an offset changes nothing. The
    square of standardised features is 1.
    """
    if ridge.standardize:
        return moments.weight
    squares = moments.squares
    if ridge.intercept:
        total = moments.sums.sum(axis=0)
        about_mean = squares - float(total @ total) / moments.weight
        # What rounding leaves of features that do not vary is no unit.
        squares = about_mean if about_mean > 1e-12 * squares else squares
    return squares / moments.n_features if squares > 0 else 1.0


def default_penalty(moments: Moments, ridge: Ridge) -> float:
    """A penalty for as long as none was chosen.

    A power of two, so that it stays the same for many examples in a row and the weights can follow
    them one by one.
    """
    wanted = _DEFAULT_MULTIPLE * penalty_unit(moments, ridge)
    return float(2.0 ** np.round(np.log2(wanted)))


def recode(moments: Moments, recoding: float) -> Floats:
    """Diagonal of ``Gamma^alpha``: ``(total / count)^alpha`` per class; 0 without examples."""
    counts = moments.class_weights
    known = counts > 0
    ratio = np.divide(counts.sum(), counts, out=np.ones_like(counts), where=known)
    return np.where(known, ratio**recoding, 0.0)


def select(
    stream: Validation,
    last: Selection | None,
    ridge: Callable[[float], Ridge],
    wish: Wish,
    *,
    again: bool = False,
) -> Selection | None:
    """Choose what is wanted; the last choice where there is nothing to choose by.

    ``again`` chooses everything anew whether it is due or not.
    """
    if not stream.votes.any():
        return last
    n_examples, weight = stream.everything.n_examples, stream.everything.weight
    penalty = wish.penalty
    if penalty is None:
        if last is None or again or last.penalty_is_due(stream.everything, wish):
            penalty = _best_penalty(stream, ridge)
        else:
            penalty, n_examples, weight = last.penalty, last.n_examples, last.weight
    scores = stream.scores(ridge(penalty))
    recoding = wish.recoding
    if recoding is None:
        recoding = _largest_harmless(stream, scores)
    return Selection(
        penalty,
        recoding,
        _likeliest(stream, scores, recoding),
        wish,
        n_examples,
        weight,
        stream.everything.class_examples,
    )


def fit_temperature(stream: Validation, ridge: Ridge, recoding: float) -> float:
    """The temperature for given numbers."""
    scores = stream.scores(ridge)
    return _likeliest(stream, scores, recoding)


def _accuracy(scores: Floats, stream: Validation) -> float:
    votes = stream.votes
    right = scores[votes].argmax(axis=1) == stream.held.codes[votes]
    return float(np.average(right, weights=stream.held.weights[votes]))


def _best_penalty(stream: Validation, ridge: Callable[[float], Ridge]) -> float:
    """The penalty with the highest accuracy without recoding; of equals the largest."""
    unit = penalty_unit(stream.trained, ridge(1.0))
    tried: dict[float, float] = {}

    def attempt(multiple: float) -> None:
        if multiple not in tried:
            tried[multiple] = _accuracy(stream.scores(ridge(multiple * unit)), stream)

    for multiple in _PENALTIES:
        attempt(multiple)
    best = max(tried, key=lambda multiple: (tried[multiple], multiple))
    for neighbour in (best / 10**0.5, best * 10**0.5):
        attempt(neighbour)
    best = max(tried, key=lambda multiple: (tried[multiple], multiple))
    return best * unit


def _largest_harmless(stream: Validation, scores: Floats) -> float:
    """The largest recoding that does not measurably hurt classes with enough examples.

    Measurably: by more than one standard error of their accuracy. To the last example would let
    chance decide, and cost new classes most of what recoding can give them.
    """
    plain = _accuracy(scores, stream)
    n_votes = max(1, int(stream.votes.sum()))
    tolerance = (plain * (1 - plain) / n_votes) ** 0.5
    harmless = 0.0
    for recoding in _RECODINGS:
        if _accuracy(stream.recoded(scores, recoding), stream) >= plain - tolerance:
            harmless = recoding
    return harmless


def normalising_factors(moments: Moments, recoding: float) -> Floats:
    """What brings recoded scores to the scale of plain ones; 0 for classes without examples."""
    factors = recode(moments, recoding)
    shares = moments.class_weights / moments.class_weights.sum()
    return factors / float(shares @ factors)


def normalised(scores: Floats, moments: Moments, recoding: float) -> Floats:
    """Recoded scores on the scale of plain ones; minus infinity for classes without examples."""
    factors = normalising_factors(moments, recoding)
    recoded: Floats = scores * factors
    recoded[:, factors == 0] = -np.inf
    return recoded


def _likeliest(stream: Validation, scores: Floats, recoding: float) -> float:
    held = stream.held
    return best_temperature(stream.normalised(scores, recoding), held.codes, held.weights)


def best_temperature(
    logits: Floats, codes: npt.NDArray[np.int32], importance: Floats | None = None
) -> float:
    """The temperature with the highest likelihood of the held-out examples."""
    own = logits[np.arange(len(codes)), codes]
    # A class of which every example is held out has no score; it says nothing of the temperature.
    seen = np.isfinite(own)

    # As if one more example could be of any class: where none is wrong the likelihood alone would
    # have the model sure of everything.
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
