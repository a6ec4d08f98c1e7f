"""The trained model is a value that does not depend on the order of changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow import RLSClassifier
from evergrow.workspace.model.least_squares import Hyperparameters, TrainedModel

Array = np.ndarray[Any, Any]


def examples(n: int = 60, d: int = 7, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    class_ids = rng.integers(1, 5, n)
    return (rng.normal(size=(n, d)) + class_ids[:, None]).astype(np.float32), class_ids


def scores(learnt: TrainedModel, X: Array) -> dict[int, Array]:
    weights, offsets = learnt.scoring()
    columns = (X.astype(np.float64) @ weights.T + offsets).T
    return dict(zip(learnt.class_ids.tolist(), columns, strict=True))


def assert_same(found: TrainedModel, expected: TrainedModel) -> None:
    X, _ = examples(20, seed=9)
    here, there = scores(found, X), scores(expected, X)
    assert here.keys() == there.keys()
    for class_id, column in there.items():
        np.testing.assert_allclose(here[class_id], column, atol=1e-10)
    assert found.class_counts == expected.class_counts


def test_adding_one_by_one_equals_adding_all_at_once() -> None:
    X, class_ids = examples()
    learnt = TrainedModel()
    for i in range(len(X)):
        learnt = learnt.add(X[i : i + 1], class_ids[i : i + 1])
        learnt.scoring()
    assert_same(learnt, TrainedModel().add(X, class_ids))


def test_a_class_that_is_removed_completely_leaves_no_trace() -> None:
    X, class_ids = examples()
    mine = class_ids == 2
    learnt = TrainedModel().add(X, class_ids).remove(X[mine], class_ids[mine])
    assert_same(learnt, TrainedModel().add(X[~mine], class_ids[~mine]))
    assert_same(learnt.add(X[mine], class_ids[mine]), TrainedModel().add(X, class_ids))


def test_moved_examples_count_as_added_to_their_new_class() -> None:
    X, class_ids = examples()
    learnt = TrainedModel().add(X, class_ids)
    learnt.scoring()
    to = np.where(np.arange(len(X)) < 9, 7, class_ids)
    assert_same(learnt.move(X, class_ids, to), TrainedModel().add(X, to))


def test_a_failed_operation_changes_nothing() -> None:
    X, class_ids = examples()
    learnt = TrainedModel().add(X, class_ids)
    before = scores(learnt, X)
    with pytest.raises(ValueError, match="not the examples that were learnt"):
        learnt.remove(X[:1] + 100, class_ids[:1])
    with pytest.raises(ValueError, match="unknown class 99"):
        learnt.remove(X[:1], np.array([99]))
    after = scores(learnt, X)
    assert all((before[k] == after[k]).all() for k in before)


def test_scores_are_those_of_the_classifier_with_the_same_numbers() -> None:
    X, class_ids = examples()
    learnt = TrainedModel(hyperparameters=Hyperparameters(penalty=3.0, recoding=0.4)).add(
        X, class_ids
    )
    model = RLSClassifier(regularization=3.0, recoding=0.4).fit(X, class_ids)
    found = np.array([scores(learnt, X)[k] for k in model.classes_.tolist()]).T
    expected = model.decision_function(X)
    ratio = found / expected
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-9)


def test_sums_that_shrank_by_much_are_stale() -> None:
    X, class_ids = examples()
    learnt = TrainedModel().add(X, class_ids)
    assert not learnt.is_stale
    assert not learnt.remove(X[:50], class_ids[:50]).is_stale
    huge = learnt.add(X[:1] * np.float32(1e6), class_ids[:1])
    assert huge.remove(X[:1] * np.float32(1e6), class_ids[:1]).is_stale
