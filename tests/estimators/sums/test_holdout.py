"""Held-out examples: counts and kept examples when some are forgotten."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from evergrow.estimators.sums.holdout import Holdout
from evergrow.estimators.sums.moments import Batch
from evergrow.estimators.sums.serialization import (
    holdout_from_arrays,
    holdout_header,
    holdout_to_arrays,
)


def batch(rows: Any) -> Batch:
    rows = np.asarray(rows, dtype=np.float64).reshape(-1, 1)
    return Batch(rows, np.zeros(len(rows), dtype=np.int32), np.ones(len(rows)))


def holding(rows: Any, most: int, every: int = 2) -> Holdout:
    return Holdout.none(most, 0).add(batch(rows), ["a"], every=every, max_held_out=most)[0]


def n_represented(holdout: Holdout) -> float:
    return float(holdout.represented.sum())


def counts(holdout: Holdout) -> tuple[int, int, int, bool]:
    held = holdout.classes[0]
    return held.n_seen, held.n_forgotten, held.n_drawn, held.has_evicted


def test_kept_examples_do_not_represent_forgotten_ones() -> None:
    holdout = holding(range(400), 20)
    assert n_represented(holdout) == pytest.approx(200)
    left, found = holdout.remove(batch(range(200)))
    assert found.sum() == 20 - len(left)
    # Half of the remaining examples were held out.
    assert n_represented(left) == pytest.approx(100, abs=8)


def test_when_all_other_examples_are_forgotten_each_kept_one_represents_itself() -> None:
    holdout = holding(range(400), 20)
    kept = holdout.batch.rows[:, 0]
    left, found = holdout.remove(batch([i for i in range(400) if i not in kept]))
    assert not found.any()
    np.testing.assert_array_equal(left.represented, np.ones(20))
    assert not left.is_complete(0)


def test_all_examples_can_be_forgotten_in_any_parts() -> None:
    holdout = holding(range(400), 20)
    for part in np.array_split(np.random.default_rng(0).permutation(400), 7):
        holdout, _ = holdout.remove(batch(part))
    assert len(holdout) == 0
    assert counts(holdout) == (400, 400, 0, True)


def test_an_evicted_example_makes_its_class_incomplete_for_ever() -> None:
    holdout = holding(range(40), 5)
    assert not holdout.is_complete(0)
    left, _ = holdout.remove(batch(range(40)))
    assert not left.is_complete(0)
    assert holding(range(40), 20).remove(batch(range(40)))[0].is_complete(0)


def test_negative_zero_equals_zero() -> None:
    left, found = holding([1.0, 0.0], 5).remove(batch([-0.0]))
    assert found.all()
    assert len(left) == 0


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
    again = holdout_from_arrays(holdout_header(holdout), holdout_to_arrays(holdout), 1, 1)
    assert counts(again) == counts(holdout)
    np.testing.assert_array_equal(again.represented, holdout.represented)
