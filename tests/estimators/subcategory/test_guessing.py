"""What is guessed, what stays open, and what the report says of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evergrow.estimators import (
    CoarseGuesses,
    GuessReport,
    NearestGuesser,
    RidgeGuesser,
    guess_fine,
    guess_within,
)
from tests.estimators.subcategory.levels import Array, kinds

every_way = pytest.mark.parametrize("way", ["nn", "ridge"])


def hits(way: str, case: Any) -> float:
    found = guess_fine(case.X, *case.labels, guesser=way, random_state=0)
    return float((found.fine == case.truth)[found.guessed].mean())


@every_way
def test_known_classes_stay_and_missing_ones_are_guessed(way: str) -> None:
    case = kinds()
    found = guess_fine(case.X, *case.labels, guesser=way, random_state=0)
    known = case.fine >= 0
    np.testing.assert_array_equal(found.fine[known], case.fine[known])
    assert not found.guessed[known].any()
    np.testing.assert_array_equal(found.guessed, ~known & (found.fine >= 0))
    assert found.fine.dtype == np.int32


@every_way
def test_guesses_are_much_better_than_chance(way: str) -> None:
    assert hits(way, kinds()) > 0.75


def test_ridge_beats_the_nearest_neighbour_where_most_features_say_nothing() -> None:
    case = kinds(600, noise=0.5)
    case.X = np.column_stack([case.X, np.random.default_rng(1).normal(size=(600, 60))])
    assert hits("ridge", case) > hits("nn", case) + 0.05


@every_way
def test_a_guess_is_a_fine_class_of_the_coarse_one(way: str) -> None:
    case = kinds(noise=6.0)
    found = guess_fine(case.X, *case.labels, guesser=way)
    np.testing.assert_array_equal(case.parents[found.fine], case.coarse)


@every_way
def test_a_coarse_class_without_fine_ones_gets_no_guess(way: str) -> None:
    case = kinds()
    case.fine[case.coarse == 1] = -1
    found = guess_fine(case.X, *case.labels, guesser=way, random_state=0)
    assert (found.fine[case.coarse == 1] == -1).all()
    part = found.report.coarse[1]
    assert (part.n_known, part.n_guessed, part.n_missing) == (0, 0, (case.coarse == 1).sum())


@every_way
def test_nothing_known_leaves_all_open(way: str) -> None:
    case = kinds()
    nothing = np.full(len(case.X), -1)
    found = guess_fine(case.X, case.coarse, nothing, [], guesser=way)
    assert (found.fine == -1).all()
    assert math.isnan(found.report.rate)


@every_way
def test_everything_known_leaves_nothing_to_guess(way: str) -> None:
    case = kinds()
    found = guess_fine(case.X, case.coarse, case.truth, case.parents, guesser=way, random_state=0)
    np.testing.assert_array_equal(found.fine, case.truth)
    assert found.report.n_guessed == 0


@every_way
def test_a_coarse_class_of_which_one_kind_is_known_has_no_rate(way: str) -> None:
    case = kinds()
    part = guess_fine(case.X, *case.labels, guesser=way).report.coarse[2]
    assert part.n_guessed > 0
    assert math.isnan(part.rate)
    assert math.isnan(part.standard_error)


@every_way
def test_a_coarse_class_with_a_kind_that_no_known_sample_shows_has_no_rate(way: str) -> None:
    X, fine = [[0.0], [1.0], [8.0], [9.0], [5.0]], [0, 0, 1, 1, -1]
    all_shown, one_not = (
        guess_fine(X, [0] * 5, fine, [0] * n, guesser=way).report.coarse[0] for n in (2, 3)
    )
    assert all_shown.rate == 1.0
    assert math.isnan(one_not.rate)
    assert one_not.n_guessed == 1


@every_way
def test_one_known_sample_of_each_fine_class_is_enough_to_guess(way: str) -> None:
    X = [[0.0], [9.0], [1.0], [8.0]]
    found = guess_fine(X, [0] * 4, [0, 1, -1, -1], [0, 0], guesser=way)
    assert found.fine.tolist() == [0, 1, 0, 1]
    assert math.isnan(found.report.rate)


@every_way
def test_one_known_sample_of_each_fine_class_gives_no_rate(way: str) -> None:
    found = guess_fine([[0.0], [9.0], [1.0]], [0] * 3, [0, 1, -1], [0, 0], guesser=way)
    assert math.isnan(found.report.rate)


@every_way
def test_one_known_sample_decides_a_coarse_class(way: str) -> None:
    found = guess_fine([[0.0], [9.0], [1.0]], [0] * 3, [-1, 5, -1], [0] * 6, guesser=way)
    assert found.fine.tolist() == [5, 5, 5]


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("scaling", [0.0, 0.5, 1.0])
def test_where_nothing_varies_ridge_takes_the_most_frequent_class(
    value: float, scaling: float
) -> None:
    X = np.full((7, 3), value)
    fine = [4, 5, 5, 5, 4, -1, -1]
    found = guess_fine(X, [0] * 7, fine, [0] * 6, guesser=RidgeGuesser(scaling=scaling))
    assert found.fine[5:].tolist() == [5, 5]


def test_where_nothing_varies_the_nearest_is_the_first() -> None:
    found = guess_fine(np.full((4, 3), 0.1), [0] * 4, [-1, 5, 4, 4], [0] * 6, guesser="nn")
    assert found.fine[0] == 5


def test_a_constant_feature_changes_no_guess_of_ridge() -> None:
    case = kinds()
    plain = guess_fine(case.X, *case.labels).fine
    padded = np.column_stack([case.X, np.full(len(case.X), 0.1)])
    np.testing.assert_array_equal(guess_fine(padded, *case.labels).fine, plain)


@every_way
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8, np.int64])
def test_every_type_of_number_gives_the_guesses_of_double_precision(way: str, dtype: Any) -> None:
    case = kinds(60)
    X = np.clip(np.round(case.X * 8 + 100), 0, 255)
    expected = guess_fine(X, *case.labels, guesser=way, random_state=0).fine
    found = guess_fine(X.astype(dtype), *case.labels, guesser=way, random_state=0).fine
    np.testing.assert_array_equal(found, expected)


@every_way
def test_guesses_and_report_do_not_depend_on_threads(way: str) -> None:
    case = kinds(noise=3.0)
    one = guess_fine(case.X, *case.labels, guesser=way, random_state=0)
    many = guess_fine(case.X, *case.labels, guesser=way, random_state=0, n_jobs=3)
    np.testing.assert_array_equal(many.fine, one.fine)
    assert many.report == one.report


@every_way
def test_the_rate_of_the_report_is_that_of_the_guesses(way: str) -> None:
    case = kinds(3000, noise=3.0)
    found = guess_fine(case.X, *case.labels, guesser=way, random_state=0)
    # Of the last coarse class one kind is known, which gives no rate.
    true = (found.fine == case.truth)[found.guessed & (case.coarse < 2)].mean()
    assert abs(found.report.rate - true) < 3 * found.report.standard_error


@every_way
def test_without_a_check_the_guesses_are_the_same_and_the_rate_is_open(way: str) -> None:
    case = kinds()
    case.fine[case.coarse == 2] = -1
    checked = guess_fine(case.X, *case.labels, guesser=way, random_state=0)
    quick = guess_fine(case.X, *case.labels, guesser=way, random_state=0, check=False)
    np.testing.assert_array_equal(quick.fine, checked.fine)
    assert math.isnan(quick.report.rate)


def test_few_samples_per_class_do_not_make_guesses_look_hopeless() -> None:
    # To leave out one sample alone would put its class at a disadvantage against the other.
    X = np.random.default_rng(0).normal(size=(400, 1))
    fine = np.arange(400) % 2
    fine[6:] = -1
    rates = []
    for seed in range(40):
        shuffled = np.random.default_rng(seed).permutation(X)
        report = guess_fine(shuffled, [0] * 400, fine, [0, 0], random_state=0).report
        rates.append(report.rate)
    assert 0.4 < np.mean(rates) < 0.6


def test_samples_alone_in_their_class_are_not_counted_as_checked() -> None:
    X = [[0.0], [0.1], [9.0], [0.2]]
    part = guess_fine(X, [0] * 4, [0, 0, 1, -1], [0, 0], guesser="nn").report.coarse[0]
    assert (part.n_checked, part.n_right) == (2, 2)


@every_way
def test_new_samples_are_guessed_from_stored_ones_as_in_one_call(way: str) -> None:
    case = kinds()
    scale = 1.0 / case.X.std(axis=0)
    whole = guess_fine(case.X, *case.labels, guesser=way, scale=scale).fine
    own, known = case.coarse == 0, case.fine >= 0
    found = guess_within(
        case.X[own & known], case.fine[own & known], case.X[own & ~known], guesser=way, scale=scale
    )
    np.testing.assert_array_equal(found, whole[own & ~known])


def test_the_scale_that_is_given_decides() -> None:
    X: Array = np.array([[0.0, 0.0], [1.0, 10.0], [0.9, 1.0]])
    far = guess_within(X[:2], [0, 1], X[2:], guesser=NearestGuesser(scaling=1.0), scale=[1, 1])
    near = guess_within(X[:2], [0, 1], X[2:], guesser=NearestGuesser(scaling=1.0), scale=[99, 1])
    assert (far.tolist(), near.tolist()) == ([0], [1])


def test_a_progress_bar_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    case = kinds(60)
    guess_fine(case.X, *case.labels)
    assert capsys.readouterr().err == ""
    guess_fine(case.X, *case.labels, verbose=1)
    assert "Guessing fine classes" in capsys.readouterr().err


def test_the_overall_rate_weighs_coarse_classes_by_their_guesses() -> None:
    parts = (
        CoarseGuesses(0, n_guessed=30, n_checked=10, n_right=5),
        CoarseGuesses(1, n_guessed=10, n_checked=10, n_right=9),
        CoarseGuesses(2, n_guessed=70),
    )
    report = GuessReport(parts)
    assert report.rate == pytest.approx((30 * 0.5 + 10 * 0.9) / 40)
    errors = [part.standard_error for part in parts[:2]]
    assert report.standard_error == pytest.approx(math.hypot(30 * errors[0], 10 * errors[1]) / 40)


def test_guesses_that_were_all_right_still_have_an_error() -> None:
    assert CoarseGuesses(0, n_checked=5, n_right=5).standard_error > 0.1
