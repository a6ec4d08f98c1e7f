"""Which samples and classes a forest stores, evicts and forgets; samples on disk stay there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import write_shards
from evergrow.estimators import Storage
from evergrow.estimators.subcategory.samples import NewSamples
from evergrow.storage.shards import ChosenRows
from tests.estimators.subcategory.levels import (
    check_consistent,
    coarse_only,
    every_method,
    hidden,
    samples,
    small,
    stored_counts,
)


def few_named(n_named: int, n: int = 400) -> tuple[Any, Any, Any]:
    """Samples, labels with the fine ones of the first few of each class, and which have one."""
    X, Y = samples(n, range(6))
    named = np.concatenate([np.flatnonzero(Y[:, 1] == f)[:n_named] for f in range(6)])
    given = coarse_only(Y)
    given[named] = Y[named]
    return X, given, np.sort(named)


@pytest.mark.parametrize("method", ["nn", "nn-h", "ridge-h"])
def test_labels_that_people_gave_outlive_guesses(method: str) -> None:
    X, given, named = few_named(10)
    forest = small(method, storage=Storage(per_class=15)).fit(X, given)
    for seed in range(3):
        more, Y_more = samples(100, range(6), seed=seed + 5)
        assert np.isin(named, forest.stored_ids_).all()
        forest.partial_fit(more, coarse_only(Y_more))
    assert np.isin(named, forest.stored_ids_).all()
    assert stored_counts(forest).max() == 15
    forest._fitted.forest.forest.check()


def test_a_label_that_was_given_later_is_kept_as_well() -> None:
    X, given, _ = few_named(5)
    forest = small(storage=Storage(per_class=20)).fit(X, given)
    ids, guessed = forest.guesses()
    confirmed = np.concatenate([ids[guessed == f][:10] for f in range(6)])
    _, Y = samples(400, range(6))
    forest.refine(confirmed, Y[confirmed, 1])
    forest.partial_fit(X, given)
    assert np.isin(confirmed, forest.stored_ids_).all()


def test_only_more_given_labels_than_may_stay_compete_with_each_other() -> None:
    X, given, named = few_named(40)
    forest = small(storage=Storage(per_class=15)).fit(X, given)
    assert len(forest.guesses()[0]) == 0
    assert np.isin(forest.stored_ids_, named).all()
    assert stored_counts(forest).max() == 15


def test_fewer_samples_than_may_stay_all_stay() -> None:
    X, given, _ = few_named(3, n=60)
    forest = small(storage=Storage(per_class=60)).fit(X, given)
    assert forest.stored_ids_.tolist() == list(range(60))
    check_consistent(forest)


def test_bounded_memory_lets_samples_go_and_their_guesses_with_them() -> None:
    X, Y = samples(300)
    forest = small(storage=Storage(per_class=5)).fit(X, hidden(Y))
    assert stored_counts(forest).max() <= 5
    assert np.isin(forest.guesses()[0], forest.stored_ids_).all()
    more, Y_more = samples(300, seed=2)
    forest.partial_fit(more, hidden(Y_more))
    assert stored_counts(forest).max() <= 5
    assert np.isin(forest._fitted.unconfirmed.ids, forest.stored_ids_).all()


def test_samples_that_are_trained_on_stay_on_disk(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    used = np.arange(30) % 3 > 0
    shards = write_shards(tmp_path / "shards", [X])
    codes = np.zeros(30, dtype=np.int32)
    new = NewSamples(shards, codes, None)  # type: ignore[arg-type]
    chosen = new.batch(used, codes, np.arange(30)).X
    assert isinstance(chosen, ChosenRows)
    np.testing.assert_array_equal(np.asarray(chosen), X[used])


@every_method
def test_classes_and_samples_are_forgotten(method: str) -> None:
    X, Y = samples(300)
    forest = small(method).fit(X, hidden(Y))
    gone = forest.stored_ids_[:10]
    forest.forget(classes=[4], coarse=[2], samples=gone)
    check_consistent(forest)
    assert forest.classes_.tolist() == [0, 1, 2, 3, 5, 9, 10, 11]
    assert forest.coarse_classes_.tolist() == [0, 1, 3]
    assert not np.isin(gone, forest.stored_ids_).any()
    assert forest.score(*samples(100, [0, 1, 2, 3, 5, 9, 10, 11], seed=4)) > 0.8
    forest.partial_fit(*samples(60, [4, 6, 7], seed=8))
    assert forest.classes_.tolist() == [0, 1, 2, 3, 5, 9, 10, 11, 4, 6, 7]
    check_consistent(forest)


@pytest.mark.parametrize("n", [300, 40])
def test_samples_that_were_only_guessed_to_be_of_a_forgotten_class_stay(n: int) -> None:
    X, Y = samples(n)
    forest = small().fit(X, hidden(Y))
    ids, guessed = forest.guesses()
    wrong = ids[guessed == 4]
    assert len(wrong) > 0
    forest.forget(classes=[4])
    check_consistent(forest)
    assert np.isin(ids, forest.stored_ids_).all()
    left, labels = forest.guesses()
    assert set(labels[np.isin(left, wrong)]) <= {3, 5}


def test_a_coarse_class_that_lost_its_fine_ones_is_predicted_as_itself_again() -> None:
    X, Y = samples(300)
    Y = np.column_stack([Y[:, 0] + 100, Y[:, 1]])
    forest = small().fit(X, hidden(Y))
    forest.forget(classes=[3, 4, 5])
    check_consistent(forest)
    assert forest.classes_.tolist() == [0, 1, 2, 6, 7, 8, 9, 10, 11, 101]
    assert (forest.predict(X[Y[:, 0] == 101]) == 101).mean() > 0.9


def test_few_samples_can_be_refined_and_forgotten() -> None:
    X, Y = samples(30)
    forest = small().fit(X, hidden(Y))
    ids = forest._fitted.unconfirmed.ids[:3]
    forest.refine(ids, Y[ids, 1])
    check_consistent(forest)
    assert not np.isin(ids, forest.guesses()[0]).any()
    forest.forget(classes=[4], samples=[0])
    check_consistent(forest)
    forest.partial_fit(*samples(100, seed=3))
    check_consistent(forest)
    assert forest.score(*samples(100, seed=4)) > 0.8
