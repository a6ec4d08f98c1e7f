"""Which samples a forest stores and which are evicted; samples on disk stay there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import write_shards
from evergrow.estimators.subcategory import changes
from evergrow.storage.shards import ChosenRows
from tests.estimators.subcategory.levels import (
    check_consistent,
    coarse_only,
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
    forest = small(method, keep_per_class=15).fit(X, given)
    for seed in range(3):
        more, Y_more = samples(100, range(6), seed=seed + 5)
        assert np.isin(named, forest.stored_ids_).all()
        forest.partial_fit(more, coarse_only(Y_more))
    assert np.isin(named, forest.stored_ids_).all()
    assert stored_counts(forest).max() == 15
    forest._fitted.forest.forest.check()


def test_a_label_that_was_given_later_is_kept_as_well() -> None:
    X, given, _ = few_named(5)
    forest = small(keep_per_class=20).fit(X, given)
    ids, guessed = forest.guesses()
    confirmed = np.concatenate([ids[guessed == f][:10] for f in range(6)])
    _, Y = samples(400, range(6))
    forest.refine(confirmed, Y[confirmed, 1])
    forest.partial_fit(X, given)
    assert np.isin(confirmed, forest.stored_ids_).all()


def test_only_more_given_labels_than_may_stay_compete_with_each_other() -> None:
    X, given, named = few_named(40)
    forest = small(keep_per_class=15).fit(X, given)
    assert len(forest.guesses()[0]) == 0
    assert np.isin(forest.stored_ids_, named).all()
    assert stored_counts(forest).max() == 15


def test_fewer_samples_than_may_stay_all_stay() -> None:
    X, given, _ = few_named(3, n=60)
    forest = small(keep_per_class=60).fit(X, given)
    assert forest.stored_ids_.tolist() == list(range(60))
    check_consistent(forest)


def test_bounded_memory_lets_samples_go_and_their_guesses_with_them() -> None:
    X, Y = samples(300)
    forest = small(keep_per_class=5).fit(X, hidden(Y))
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
    chosen = changes._choose(shards, used)  # type: ignore[arg-type]
    assert isinstance(chosen, ChosenRows)
    np.testing.assert_array_equal(np.asarray(chosen), X[used])
