"""Held-out examples: counts and kept examples when some are forgotten."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch
from evergrow.storage.models.codec import decode, encode


def batch(rows: Any) -> Batch:
    rows = np.asarray(rows, dtype=np.float64).reshape(-1, 1)
    return Batch(rows, np.zeros(len(rows), dtype=np.int32), np.ones(len(rows)))


def holding(rows: Any, most: int, every: int = 2) -> Holdout:
    return Holdout.none(most, 0).add(batch(rows), ["a"], every=every, max_held_out=most)[0]


def counts(holdout: Holdout) -> tuple[int, int, int, bool]:
    n_seen, n_forgotten, n_drawn, has_evicted = holdout.tallies[0].tolist()
    return n_seen, n_forgotten, n_drawn, has_evicted > 0


def test_when_all_other_examples_are_forgotten_each_kept_one_represents_itself() -> None:
    holdout = holding(range(400), 20)
    kept = holdout.batch.rows[:, 0]
    left, found = holdout.remove(batch([i for i in range(400) if i not in kept]))
    assert not found.any()
    np.testing.assert_array_equal(left.represented, np.ones(20))
    assert not left.is_complete(0)


def test_removing_many_of_many_examples_is_fast() -> None:
    holdout = holding(range(20000), 10000)
    started = time.perf_counter()
    left, found = holdout.remove(batch(range(20000)))
    assert found.sum() == 10000
    assert len(left) == 0
    # A linear search for each example would take minutes.
    assert time.perf_counter() - started < 5


def test_counts_are_saved_and_loaded() -> None:
    holdout, _ = holding(range(400), 20).remove(batch(range(30)))
    again = decode(Holdout, *encode(holdout))
    assert counts(again) == counts(holdout)
    np.testing.assert_array_equal(again.represented, holdout.represented)
