"""Rejection by class means, ridge regression and covariances in plain NumPy, example by example.

Written to be read: which examples are held out, how strange each of them is, and the novelty
above which an example is rejected. Without an example means that everything is computed again.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PRIOR = 30.0
LEARNING = 1.0
STEADY = 0.1
EVEN = 3.0
MIN_HELD_OUT = 20
_BITS = 2**64 - 1


def priority(seed: int, name: Any, number: int) -> int:
    """A random number of 63 bits for the example of this number within its class."""
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    bits = (int.from_bytes(digest, "little") + (number + 1) * 0x9E3779B97F4A7C15) & _BITS
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _BITS
    return (bits ^ (bits >> 31)) >> 1


def cosine(a: Floats, b: Floats) -> float:
    """Cosine of the angle between two vectors; 0 if one has no direction."""
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0


def held_out(y: list[Any], seed: int, every: int, max_held_out: int) -> list[int]:
    """Places of the held-out examples that are kept."""
    share = max(1, max_held_out // len(set(y)))
    kept: list[int] = []
    for name in sorted(set(y)):
        places = [i for i, label in enumerate(y) if label == name]
        chosen = [number for number in range(len(places)) if (number + 1) % every == 0]
        chosen.sort(key=lambda number: priority(seed, name, number))
        kept += [places[number] for number in chosen[:share]]
    return kept


def shrinkage(X: Floats) -> float:
    """The penalty of ridge regression and covariances: a fifth of the mean square distance."""
    return float(0.2 * ((X - X.mean(axis=0)) ** 2).sum() / max(X.shape))


def ridge_scores(x: Floats, X: Floats, y: list[Any], weights: Floats, penalty: float) -> Floats:
    """Scores of all classes by ridge regression with an intercept that is not penalised."""
    names = sorted(set(y))
    targets = np.array([[float(label == name) for name in names] for label in y])
    centre, prior = np.average(X, axis=0, weights=weights), np.average(targets, 0, weights)
    V = X - centre
    slopes = np.linalg.solve(
        (V * weights[:, None]).T @ V + penalty * np.eye(X.shape[1]),
        (V * weights[:, None]).T @ (targets - prior),
    )
    return np.asarray(prior + (x - centre) @ slopes)


def recode(scores: Floats, y: list[Any], weights: Floats) -> Floats:
    """Scores divided by the square root of the class weight; the mean factor of examples is 1."""
    labels = np.array(y)
    factors = {name: weights[labels == name].sum() ** -0.5 for name in sorted(set(y))}
    mean = np.average([factors[label] for label in y], weights=weights)
    return np.asarray(scores * np.array(list(factors.values())) / mean)


def distances(
    x: Floats, X: Floats, y: list[Any], weights: Floats, penalty: float
) -> tuple[Floats, float]:
    """Squared Mahalanobis distances to each class mean, and to the mean of all."""
    labels, names = np.array(y), sorted(set(y))
    means = {n: np.average(X[labels == n], axis=0, weights=weights[labels == n]) for n in names}
    own = X - np.array([means[label] for label in y])
    centre = np.average(X, axis=0, weights=weights)
    ridge = penalty * np.eye(X.shape[1])
    within = (own * weights[:, None]).T @ own + ridge
    total = ((X - centre) * weights[:, None]).T @ (X - centre) + ridge
    apart = (x - centre) @ np.linalg.solve(total, x - centre)
    near = np.array([(x - means[n]) @ np.linalg.solve(within, x - means[n]) for n in names])
    return near, float(apart)


def others(
    x: Floats, X: Floats, y: list[Any], penalty: float, all_labels: list[Any] | None = None
) -> Floats:
    """The best ridge score, the lowest relative and the lowest distance, the length.

    Scores are recoded by the sizes of the classes with an example that is left out.
    """
    weights, labels = np.ones(len(X)), y if all_labels is None else all_labels
    scores = ridge_scores(x, X, y, weights, penalty)
    if len(set(labels)) == len(set(y)):
        scores = recode(scores, labels, np.ones(len(labels)))
    else:
        # The only example of its class: the others are as large as they were.
        kept = [name in set(y) for name in sorted(set(labels))]
        whole = np.zeros(len(kept))
        whole[kept] = scores
        scores = recode(whole, labels, np.ones(len(labels)))[kept]
    near, apart = distances(x, X, y, weights, penalty)
    return np.array([scores.max(), apart - near.min(), -near.min(), np.linalg.norm(x)])


def rehearse(X: Floats, y: list[Any], penalty: float) -> tuple[Floats, Floats]:
    """All scores of each example without it, and without all examples of its class."""
    labels, names = np.array(y), sorted(set(y))
    means = {name: X[labels == name].mean(axis=0) for name in names}
    origin = np.mean(list(means.values()), axis=0) / 2
    known: list[list[float]] = []
    unknown: list[list[float]] = []
    for i, name in enumerate(y):
        alone = np.arange(len(y)) == i
        siblings = (labels == name) & ~alone
        if not siblings.any():
            continue
        for found, gone in ((known, alone), (unknown, labels == name)):
            kept = {n: m for n, m in means.items() if n != name}
            if found is known:
                kept[name] = X[siblings].mean(axis=0)
            cosine_score = nearest(X[i], kept, origin)[1]
            sizes = y if found is known else None
            rest = others(X[i], X[~gone], labels[~gone].tolist(), penalty, sizes)
            found.append([cosine_score, *rest])
    return np.array(known), np.array(unknown)


def discriminant(known: Floats, unknown: Floats, used: npt.NDArray[np.bool_]) -> Floats:
    """Weights of the best of Fisher's discriminants without negative weights; they add up to 1."""
    spreads = known.std(axis=0)
    known, unknown = known / spreads, unknown / spreads
    covariance = (np.cov(known.T) + np.cov(unknown.T)) / 2 + STEADY * np.eye(len(spreads))
    difference = known.mean(axis=0) - unknown.mean(axis=0)
    best, shares = 0.0, np.zeros(len(spreads))
    for size in range(1, int(used.sum()) + 1):
        for some in map(list, itertools.combinations(np.flatnonzero(used), size)):
            weights = np.linalg.solve(covariance[np.ix_(some, some)], difference[some])
            if (weights >= 0).all() and weights @ difference[some] > best:
                best, shares = weights @ difference[some], np.zeros(len(spreads))
                shares[some] = weights / weights.sum()
    return shares


@dataclass
class Rejection:
    """Class means, where directions start, usual score and spread of each class, and the level."""

    means: dict[Any, Floats]
    origin: Floats
    usual: dict[Any, float]
    spreads: dict[Any, float]
    level: float
    # Mean, spread and weight of the cosine and the other scores, and the examples to compute them.
    scales: Floats
    examples: tuple[Floats, list[Any], float] | None = None

    def nearest(self, x: Floats) -> tuple[Any, float]:
        """Class of highest cosine, the first of equals, and the cosine."""
        return nearest(x, self.means, self.origin)

    def novelty(self, x: Floats) -> float:
        """How far the cosine to the nearest mean lies below the usual one, in spreads."""
        name, score = self.nearest(x)
        novelty = (self.usual[name] - score) / self.spreads[name]
        if self.examples is None:
            return novelty
        means, spreads, shares = self.scales
        below = (means[1:] - others(x, *self.examples)) / spreads[1:]
        return float(shares[0] * novelty + shares[1:] @ below)


def nearest(x: Floats, means: dict[Any, Floats], origin: Floats) -> tuple[Any, float]:
    """Class of highest cosine seen from the origin, the first of equals, and the cosine."""
    scores = {name: cosine(x - origin, mean - origin) for name, mean in means.items()}
    best = max(scores, key=lambda name: scores[name])
    return best, scores[best]


def learn(
    X: Floats,
    y: list[Any],
    seed: int,
    *,
    every: int,
    max_held_out: int,
    false_alarms: float,
    summed: bool = False,
) -> Rejection:
    """Calibrate on the held-out examples, each scored as if it had never been learnt.

    ``summed`` adds the other scores to the cosine.
    """
    names = sorted(set(y))
    labels = np.array(y)
    means = {name: X[labels == name].mean(axis=0) for name in names}
    origin = np.mean(list(means.values()), axis=0) / 2
    found: list[tuple[Any, float, float]] = []
    further: list[Floats] = []
    scored: list[Any] = []
    penalty = shrinkage(X)
    kept = held_out(y, seed, every, max_held_out)
    for i in kept:
        siblings = (labels == y[i]) & (np.arange(len(y)) != i)
        if not siblings.any():
            continue
        name, score = nearest(X[i], means | {y[i]: X[siblings].mean(axis=0)}, origin)
        # It also stands for its part of those that were evicted.
        weight = (y.count(y[i]) // every) / sum(y[k] == y[i] for k in kept)
        found.append((name, score, weight))
        scored.append(y[i])
        rest = np.arange(len(y)) != i
        left = [label for k, label in enumerate(y) if k != i]
        further.append(others(X[i], X[rest], left, penalty, y) if summed else np.zeros(4))
    usual = {name: _usual(name, found) for name in names}
    spreads = {name: _spread(name, found) for name in names}
    examples = (X, y, penalty) if summed else None
    if len(found) < MIN_HELD_OUT:
        return Rejection(means, origin, usual, spreads, float("inf"), np.ones((3, 5)), examples)
    scales = _scales(found, further)
    if summed:
        _, _, equal = scales
        stored = rehearse(X[kept], [y[i] for i in kept], penalty)
        certainty = len(names) / (len(names) + EVEN)
        scales[2] = (1 - certainty) * equal + certainty * discriminant(*stored, equal > 0)
    else:
        scales[2] = np.eye(5)[0]
    share = scales[2, 0]
    strange = ((scales[0, 1:] - np.array(further)) / scales[1, 1:]) @ scales[2, 1:]
    # Left out of classes with one example less than new examples will find.
    sizes = np.maximum([y.count(label) for label in scored], 5)
    strange = (strange - (1 - share) * LEARNING / (sizes * (sizes - 1))).tolist()
    novelties = sorted(
        (
            share * (max(_usual(name, found, without=k), usual[name]) - score) / spreads[name]
            + more,
            weight,
        )
        for k, ((name, score, weight), more) in enumerate(zip(found, strange, strict=True))
    )
    total, below = sum(weight for _, weight in novelties), 0.0
    for novelty, weight in novelties:
        below += weight
        if below >= (1 - false_alarms) * total * (1 - 1e-12):
            return Rejection(means, origin, usual, spreads, novelty, scales, examples)
    raise AssertionError("the shares add up to one")


def _scales(found: list[tuple[Any, float, float]], further: list[Floats]) -> Floats:
    """Means, spreads and equal weights of all scores; no weight for those that cannot be used."""
    names, cosines, weights = (list(part) for part in zip(*found, strict=True))
    scores = np.column_stack([cosines, further])
    middle = np.average(scores, axis=0, weights=weights)
    spread = np.sqrt(np.average((scores - middle) ** 2, axis=0, weights=weights))
    used = spread > 0
    for k in range(1, len(used)):
        used[k] &= _between(scores[:, k], names, weights) <= 0.9
    return np.array([middle, np.where(used, spread, 1.0), used / used.sum()])


def _between(scores: Floats, names: list[Any], weights: list[float]) -> float:
    """Share of the variance of scores that is between classes."""
    weighted = np.array(weights)
    mean = np.average(scores, weights=weighted)
    total = np.average((scores - mean) ** 2, weights=weighted)
    usual = np.zeros(len(scores))
    for name in sorted(set(names)):
        mine = np.array([other == name for other in names])
        usual[mine] = np.average(scores[mine], weights=weighted[mine])
    between = np.average((usual - mean) ** 2, weights=weighted)
    return float(between / total) if total else 0.0


def _usual(wanted: Any, found: list[tuple[Any, float, float]], without: int = -1) -> float:
    """Mean score of a class's examples, drawn towards that of all as by PRIOR more examples."""
    scores, weights = np.array([f[1] for f in found]), np.array([f[2] for f in found])
    if not len(found):
        return 0.0
    prior = PRIOR * weights.mean()
    pooled = weights @ scores / weights.sum()
    mine = np.array([name == wanted and k != without for k, (name, _, _) in enumerate(found)])
    total = weights[mine].sum() + prior
    return float((weights[mine] @ scores[mine] + prior * pooled) / total)


def _spread(wanted: Any, found: list[tuple[Any, float, float]]) -> float:
    """Root mean square distance from the usual score, drawn towards that of all in the same way."""
    if not found:
        return 1.0
    weights = np.array([weight for _, _, weight in found])
    squares = np.array([(score - _usual(name, found)) ** 2 for name, score, _ in found])
    prior = PRIOR * weights.mean()
    pooled = weights @ squares / weights.sum()
    mine = np.array([name == wanted for name, _, _ in found])
    total = weights[mine].sum() + prior
    return float(np.sqrt((weights[mine] @ squares[mine] + prior * pooled) / total)) or 1.0
