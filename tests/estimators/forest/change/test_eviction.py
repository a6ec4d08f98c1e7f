"""Bounded memory: a fair choice of samples, half precision, and counts that stay exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import NCMForestClassifier
from evergrow.estimators import Storage
from tests.budget import budget
from tests.conftest import FORESTS, Arrays
from tests.estimators.forest.blobs import CASES, blobs, leaf_counts, stored_ids, stored_per_class

X_QUERY, Y_QUERY = blobs(80, range(5), seed=77)


def bounded(kind: Any, **options: Any) -> Any:
    return kind(3, **{"min_samples_leaf": 3, "random_state": 0, **options})


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_no_class_keeps_more_samples_than_allowed(kind: Any, update: str) -> None:
    forest = bounded(kind, update=update, storage=Storage(per_class=12))
    shown = np.zeros(5, dtype=int)
    for seed, classes in enumerate([[0, 1, 2], [2], [0, 3, 4], [1, 4], range(5)]):
        X, y = blobs(70, classes, seed)
        shown += np.bincount(y, minlength=5)
        forest.partial_fit(X, y)
        forest._fitted.forest.check()
        known = shown[forest.classes_]
        assert stored_per_class(forest) == np.minimum(known, 12).tolist()
    assert forest.score(X_QUERY, Y_QUERY) > (0.5 if update == "uls" else 0.8)


@pytest.mark.parametrize(("kind", "update"), CASES)
def test_leaves_count_every_sample_shown(kind: Any, update: str) -> None:
    forest, shown = (
        bounded(kind, update=update, storage=Storage(per_class=5)),
        np.zeros(4, dtype=int),
    )
    for seed in range(4):
        X, y = blobs(70, range(4), seed)
        forest.partial_fit(X, y)
        shown += np.bincount(y)
    for tree in range(3):
        assert leaf_counts(forest, tree).tolist() == shown.tolist()


@pytest.mark.slow
def test_every_sample_is_equally_likely_to_be_kept() -> None:
    n, keep, n_seeds = 120, 10, 300
    X = np.random.default_rng(0).normal(size=(n, 2))
    y = np.zeros(n, dtype=int)
    times_kept = np.zeros(n)
    for seed in range(n_seeds):
        forest = NCMForestClassifier(
            1, update="uls", min_samples_leaf=10, storage=Storage(per_class=keep), random_state=seed
        ).fit(X[:60], y[:60])
        for begin, end in ((60, 61), (61, 90), (90, 120)):
            forest.partial_fit(X[begin:end], y[begin:end])
        times_kept[stored_ids(forest)] += 1
    expected = n_seeds * keep / n
    # Chi-square with 119 degrees of freedom: beyond 200 once in 200000 times.
    assert (((times_kept - expected) ** 2) / (expected * (1 - keep / n))).sum() < 200
    parts = times_kept.reshape(4, 30).sum(axis=1)
    assert np.abs(parts / parts.mean() - 1).max() < 0.15


def test_fewer_kept_samples_than_a_leaf_holds_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"Storage\.per_class must be at least min_samples_leaf, 10"
    ):
        NCMForestClassifier(min_samples_leaf=10, storage=Storage(per_class=9)).fit(
            *blobs(60, [0, 1])
        )


@pytest.mark.parametrize("keep", [0, -1, 2.5, "all", True])
def test_a_wrong_number_to_keep_is_named(keep: Any) -> None:
    with pytest.raises(ValueError, match=r"Storage\.per_class must be None or an integer from 1"):
        NCMForestClassifier(storage=Storage(per_class=keep)).fit(*blobs(60, [0, 1]))


def test_the_bound_may_come_and_shrink_later() -> None:
    forest = bounded(NCMForestClassifier).fit(*blobs(200, [0, 1]))
    assert sum(stored_per_class(forest)) == 200
    for seed, keep in enumerate((30, 10)):
        forest.set_params(storage=Storage(per_class=keep)).partial_fit(*blobs(2, [0, 1], seed))
        assert stored_per_class(forest) == [keep, keep]
        forest._fitted.forest.check()
    assert leaf_counts(forest, 0).sum() == 204


def test_evicted_samples_cannot_be_forgotten_but_their_class_can() -> None:
    X, y = blobs(200, [0, 1, 2])
    forest = bounded(NCMForestClassifier, storage=Storage(per_class=10)).fit(X, y)
    gone = np.setdiff1d(np.arange(200), stored_ids(forest))
    with pytest.raises(ValueError, match=f"not stored: {gone[0]}"):
        forest.forget(samples=gone[:1])
    forest.forget(classes=[1])
    assert leaf_counts(forest, 0).tolist() == np.bincount(y)[[0, 2]].tolist()
    forest.partial_fit(*blobs(100, [1], seed=2))
    assert stored_per_class(forest) == [10, 10, 10]


@settings(max_examples=budget(20))
@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=6),
    st.integers(3, 20),
    st.sampled_from(CASES),
)
def test_any_stream_stays_within_its_bound(
    batches: list[tuple[int, int]], keep: int, case: Any
) -> None:
    forest = bounded(case[0], update=case[1], storage=Storage(per_class=keep)).fit(
        *blobs(60, [0, 1, 2, 3])
    )
    for seed, (n, label) in enumerate(batches):
        forest.partial_fit(*blobs(n, [label], seed))
        forest._fitted.forest.check()
        assert max(stored_per_class(forest)) <= keep
    assert leaf_counts(forest, 0).sum() == 60 + sum(n for n, _ in batches)


@pytest.mark.parametrize("kind", FORESTS)
def test_half_precision_takes_half_the_bytes_and_knows_as_much(kind: Any, digits: Arrays) -> None:
    X, X_test, y, y_test = digits
    forests = []
    for dtype in ("float32", "float16"):
        forest = kind(10, storage=Storage(dtype=dtype), random_state=0).fit(X[:900], y[:900])
        forests.append(forest.partial_fit(X[900:], y[900:]))
    full, half = (forest._fitted.forest.samples for forest in forests)
    # Besides the features, 12 bytes for class and id.
    assert half.nbytes - 12 * len(half) <= 0.6 * (full.nbytes - 12 * len(full))
    scores = [forest.score(X_test, y_test) for forest in forests]
    assert abs(scores[0] - scores[1]) < 0.03


def test_another_precision_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"Storage.dtype must be one of \['float16', 'float32'\]"):
        NCMForestClassifier(storage=Storage(dtype="float64")).fit(*blobs(60, [0, 1]))
