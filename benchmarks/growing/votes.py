"""How much trees count that were grown before a class came, and how often trees are grown again.

The weights only change how the leaves are read, so that each stream is grown once.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

from benchmarks.data import Array, Split, bird_features, object_features, word_counts
from benchmarks.growing.streams import data
from benchmarks.measure import THREADS, show_table
from evergrow import NCMForestClassifier
from evergrow.estimators.forest.change import addition
from evergrow.estimators.forest.value import ages
from evergrow.research import ClassStream

N_TREES = 30
FACTORS = (1.5, addition.REFRESH_FACTOR)
# Weight of the votes of older trees, and the number that multiplies their votes for the class.
VOTES = ((1.0, 1.0), (0.03, 1.0), (0.03, 5.0), (0.03, 10.0), (0.05, 6.0))


def run(quick: bool) -> None:
    """Two orders of birds, objects and words, relative to a forest trained on all at once."""
    streams = [(data(True), 15)]
    if not quick:
        streams = [(bird_features(), 100), (object_features(), 100), (word_counts(), 50)]
    rows: dict[tuple[float, float], list[float]] = {votes: [] for votes in VOTES}
    for factor in FACTORS:
        shares = np.mean(
            [
                _shares(split, n_classes, factor, seed)
                for split, n_classes in streams
                for seed in range(1 if quick else 2)
            ],
            axis=0,
        )
        for votes, share in zip(VOTES, shares.tolist(), strict=True):
            rows[votes] += share
    columns = [f"{name}, {factor:g}" for factor in FACTORS for name in ("accuracy", "newest five")]
    table = [(f"{weight:g}, {gain:g}", *found) for (weight, gain), found in rows.items()]
    show_table("growing: votes of older trees, relative to training", ["", *columns], table)


def _shares(split: Split, n_classes: int, factor: float, seed: int) -> Array:
    """Accuracies of one stream for each setting of the votes, relative to training on all."""
    stream = ClassStream(3, 1, n_classes, random_state=seed)
    forest = NCMForestClassifier(N_TREES, n_jobs=THREADS, random_state=seed)
    with patch.object(addition, "REFRESH_FACTOR", factor):
        for step in stream.steps(split.y):
            forest.partial_fit(split.X[step.rows], split.y[step.rows])
    known = np.isin(split.y, step.known)
    trained = NCMForestClassifier(N_TREES, n_jobs=THREADS, random_state=seed)
    trained.fit(split.X[known], split.y[known])
    found = [_accuracies(forest, split, step.known, *votes) for votes in VOTES]
    return np.array(found) / _accuracies(trained, split, step.known, *VOTES[0])


def _accuracies(
    forest: NCMForestClassifier, split: Split, known: Array, weight: float, gain: float
) -> Array:
    """Accuracy over all known classes, and over the newest five."""
    tests = np.isin(split.y_test, known)
    y = split.y_test[tests]
    forest._fitted.history.ages.__dict__.pop("votes", None)
    with patch.object(ages, "OLDER_WEIGHT", weight), patch.object(ages, "OLDER_GAIN", gain):
        right = forest.predict(split.X_test[tests]) == y
    return np.array([right.mean(), right[np.isin(y, known[-5:])].mean()])
