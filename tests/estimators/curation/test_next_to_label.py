"""The next examples to label are uncertain, and differ from each other and from labelled ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from evergrow import InvalidInputError, RLSClassifier, next_to_label
from evergrow.estimators.curation import next_to_label as public
from evergrow.estimators.curation.next_to_label import greedy_cover
from tests.reference import curation as twin

Array = np.ndarray[Any, Any]


def clusters(n: int = 200, n_clusters: int = 8, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_clusters, n)
    return rng.standard_normal((n, 12)) + 8 * rng.standard_normal((n_clusters, 12))[codes], codes


@pytest.mark.parametrize("seed", range(5))
def test_the_choices_are_those_of_comparing_all_gains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, 6)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    weights = rng.random(40, dtype=np.float32)
    covered = rng.random(40, dtype=np.float32) / 2
    expected = twin.greedy_cover(rows, weights, covered, 15)
    similarity = np.maximum(rows @ rows.T, 0)
    assert greedy_cover(similarity, weights, covered, 15).tolist() == expected


def test_uncertain_examples_are_preferred() -> None:
    X, _ = clusters(60, 1)
    probabilities = np.tile([1.0, 0.0], (60, 1))
    probabilities[10:20] = 0.5
    found = next_to_label(X, n=5, probabilities=probabilities)
    assert len(set(found) & set(range(10, 20))) >= 4


def test_more_examples_than_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__(public.__module__, fromlist=["_POOL"])
    monkeypatch.setattr(module, "_POOL", 60)
    monkeypatch.setattr(module, "_CHOICES", 10)
    X, codes = clusters()
    found = next_to_label(X, X[:20], codes[:20], n=150)
    assert len(set(found.tolist())) == 150
    assert found.tolist() == next_to_label(X, X[:20], codes[:20], n=150).tolist()


@pytest.mark.slow
def test_fewer_labels_are_needed_than_at_random() -> None:
    X, y = load_digits(return_X_y=True)
    X, y, X_test, y_test = X[:1200], y[:1200], X[1200:], y[1200:]
    order = np.random.default_rng(0).permutation(len(X))
    chosen = next_to_label(X, n=20)
    while len(chosen) < 80:
        rest = np.setdiff1d(np.arange(len(X)), chosen)
        more = next_to_label(X[rest], X[chosen], y[chosen], n=20)
        chosen = np.concatenate([chosen, rest[more]])
    ours, random = (
        RLSClassifier(regularization=1000.0, recoding=0.0)
        .fit(X[rows], y[rows])
        .score(X_test, y_test)
        for rows in (chosen, order[:80])
    )
    assert ours > random + 0.03


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"X": [[1.0]]}, "give both"),
        ({"X": [[1.0, 2.0]], "y": [0]}, "features"),
        ({"n": 0}, "n must"),
        ({"probabilities": [[1.0, 0.0]]}, "one row per unlabelled"),
        ({"probabilities": [[1.0], [2.0], [0.0]]}, "between 0 and 1"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        next_to_label([[1.0], [2.0], [3.0]], **options)


def test_nan_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="NaN"):
        next_to_label([[1.0], [np.nan]])
