"""Rejection by the cosine to class means in plain NumPy, example by example.

Written to be read: which examples are held out, how strange each of them is, and the novelty
above which an example is rejected.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PRIOR = 30.0
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


@dataclass
class Rejection:
    """Class means, where directions start, usual score and spread of each class, and the level."""

    means: dict[Any, Floats]
    origin: Floats
    usual: dict[Any, float]
    spreads: dict[Any, float]
    level: float

    def nearest(self, x: Floats) -> tuple[Any, float]:
        """Class of highest cosine, the first of equals, and the cosine."""
        return nearest(x, self.means, self.origin)

    def novelty(self, x: Floats) -> float:
        """How far the cosine to the nearest mean lies below the usual one, in spreads."""
        name, score = self.nearest(x)
        return (self.usual[name] - score) / self.spreads[name]


def nearest(x: Floats, means: dict[Any, Floats], origin: Floats) -> tuple[Any, float]:
    """Class of highest cosine seen from the origin, the first of equals, and the cosine."""
    scores = {name: cosine(x - origin, mean - origin) for name, mean in means.items()}
    best = max(scores, key=lambda name: scores[name])
    return best, scores[best]


def learn(
    X: Floats, y: list[Any], seed: int, *, every: int, max_held_out: int, false_alarms: float
) -> Rejection:
    """Calibrate on the held-out examples, each scored as if it had never been learnt."""
    names = sorted(set(y))
    labels = np.array(y)
    means = {name: X[labels == name].mean(axis=0) for name in names}
    origin = np.mean(list(means.values()), axis=0) / 2
    found: list[tuple[Any, float, float]] = []
    kept = held_out(y, seed, every, max_held_out)
    for i in kept:
        others = (labels == y[i]) & (np.arange(len(y)) != i)
        if not others.any():
            continue
        name, score = nearest(X[i], means | {y[i]: X[others].mean(axis=0)}, origin)
        # It also stands for its part of those that were let go.
        weight = (y.count(y[i]) // every) / sum(y[k] == y[i] for k in kept)
        found.append((name, score, weight))
    usual = {name: _usual(name, found) for name in names}
    spreads = {name: _spread(name, found) for name in names}
    if len(found) < MIN_HELD_OUT:
        return Rejection(means, origin, usual, spreads, float("inf"))
    novelties = sorted(
        ((max(_usual(name, found, without=k), usual[name]) - score) / spreads[name], weight)
        for k, (name, score, weight) in enumerate(found)
    )
    total, below = sum(weight for _, weight in novelties), 0.0
    for novelty, weight in novelties:
        below += weight
        if below >= (1 - false_alarms) * total * (1 - 1e-12):
            return Rejection(means, origin, usual, spreads, novelty)
    raise AssertionError("the shares add up to one")


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
