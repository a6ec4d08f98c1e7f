"""Label issues by learning again without an example, or without two."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def ridge_scores(X: Array, codes: Array, n_classes: int, penalty: float, queries: Array) -> Array:
    """Scores by ridge regression on one-hot labels, with an intercept that is not penalised."""
    targets = np.eye(n_classes)[codes]
    mean, level = X.mean(axis=0), targets.mean(axis=0)
    about = X - mean
    gram = about.T @ about + penalty * np.eye(X.shape[1])
    weights = np.linalg.solve(gram, about.T @ (targets - level))
    scores: Array = (queries - mean) @ weights + level
    return scores


def left_out_scores(X: Array, codes: Array, n_classes: int, penalty: float) -> Array:
    """Scores of each example by all others."""
    found = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        found.append(ridge_scores(X[others], codes[others], n_classes, penalty, X[i : i + 1])[0])
    return np.array(found)


def harm(X: Array, codes: Array, n_classes: int, penalty: float) -> Array:
    """How much the left-out squared error of the others falls without each example, in percent."""
    targets = np.eye(n_classes)[codes]
    errors = ((targets - left_out_scores(X, codes, n_classes, penalty)) ** 2).sum(axis=1)
    falls = []
    for j in range(len(X)):
        others = np.arange(len(X)) != j
        scores = left_out_scores(X[others], codes[others], n_classes, penalty)
        without = ((targets[others] - scores) ** 2).sum()
        falls.append(errors[others].sum() - without)
    percent: Array = 100 * np.array(falls) / errors.sum()
    return percent


def near_duplicates(X: Array, similarity: float) -> list[list[int]]:
    """Groups of rows that chains of pairs with a high cosine about the mean connect."""
    about = X - X.mean(axis=0)
    unit = about / np.linalg.norm(about, axis=1, keepdims=True)
    close = unit @ unit.T >= similarity
    group = list(range(len(X)))
    for i in range(len(X)):
        for j in range(i):
            if close[i, j]:
                old, new = group[i], group[j]
                group = [new if g == old else g for g in group]
    members = [[i for i, g in enumerate(group) if g == name] for name in dict.fromkeys(group)]
    return sorted(one for one in members if len(one) > 1)


def greedy_cover(unit: Array, weights: Array, covered: Array, n: int) -> list[int]:
    """Rows chosen one by one, each with the largest gain in weighted similarity."""
    similarity = np.maximum(unit @ unit.T, 0)
    chosen: list[int] = []
    for _ in range(n):
        gains = [
            -np.inf if i in chosen else weights @ np.maximum(similarity[i] - covered, 0)
            for i in range(len(unit))
        ]
        best = int(np.argmax(gains))
        chosen.append(best)
        covered = np.maximum(covered, similarity[best])
    return chosen
