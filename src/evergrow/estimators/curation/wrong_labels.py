"""Labels that the other examples contradict.

An example's scores by a model of other examples do not depend on its own label. So the labels that
were given can be compared with labels drawn at random for the same scores: this shows, without any
known mistakes, which model, penalty and temperature tell right labels from wrong ones best, how
many labels are wrong, and how likely each one is.

Least squares on coded labels finds the best class, but says little about how unlikely the others
are. Softmax regression does say it, because it minimises the cross entropy. It has no closed form
for leave-one-out scores, so it is fitted once per fold, with few iterations and on the leading
principal components only, to bound the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import fmin_l_bfgs_b
from scipy.special import logsumexp
from sklearn.isotonic import IsotonicRegression

from evergrow.estimators.linear.ridge import Codes, RidgeFit, RotatedRidge, blocks_of

# Penalties in half decades of the unit, from the first to the last power of the root of ten; the
# grid is widened while the best one is at an edge.
_FIRST, _LAST, _WIDEN = -3, 3, 4
# In units of the spread of the scores.
_TEMPERATURES = tuple(np.geomspace(0.02, 2.56, 8).tolist())
# A penalty that leaves the model almost free to interpolate fools leave-one-out.
MOST_FREEDOM = 0.9
# Examples, and random labels for all of them together, that choose penalty and temperature.
_CHOICE_SAMPLE, _CHOICE_LABELS = 4000, 20000
# Shares of given labels that may be suspected; the mean over them counts.
_SUSPECTED = np.linspace(0.005, 0.1, 20)
# Share of random labels that must lie below a level to estimate how many labels are wrong.
_FEWEST_BELOW = 0.2
# Folds of softmax regression: five find no more wrong labels and take twice the time.
_N_FOLDS = 3
_ITERATIONS = 25
# The penalty of all examples together, per feature, for features whose mean variance is one: the
# logits that the penalty makes likely then do not depend on the numbers of features or examples.
_PENALTY = 0.5
# Its products in one pass over the examples, and numbers of features in memory.
_MOST_PRODUCTS, _MOST_NUMBERS = 1.3e9, 5e7
# Components: more find no more wrong labels, and with fewer too little of the features is left.
_MOST_COMPONENTS, _FEWEST_COMPONENTS = 256, 64


@dataclass(frozen=True, eq=False)
class Contrast:
    """Log probabilities of given and of random labels, each sorted."""

    given: npt.NDArray[np.float32]
    random: npt.NDArray[np.float32]

    @property
    def separation(self) -> float:
        """Share of random labels below the lowest given ones, the mean over several shares."""
        levels = np.quantile(self.given, _SUSPECTED)
        return float(np.searchsorted(self.random, levels, side="right").mean() / len(self.random))

    @property
    def share_wrong(self) -> float:
        """Upper estimate of the share of wrong labels.

        A wrong label is as low as a random one. So at any level, the share of given labels below it
        is at least the share of wrong labels times the share of random labels below it.
        """
        first = int(_FEWEST_BELOW * len(self.random))
        places = np.unique(np.linspace(first, len(self.random) - 1, 200).astype(np.int64))
        levels = self.random[places]
        below = np.searchsorted(self.random, levels, side="right") / len(self.random)
        n_given = np.searchsorted(self.given, levels, side="right")
        # A standard error and one more, because the smallest of many estimates is too low and a
        # single wrong label among few examples must not be ruled out.
        n_given = n_given + np.sqrt(n_given) + 1
        return min(1.0, float((n_given / (len(self.given) + 1) / below).min()))

    def certainty(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Probability that labels with these log probabilities are wrong."""
        # Levels below all given labels count for the lowest of these.
        both = np.concatenate([self.given, np.maximum(self.random, self.given[0])])
        counts = [len(self.given), len(self.random)]
        drawn = np.repeat([0.0, 1.0], counts)
        weights = np.repeat(1.0 / np.array(counts), counts)
        fit = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=False, out_of_bounds="clip")
        fit.fit(both, drawn, sample_weight=weights)
        shares = np.asarray(fit.predict(values), dtype=np.float64)
        odds = shares / np.maximum(1.0 - shares, 1e-12)
        return np.minimum(self.share_wrong * odds, 1.0)


@dataclass(frozen=True, eq=False)
class Detector:
    """The temperature that tells given labels best from random ones, and how well it does."""

    temperature: float
    contrast: Contrast


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What the other examples say about each label.

    Attributes
    ----------
    certainty : ndarray of shape (n_samples,)
        Probability that the label is wrong; NaN where the example is the only one of its class.
    quality : ndarray of shape (n_samples,)
        Log probability of the label by the other examples: the lowest are the most suspicious.
    suggestion : ndarray of shape (n_samples,)
        Code of the most probable other class.
    probability : ndarray of shape (n_samples,)
        Probability of the suggestion by the other examples.
    share_wrong : float
        Upper estimate of the share of wrong labels.
    """

    certainty: npt.NDArray[np.float64]
    quality: npt.NDArray[np.float32]
    suggestion: npt.NDArray[np.int64]
    probability: npt.NDArray[np.float32]
    share_wrong: float

    @property
    def is_contradicted(self) -> npt.NDArray[np.bool_]:
        """Whether the suggestion is more probable than the label."""
        return np.asarray(self.probability > np.exp(self.quality))

    @property
    def ranking(self) -> npt.NDArray[np.int64]:
        """Examples that can be judged, the most suspicious first."""
        judged = np.flatnonzero(np.isfinite(self.certainty))
        return judged[np.argsort(self.quality[judged], kind="stable")]


def judge_labels(
    ridge: RotatedRidge,
    rows: npt.NDArray[Any],
    codes: Codes,
    seed: int = 0,
    *,
    in_folds: bool = True,
) -> tuple[RidgeFit | None, Verdicts]:
    """Judge the labels of examples that are in the sums; no fit without two classes.

    The judge is ridge regression of all others in closed form. With ``in_folds``, which needs all
    examples of the sums, softmax regression of other folds is tried too, and the one with the
    clearer contrast is taken.
    """
    n = len(codes)
    judged, possible = ridge.class_counts[codes] > 1, ridge.class_counts > 0
    certainty = np.full(n, np.nan)
    quality, probability = np.zeros((2, n), dtype=np.float32)
    suggestion = codes.astype(np.int64)
    if int(possible.sum()) < 2 or not judged.any():
        return None, Verdicts(certainty, quality, suggestion, probability, 0.0)
    sample = _Sample.of(codes, judged, possible, seed)
    penalty, detector = _choose(ridge, rows, sample)
    fit = ridge.fit(penalty, rows, codes)
    by_folds = held_out_logits(ridge, rows, codes, seed) if in_folds else None
    if by_folds is not None:
        other = sample.best_temperature(by_folds[sample.rows])
        if other.contrast.separation > detector.contrast.separation:
            detector = other
        else:
            by_folds = None
    for part in fit.blocks():
        own = (np.arange(len(codes[part])), codes[part])
        scores = fit.left_out(part) if by_folds is None else by_folds[part]
        logits = np.where(possible, scores, -np.inf)
        logits /= np.float32(detector.temperature)
        logits -= logsumexp(logits, axis=1, keepdims=True)
        quality[part] = logits[own]
        logits[own] = -np.inf
        suggestion[part] = logits.argmax(axis=1)
        probability[part] = np.exp(logits.max(axis=1))
    certainty[judged] = detector.contrast.certainty(quality[judged])
    share_wrong = detector.contrast.share_wrong
    return fit, Verdicts(certainty, quality, suggestion, probability, share_wrong)


def _choose(ridge: RotatedRidge, rows: npt.NDArray[Any], sample: _Sample) -> tuple[float, Detector]:
    """Choose penalty and temperature on a sample of the examples."""
    rotated = ridge.rotated(rows[sample.rows])
    tried: dict[int, Detector] = {}

    def attempt(step: int) -> None:
        penalty = 10.0 ** (step / 2) * ridge.unit
        if step not in tried and (step >= _LAST or ridge.freedom(penalty) <= MOST_FREEDOM):
            scores = ridge.left_out(rotated, sample.codes, penalty)
            tried[step] = sample.best_temperature(scores)

    for step in range(_FIRST, _LAST + 1):
        attempt(step)
    for _ in range(_WIDEN):
        best = _best_step(tried)
        attempt(best - 1)
        attempt(best + 1)
        if best == _best_step(tried):
            break
    best = _best_step(tried)
    return 10.0 ** (best / 2) * ridge.unit, tried[best]


def _best_step(tried: dict[int, Detector]) -> int:
    """Return the step with the clearest contrast; of equals the largest penalty."""
    return max(tried, key=lambda step: (tried[step].contrast.separation, step))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some of the examples, and other labels that are drawn for them."""

    rows: npt.NDArray[np.int64]
    codes: Codes
    drawn: npt.NDArray[np.int64]
    possible: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        codes: Codes,
        judged: npt.NDArray[np.bool_],
        possible: npt.NDArray[np.bool_],
        seed: int,
    ) -> _Sample:
        """Draw examples that can be judged, and labels for them."""
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.permutation(np.flatnonzero(judged))[:_CHOICE_SAMPLE])
        drawn = _random_labels(np.flatnonzero(possible), codes[rows], rng)
        return cls(rows, codes[rows], drawn, possible)

    def best_temperature(self, scores: npt.NDArray[np.float32]) -> Detector:
        """Return the temperature of these scores with the clearest contrast."""
        places = np.arange(len(self.codes))
        given, random = scores[places, self.codes], scores[places[:, None], self.drawn]
        scores = np.where(self.possible, scores, -np.inf)
        # Scores of softmax regression are wider than those of least squares.
        scale = float(np.std(given - random.mean(axis=1))) or 1.0
        found = []
        for temperature in (scale * t for t in _TEMPERATURES):
            total = logsumexp(scores / temperature, axis=1)
            contrast = Contrast(
                np.sort(given / temperature - total),
                np.sort((random / temperature - total[:, None]).ravel()),
            )
            found.append(Detector(temperature, contrast))
        return max(found, key=lambda one: one.contrast.separation)


def _random_labels(
    classes: npt.NDArray[np.int64], own: Codes, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw other labels for each example, of shape (n_samples, n_draws); all of few."""
    n_draws = max(1, min(len(classes) - 1, -(-_CHOICE_LABELS // len(own))))
    shifts = rng.integers(1, len(classes), (len(own), n_draws))
    if n_draws == len(classes) - 1:
        shifts = np.broadcast_to(np.arange(1, len(classes)), shifts.shape)
    places = np.searchsorted(classes, own)
    drawn: npt.NDArray[np.int64] = classes[(places[:, None] + shifts) % len(classes)]
    return drawn


def held_out_logits(
    ridge: RotatedRidge, rows: npt.NDArray[Any], codes: Codes, seed: int
) -> npt.NDArray[np.float32] | None:
    """Score all examples of the sums by other folds; None if that would take too long."""
    n, n_classes = len(codes), len(ridge.class_counts)
    n_all = len(ridge.eigenvalues)
    limits = (_MOST_PRODUCTS / (n * n_classes), _MOST_NUMBERS / n, n_all, _MOST_COMPONENTS)
    n_most = int(min(limits))
    if n_most < min(_FEWEST_COMPONENTS, n_all) or not n_most:
        return None
    leading = np.argsort(-ridge.eigenvalues, kind="stable")[:n_most]
    scale = np.float32(np.sqrt(ridge.n_examples / ridge.unit))
    inputs = np.empty((n, n_most), dtype=np.float32)
    basis = ridge.basis[:, leading] * scale
    for part in blocks_of(rows, n_most):
        inputs[part] = ridge.centred(rows[part]) @ basis
    folds = _deal(codes, seed)
    logits = np.empty((n, n_classes), dtype=np.float32)
    for fold in range(_N_FOLDS):
        held = folds == fold
        penalty = _PENALTY * len(ridge.mean) / np.count_nonzero(~held)
        weights, offsets = fit_softmax(inputs[~held], codes[~held], n_classes, penalty)
        logits[held] = inputs[held] @ weights + offsets
    return logits


def _deal(codes: Codes, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each example; the examples of each class are dealt out in turn."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=np.int64)
    folds[order] = np.arange(len(codes)) % _N_FOLDS
    return folds


def fit_softmax(
    inputs: npt.NDArray[np.float32],
    codes: Codes,
    n_classes: int,
    penalty: float,
    iterations: int = _ITERATIONS,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Minimise the mean cross entropy plus half the penalty times the squared weights.

    Returns weights of shape (n_features, n_classes), and an offset per class.
    """
    n, d = inputs.shape
    places = np.arange(n)

    def loss(flat: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        weights = flat[: d * n_classes].reshape(d, n_classes).astype(np.float32)
        shares = inputs @ weights
        shares += flat[d * n_classes :].astype(np.float32)
        shares -= shares.max(axis=1, keepdims=True)
        own = float(shares[places, codes].sum(dtype=np.float64))
        np.exp(shares, out=shares)
        totals = shares.sum(axis=1, keepdims=True)
        shares /= totals
        shares[places, codes] -= 1.0
        slopes = inputs.T @ shares / n + penalty * weights
        entropy = (float(np.log(totals).sum(dtype=np.float64)) - own) / n
        squares = float((weights.astype(np.float64) ** 2).sum())
        both = np.concatenate([slopes.ravel(), shares.mean(axis=0)]).astype(np.float64)
        return entropy + 0.5 * penalty * squares, both

    counts = np.bincount(codes, minlength=n_classes)
    start = np.concatenate([np.zeros(d * n_classes), np.log((counts + 0.5) / n)])
    flat, _, _ = fmin_l_bfgs_b(loss, start, maxiter=iterations, m=6)
    flat = flat.astype(np.float32)
    return flat[: d * n_classes].reshape(d, n_classes), flat[d * n_classes :]
