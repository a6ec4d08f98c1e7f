"""Examples held out: what is known of them when some are forgotten."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.held_out import HeldOut


def batch(rows: Any) -> Batch:
    rows = np.asarray(rows, dtype=np.float64).reshape(-1, 1)
    return Batch(rows, np.zeros(len(rows), dtype=np.int32), np.ones(len(rows)))


def holding(rows: Any, most: int, every: int = 2) -> HeldOut:
    return HeldOut.none(most, 0).add(batch(rows), ["a"], every=every, max_held_out=most)[0]


def n_represented(held_out: HeldOut) -> float:
    return float(held_out.represented.sum())


def test_kept_examples_stand_for_no_forgotten_ones() -> None:
    held_out = holding(range(400), 20)
    assert n_represented(held_out) == pytest.approx(200)
    left, found = held_out.find(batch(range(200)))
    assert found.sum() == 20 - len(left)
    # Half of those that are left were held out, whichever it was.
    assert n_represented(left) == pytest.approx(100, abs=8)


def test_when_all_that_is_not_kept_is_forgotten_each_example_stands_for_itself() -> None:
    held_out = holding(range(400), 20)
    kept = held_out.batch.rows[:, 0]
    left, found = held_out.find(batch([i for i in range(400) if i not in kept]))
    assert not found.any()
    np.testing.assert_array_equal(left.represented, np.ones(20))
    assert not left.is_whole(0)


def test_all_examples_can_be_forgotten_in_any_parts() -> None:
    held_out = holding(range(400), 20)
    for part in np.array_split(np.random.default_rng(0).permutation(400), 7):
        held_out, _ = held_out.find(batch(part))
    assert len(held_out) == 0
    assert held_out.classes[0].counts == (400, 400, 0, 1)


def test_what_was_let_go_makes_a_class_incomplete_for_ever() -> None:
    held_out = holding(range(40), 5)
    assert not held_out.is_whole(0)
    left, _ = held_out.find(batch(range(40)))
    assert not left.is_whole(0)
    assert holding(range(40), 20).find(batch(range(40)))[0].is_whole(0)


def test_the_two_zeros_are_one_number() -> None:
    left, found = holding([1.0, 0.0], 5).find(batch([-0.0]))
    assert found.all()
    assert len(left) == 0


def test_many_are_found_among_many_quickly() -> None:
    held_out = holding(range(20000), 10000)
    started = time.perf_counter()
    left, found = held_out.find(batch(range(20000)))
    assert found.sum() == 10000
    assert len(left) == 0
    # One by one through all of them takes minutes.
    assert time.perf_counter() - started < 5


def test_numbers_survive_a_file() -> None:
    held_out, _ = holding(range(400), 20).find(batch(range(30)))
    again = HeldOut.from_tensors(held_out.to_tensors(), (1, 1), share=20, seed=0)
    assert again.classes[0].counts == held_out.classes[0].counts
    np.testing.assert_array_equal(again.represented, held_out.represented)
