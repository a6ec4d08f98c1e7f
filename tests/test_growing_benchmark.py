"""The protocol behind the figures on growing shows each class once and compares like with like."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.data import mixture
from benchmarks.growing.protocol import Schedule, Stream, grow, last, retrain, stream_of
from benchmarks.growing.spirals import spirals


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of(mixture(600, 8, 8, n_test=200), seed=1, n_classes=6)


def test_a_schedule_ends_with_all_classes() -> None:
    assert Schedule(3, 5).ends(12) == [3, 8, 12]
    assert Schedule(10, 40).ends(50) == [10, 50]


def test_batches_hold_every_sample_once(stream: Stream) -> None:
    ends = [0, *Schedule(3, 2).ends(6)]
    batches = [stream.batch(*step)[1] for step in pairwise(ends)]
    everything = stream.batch(0, 6)[1]
    assert sorted(np.concatenate(batches)) == sorted(everything)


def test_grown_and_retrained_forests_know_the_same_classes(stream: Stream) -> None:
    schedule = Schedule(3)
    grown = [set(stage.forest.classes_) for stage in grow(stream, schedule)]
    retrained = [set(stage.forest.classes_) for stage in retrain(stream, schedule)]
    assert grown == retrained


def test_the_baseline_pays_for_every_step(stream: Stream) -> None:
    once = last(retrain(stream, Schedule(6)))
    every_step = last(retrain(stream, Schedule(3)))
    assert every_step.n_distances > once.n_distances
    assert every_step.accuracy == once.accuracy


def test_spirals_are_arms_of_one_spiral() -> None:
    X, y = spirals(4, 50, np.random.default_rng(0))
    angle = np.arctan2(X[:, 1], X[:, 0])
    radius = np.hypot(X[:, 0], X[:, 1])
    turned = np.mod(angle - 0.5 * radius - 2 * np.pi * y / 4 + np.pi, 2 * np.pi) - np.pi
    # A negative radius is the same point half a turn on; there is hardly any.
    assert np.median(np.abs(turned)) < 0.2
