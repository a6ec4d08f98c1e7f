"""Which unlabelled examples to label next: those that many others resemble, and no labelled one.

Greedy facility location: each choice raises, as much as possible, the sum over the unlabelled
examples of the similarity to the nearest labelled one. Two examples are similar if their features
are and if a model of the labelled examples expects the same class, so an example that the model is
sure of is covered by the labelled examples of its class, and one that it hesitates about is not.
Without labels the first choices are typical of all examples.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.estimators.curation.label_issues import check_examples, check_rows
from evergrow.estimators.linear.ridge import Codes, blocks_of, centred, one_hot
from evergrow.estimators.linear.rls import RLSClassifier
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Integer, check_parameters

# Unlabelled examples that are compared with each other at once, and how many are chosen from them.
_POOL, _CHOICES = 6000, 1000


def next_to_label(
    X_unlabelled: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    y: npt.ArrayLike | None = None,
    *,
    n: int = 100,
    probabilities: npt.ArrayLike | None = None,
    random_state: int = 0,
) -> npt.NDArray[np.int64]:
    """Choose which unlabelled examples to label next: uncertain ones that differ from each other.

    Label a few, then ask again, because the choice depends on the labels so far. See
    :doc:`/clean_data`.

    Parameters
    ----------
    X_unlabelled : array-like of shape (n_unlabelled, n_features)
        Features of the examples to choose from.
    X : array-like of shape (n_samples, n_features), default=None
        Features of the examples that already have labels. With None, the function chooses typical
        examples that differ from each other.
    y : array-like of shape (n_samples,), default=None
        Labels of `X`. An :class:`RLSClassifier` is trained on them to find uncertain examples.
    n : int, default=100
        Number of examples to choose. If there are fewer, all are returned.
    probabilities : array-like of shape (n_unlabelled, n_classes), default=None
        Class probabilities of the unlabelled examples from your own model. They replace those of
        the classifier. Examples whose two best classes are close are preferred.
    random_state : int, default=0
        Seed of the sample that is compared if there are more than a few thousand examples.

    Returns
    -------
    rows : ndarray of shape (n,)
        Rows of `X_unlabelled`, the most useful first.

    See Also
    --------
    label_issues : Find labels that are probably wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow import next_to_label
    >>> X = np.array([[0.0, 5], [0, 6], [0, 7], [5, 0], [6, 0], [-9, -9]])
    >>> next_to_label(X, n=3)
    array([1, 3, 5])
    >>> next_to_label(X, X[[1]], ["a"], n=2)
    array([3, 5])
    """
    check_parameters(
        {"n": n, "random_state": random_state},
        {"n": [Integer(1)], "random_state": [Integer(0)]},
    )
    rows = check_rows(X_unlabelled)
    if (X is None) != (y is None):
        raise InvalidInputError("X and y are the labelled examples: give both, or neither")
    weights = np.ones(len(rows), dtype=np.float32)
    unlabelled, labelled = _Examples(rows), _Examples(rows[:0])
    if probabilities is not None:
        values = _check_probabilities(probabilities, len(rows))
        weights, unlabelled = _doubts(values), _Examples(rows, np.sqrt(values))
    if X is not None and y is not None:
        known, labels, codes = check_examples(X, y)
        labelled = _Examples(known)
        if known.shape[1] != rows.shape[1]:
            raise InvalidInputError(
                f"X has {known.shape[1]} features, but X_unlabelled has {rows.shape[1]}"
            )
        if probabilities is None and len(labels) > 1:
            unlabelled, labelled = _by_model(rows, known, codes)
    return _choose(unlabelled, labelled, weights, min(int(n), len(rows)), random_state)


@dataclass(frozen=True, eq=False)
class _Examples:
    """Features, and the square roots of class probabilities, which have length one.

    A labelled example has a one in the column of its class; None if nothing is known.
    """

    rows: npt.NDArray[Any]
    roots: Any = None

    def __getitem__(self, places: npt.NDArray[np.int64] | slice) -> _Examples:
        roots = None if self.roots is None else self.roots[places]
        return _Examples(self.rows[places], roots)

    def similarity(
        self, others: _Examples, mean: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float32]:
        """Cosine about the mean times the agreement of the probabilities, from 0 to 1."""
        found = _unit(self.rows, mean) @ _unit(others.rows, mean).T
        if self.roots is not None and others.roots is not None:
            found *= self.roots @ others.roots.T
        return np.asarray(np.maximum(found, 0.0, out=found))


def _check_probabilities(probabilities: npt.ArrayLike, n_rows: int) -> npt.NDArray[np.float32]:
    values = check_rows(probabilities)
    if len(values) != n_rows:
        raise InvalidInputError(
            f"probabilities must have one row per unlabelled example, {n_rows}, got {len(values)}"
        )
    if values.min() < 0 or values.max() > 1 + 1e-6:
        raise InvalidInputError("probabilities must be between 0 and 1")
    return np.asarray(values, dtype=np.float32)


def _doubts(probabilities: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """One minus the margin between the two largest probabilities."""
    if probabilities.shape[1] < 2:
        return np.ones(len(probabilities), dtype=np.float32)
    best = np.partition(probabilities, -2, axis=1)[:, -2:]
    # No example is worth nothing: even a model that is certain of all has more to learn.
    return np.asarray(np.maximum(1.0 - (best[:, 1] - best[:, 0]), 1e-3), dtype=np.float32)


def _by_model(
    rows: npt.NDArray[Any], known: npt.NDArray[Any], codes: Codes
) -> tuple[_Examples, _Examples]:
    """Unlabelled and labelled examples with the probabilities of a model of the labelled ones."""
    model = RLSClassifier(random_state=0).fit(known, codes)
    roots = np.empty((len(rows), len(model.classes_)), dtype=np.float32)
    for part in blocks_of(rows, 2 * roots.shape[1]):
        roots[part] = np.sqrt(model.predict_proba(rows[part]))
    labelled = _Examples(known, one_hot(codes, roots.shape[1]).astype(np.float32))
    return _Examples(rows, roots), labelled


def _choose(
    unlabelled: _Examples,
    labelled: _Examples,
    weights: npt.NDArray[np.float32],
    n: int,
    seed: int,
) -> npt.NDArray[np.int64]:
    """Choose from one pool after the other, so that memory stays bounded."""
    rng = np.random.default_rng(seed)
    n_all = len(unlabelled.rows) + len(labelled.rows)
    both = (unlabelled.rows, labelled.rows)
    mean = np.asarray(sum(rows.sum(axis=0, dtype=np.float64) for rows in both) / n_all)
    free = np.ones(len(unlabelled.rows), dtype=bool)
    chosen = np.zeros(0, dtype=np.int64)
    while len(chosen) < n:
        pool, worth = _pool(np.flatnonzero(free), weights, rng)
        members = unlabelled[pool]
        covered = np.zeros(len(pool), dtype=np.float32)
        for known in (labelled, unlabelled[chosen]):
            for part in blocks_of(known.rows, len(pool)):
                nearest = members.similarity(known[part], mean).max(axis=1)
                np.maximum(covered, nearest, out=covered)
        most = n - len(chosen) if len(pool) == free.sum() else min(n - len(chosen), _CHOICES)
        picked = pool[greedy_cover(members.similarity(members, mean), worth, covered, most)]
        chosen = np.concatenate([chosen, picked])
        free[picked] = False
    return chosen


def _pool(
    free: npt.NDArray[np.int64], weights: npt.NDArray[np.float32], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Examples to compare and their weights; of many a sample, drawn by weight."""
    if len(free) <= _POOL:
        return free, weights[free]
    chances = weights[free].astype(np.float64)
    pool = np.sort(rng.choice(free, _POOL, replace=False, p=chances / chances.sum()))
    return pool, np.ones(_POOL, dtype=np.float32)


def _unit(rows: npt.NDArray[Any], mean: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Rows about the mean with length one; a row at the mean stays zero."""
    found = centred(rows, mean)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(np.divide(found, lengths, out=found, where=lengths > 0))


def greedy_cover(
    similarity: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
    covered: npt.NDArray[np.float32],
    n: int,
) -> npt.NDArray[np.int64]:
    """Choose rows one by one, each raising the weighted similarity to the nearest one most.

    ``covered`` is the similarity of each row to the nearest labelled one. Gains only fall while
    rows are chosen, so a row is compared again only when its former gain is the largest.
    """
    covered = covered.copy()

    def gain(row: int) -> float:
        return float(weights @ np.maximum(similarity[row] - covered, 0.0))

    queue = [(-gain(row), row) for row in range(len(similarity))]
    heapq.heapify(queue)
    chosen: list[int] = []
    while queue and len(chosen) < n:
        _, row = heapq.heappop(queue)
        entry = (-gain(row), row)
        if queue and entry > queue[0]:
            heapq.heappush(queue, entry)
            continue
        chosen.append(row)
        np.maximum(covered, similarity[row], out=covered)
    return np.array(chosen, dtype=np.int64)
