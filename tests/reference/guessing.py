"""Guessing fine classes in plain NumPy, sample by sample.

The nearest neighbour within the coarse class is [Ristin2015 Sec. 4.3]. Ridge regression is fitted
again for every sample that is left out. The paper has two levels; with more, guesses go down level
by level.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Known samples, their classes and samples to guess, all of one class above.
Guess = Callable[[Floats, Ints, Floats], Ints]


def squared_distance(x: Floats, z: Floats) -> float:
    """Sum of squared differences, rounded once."""
    return math.fsum((float(a) - float(b)) ** 2 for a, b in zip(x, z, strict=True))


def nearest(known: Floats, x: Floats, allowed: list[int]) -> int:
    """The nearest allowed row, of equals the first; -1 if none is allowed."""
    best, smallest = -1, math.inf
    for i in allowed:
        distance = squared_distance(known[i], x)
        if distance < smallest:
            best, smallest = i, distance
    return best


def nearest_without_fold(known: Floats, folds: Ints) -> list[int]:
    """The nearest row of another fold for each row."""
    return [
        nearest(known, x, [i for i in range(len(known)) if folds[i] != fold])
        for x, fold in zip(known, folds, strict=True)
    ]


def one_hot(fine: Ints, classes: Ints) -> Floats:
    """A row per sample with a 1 in the column of its class."""
    return np.array([[1.0 if label == c else 0.0 for c in classes] for label in fine])


def ridge_scores(X: Floats, targets: Floats, penalty: float, queries: Floats) -> Floats:
    """Predictions of a ridge regression with an intercept that is not penalised."""
    mean, offset = X.mean(axis=0), targets.mean(axis=0)
    Z = X - mean
    weights = np.linalg.solve(Z.T @ Z + penalty * np.eye(X.shape[1]), Z.T @ (targets - offset))
    scores: Floats = (queries - mean) @ weights + offset
    return scores


def held_out_scores(X: Floats, targets: Floats, penalty: float, folds: Ints) -> Floats:
    """Predictions for each row of a regression without the rows of its fold."""
    scores = []
    for x, fold in zip(X, folds, strict=True):
        rest = folds != fold
        scores.append(ridge_scores(X[rest], targets[rest], penalty, x[None])[0])
    return np.array(scores)


def left_out_error(X: Floats, targets: Floats, penalty: float) -> float:
    """Squared error when each row is predicted from all others."""
    scores = held_out_scores(X, targets, penalty, np.arange(len(X)))
    return float(((targets - scores) ** 2).sum())


def penalty_unit(X: Floats) -> float:
    """Mean squared distance of a row from the mean."""
    return float(((X - X.mean(axis=0)) ** 2).sum() / len(X))


def choose_penalty(X: Floats, targets: Floats, penalties: Floats) -> float:
    """The penalty with the smallest error, of equals the largest."""
    best, smallest = math.nan, math.inf
    for penalty in sorted(penalties.tolist(), reverse=True):
        error = left_out_error(X, targets, penalty)
        if error < smallest:
            best, smallest = penalty, error
    return best


def guess_by_ridge(X: Floats, fine: Ints, penalties: Floats, queries: Floats) -> Ints:
    """Fine class with the largest score, of equals the lowest."""
    classes = np.unique(fine)
    targets = one_hot(fine, classes)
    penalty = choose_penalty(X, targets, penalties * penalty_unit(X))
    found: Ints = classes[ridge_scores(X, targets, penalty, queries).argmax(axis=1)]
    return found


def guess_by_nearest(X: Floats, fine: Ints, queries: Floats) -> Ints:
    """Fine class of the nearest row."""
    everyone = list(range(len(X)))
    return np.array([fine[nearest(X, x, everyone)] for x in queries])


def scaled(X: Floats, power: float) -> Floats:
    """Features divided by a power of their standard deviation; constant ones as they are."""
    spread = X.std(axis=0)
    factors = np.array([1.0 if s < 1e-12 else s**-power for s in spread])
    divided: Floats = X * factors
    return divided


def path_to_class(parents: list[int], c: int) -> list[int]:
    """The classes from the top level, where a class is its own parent, down to a class."""
    return [c] if parents[c] == c else [*path_to_class(parents, parents[c]), c]


def guess_down(X: Floats, known: Ints, parents: list[int], guess: Guess) -> Ints:
    """Finest classes of samples from their given ones, guessed level by level.

    Samples so far of a class are guessed among the classes directly below it, from all samples that
    were given a class below it; if there are none, they stay where they are.
    """
    found = known.copy()
    paths = [path_to_class(parents, c) for c in known.tolist()]
    depth = [len(path_to_class(parents, c)) for c in range(len(parents))]
    for c in sorted(range(len(parents)), key=lambda c: depth[c]):
        given = [i for i, path in enumerate(paths) if c in path[:-1]]
        asked = np.flatnonzero(found == c)
        if given and len(asked):
            below = np.array([paths[i][depth[c]] for i in given])
            found[asked] = guess(X[given], below, X[asked])
    return found
