"""Guesses are those of plain loops, also where numbers are awkward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow.estimators import NearestGuesser, RidgeGuesser, guess_fine, guess_within
from evergrow.estimators.linear.ridge import RotatedRidge
from evergrow.estimators.subcategory import guessers
from evergrow.estimators.subcategory.guessers import (
    _PENALTIES,
    RidgeRegression,
    leave_one_of_each_out,
    nearest_rows,
)
from evergrow.estimators.subcategory.label_tree import LabelTree
from evergrow.estimators.subcategory.labels import read_labels
from evergrow.estimators.subcategory.samples import NewSamples, fill_missing
from tests.budget import budget
from tests.estimators.subcategory.levels import kinds
from tests.reference import guessing as twin
from tests.reference.subcategories import by_ridge

Array = np.ndarray[Any, Any]

SHAPES = {"more samples": (40, 5), "more features": (12, 30), "as many": (15, 15)}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def samples(n: int, d: int, n_classes: int = 3, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    fine = (np.arange(n) % n_classes + 4).astype(np.int32)
    return random.normal(size=(n, d)) + fine[:, None] * random.normal(size=d) + 20.0, fine


def assert_nearest_by_loops(known: Array, queries: Array) -> None:
    expected = [twin.nearest(known, x, list(range(len(known)))) for x in queries]
    assert nearest_rows(known, queries).tolist() == expected


@settings(max_examples=budget(60))
@given(st.data())
def test_the_nearest_row_is_that_of_loops_ties_included(data: Any) -> None:
    d = data.draw(st.integers(1, 4))
    row = st.lists(st.integers(-2, 2), min_size=d, max_size=d)
    known = np.array(data.draw(st.lists(row, min_size=1, max_size=9)), dtype=float)
    queries = np.array(data.draw(st.lists(row, min_size=1, max_size=5)), dtype=float)
    assert_nearest_by_loops(known, queries)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_data_far_from_zero_have_the_same_nearest_rows(offset: float) -> None:
    random = np.random.default_rng(0)
    known, queries = random.normal(size=(60, 3)) + offset, random.normal(size=(20, 3)) + offset
    assert_nearest_by_loops(known, queries)


def test_groups_far_from_each_other_do_not_blur_the_nearest_row_within_one() -> None:
    random = np.random.default_rng(0)
    far = np.repeat([[0.0], [1e9]], 30, axis=0)
    known = far + random.normal(size=(60, 4)) * 1e-3
    queries = far[::6] + random.normal(size=(10, 4)) * 1e-3
    assert_nearest_by_loops(known, queries)


def test_blocks_change_no_nearest_row(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    known = random.integers(0, 3, size=(50, 3)).astype(float)
    folds = np.arange(50) // 4
    at_once = nearest_rows(known, known), nearest_rows(known, known, folds)
    monkeypatch.setattr(guessers, "_ROWS", 7)
    monkeypatch.setattr(guessers, "_PAIR_BYTES", 100)
    np.testing.assert_array_equal(nearest_rows(known, known), at_once[0])
    np.testing.assert_array_equal(nearest_rows(known, known, folds), at_once[1])


def test_a_row_looks_for_its_nearest_in_other_folds() -> None:
    known = np.random.default_rng(0).integers(0, 3, size=(30, 3)).astype(float)
    folds = np.arange(30) % 7
    assert nearest_rows(known, known, folds).tolist() == twin.nearest_without_fold(known, folds)


def test_a_row_without_other_folds_has_no_nearest() -> None:
    assert nearest_rows(np.ones((3, 2)), np.ones((3, 2)), np.zeros(3, int)).tolist() == [-1] * 3


@every_shape
def test_closed_forms_leave_samples_out_as_fitting_again_does(shape: tuple[int, int]) -> None:
    X, fine = samples(*shape)
    targets = twin.one_hot(fine, np.unique(fine))
    ridge = RotatedRidge.of(X, fine - 4, 3, np.float64)
    for relative in _PENALTIES[4::4]:
        penalty = float(relative) * twin.penalty_unit(X)
        expected = twin.left_out_error(X, targets, penalty)
        scores = ridge.left_out(ridge.rotated(X), fine - 4, penalty)
        assert np.square(targets - scores).sum() == pytest.approx(expected, rel=1e-6)


@every_shape
def test_the_penalty_is_the_one_that_fitting_again_chooses(shape: tuple[int, int]) -> None:
    X, fine = samples(*shape)
    targets = twin.one_hot(fine, np.unique(fine))
    expected = twin.choose_penalty(X, targets, _PENALTIES * twin.penalty_unit(X))
    assert RidgeRegression.of(X, fine).fit.penalty == pytest.approx(expected)


@every_shape
def test_ridge_guesses_are_those_of_normal_equations(shape: tuple[int, int]) -> None:
    X, fine = samples(*shape)
    queries, _ = samples(50, shape[1], seed=1)
    found = guess_within(X, fine, queries, guesser=RidgeGuesser(scaling=0.0))
    np.testing.assert_array_equal(found, twin.guess_by_ridge(X, fine, _PENALTIES, queries))


@every_shape
def test_a_fold_is_held_out_as_fitting_again_does(shape: tuple[int, int]) -> None:
    X, fine = samples(*shape)
    regression, targets = RidgeRegression.of(X, fine), twin.one_hot(fine, np.unique(fine))
    folds = leave_one_of_each_out(fine, np.random.default_rng(0))
    scores = twin.held_out_scores(X, targets, regression.fit.penalty, folds)
    expected = regression.classes[scores.argmax(axis=1)]
    np.testing.assert_array_equal(regression.held_out(folds), expected)


@pytest.mark.parametrize(
    ("guesser", "by_twin"),
    [
        (NearestGuesser(), twin.guess_by_nearest),
        (NearestGuesser(scaling=1.0), twin.guess_by_nearest),
        (RidgeGuesser(), lambda X, fine, Q: twin.guess_by_ridge(X, fine, _PENALTIES, Q)),
    ],
    ids=["nn", "nn standardised", "ridge"],
)
def test_all_coarse_classes_are_guessed_as_one_by_one(guesser: Any, by_twin: Any) -> None:
    case = kinds(d=4, noise=4.0)
    case.X *= [0.02, 1.0, 5.0, 30.0]
    X = twin.scaled(case.X, guesser.scaling)
    expected = case.fine.copy()
    for c in range(3):
        own, known = case.coarse == c, case.fine >= 0
        Q = X[own & ~known]
        expected[own & ~known] = by_twin(X[own & known], case.fine[own & known], Q)
    found = guess_fine(case.X, *case.labels, guesser=guesser)
    np.testing.assert_array_equal(found.fine, expected)


def test_no_fold_has_two_of_a_class_and_none_is_left_empty() -> None:
    fine = np.array([3, 3, 3, 1, 1, 8], dtype=np.int32)
    folds = leave_one_of_each_out(fine, np.random.default_rng(0))
    pairs = set(zip(folds.tolist(), fine.tolist(), strict=True))
    assert len(pairs) == len(fine)
    assert set(folds.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("shape", [(1000, 3), (7, 30)])
def test_rounding_errors_of_constant_features_are_not_a_direction(shape: tuple[int, int]) -> None:
    codes = np.zeros(shape[0], dtype=np.int32)
    ridge = RotatedRidge.of(np.full(shape, 0.1), codes, 1, np.float64)
    assert len(ridge.eigenvalues) == 0


def test_of_penalties_that_do_equally_well_the_largest_is_taken() -> None:
    constant = RidgeRegression.of(np.zeros((4, 2)), np.array([0, 0, 1, 1], dtype=np.int32))
    assert constant.fit.penalty == _PENALTIES.max()


@pytest.mark.parametrize(
    ("guesser", "by_twin"), [("nn", twin.guess_by_nearest), ("ridge", by_ridge)]
)
@pytest.mark.parametrize("seed", range(5))
def test_guesses_of_a_deep_tree_go_down_as_the_twins(guesser: str, by_twin: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    above = {n: n // 2 - 1 if n > 3 else n % 2 for n in range(12)}
    y = random.integers(0, 12, 80)
    X = random.integers(-2, 3, (80, 3)) + 2.0 * np.stack([y % 2, y // 2 % 3, y // 4], axis=1)
    tree, known = LabelTree.empty().grow(read_labels(y, above, LabelTree.empty()))
    options = {"guesser": RidgeGuesser(0.0) if guesser == "ridge" else "nn", "random_state": 0}
    new = NewSamples(X, known, None)
    (found,), report = fill_missing([new], [np.ones(80, bool)], tree, options, np.ones(3))
    expected = twin.guess_down(X, known.astype(np.int64), tree.parents.tolist(), by_twin)
    np.testing.assert_array_equal(found, expected)
    assert tree.n_levels > 2
    assert tree.is_finest[found].all()
    assert report is not None
    assert {part.coarse for part in report.coarse} <= set(tree.names)
