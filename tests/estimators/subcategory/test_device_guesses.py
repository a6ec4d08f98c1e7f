"""Guesses on a GPU, and the same code by torch on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergrow import DeviceMemoryError
from evergrow import device as compute_on
from evergrow.estimators import NearestGuesser, RidgeGuesser, guess_fine, guess_within
from evergrow.estimators.linear.ridge import RotatedRidge
from evergrow.estimators.subcategory import guessers
from evergrow.estimators.subcategory.guess import inverse_deviations
from evergrow.estimators.subcategory.guessers import RidgeRegression, nearest_rows
from tests.budget import budget
from tests.devices import every_device, import_torch, on
from tests.estimators.subcategory.levels import kinds

torch = import_torch()
GUESSERS = {
    "ridge": RidgeGuesser(),
    "ridge unscaled": RidgeGuesser(scaling=0.0),
    "nn": NearestGuesser(),
    "nn standardised": NearestGuesser(scaling=1.0),
}
every_guesser = pytest.mark.parametrize("guesser", GUESSERS.values(), ids=GUESSERS.keys())


@every_device
@every_guesser
def test_guesses_and_their_report_are_those_of_the_processor(guesser: Any, device: str) -> None:
    case = kinds(d=4, noise=4.0)
    case.X *= [0.02, 1.0, 5.0, 30.0]
    here = guess_fine(case.X, *case.labels, guesser=guesser, random_state=0)
    for X in (case.X, on(device, case.X)):
        with compute_on(device):
            there = guess_fine(X, *case.labels, guesser=guesser, random_state=0)
        np.testing.assert_array_equal(there.fine, here.fine)
        np.testing.assert_array_equal(there.guessed, here.guessed)
        assert there.report == here.report


@every_device
@every_guesser
def test_samples_of_one_class_are_guessed_as_on_the_processor(guesser: Any, device: str) -> None:
    random = np.random.default_rng(0)
    known, X, fine = random.normal(size=(30, 5)), random.normal(size=(9, 5)), np.arange(30) % 3
    expected = guess_within(known, fine, X, guesser=guesser)
    with compute_on(device):
        found = guess_within(known, fine, on(device, X), guesser=guesser)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.gpu
@every_guesser
def test_without_a_device_guesses_are_made_where_the_samples_lie(guesser: Any) -> None:
    case = kinds()
    expected = guess_fine(case.X, *case.labels, guesser=guesser, random_state=0)
    rows = torch.as_tensor(case.X, device="cuda")
    found = guess_fine(rows, *case.labels, guesser=guesser, random_state=0)
    np.testing.assert_array_equal(found.fine, expected.fine)


@settings(max_examples=budget(30))
@given(st.data())
def test_the_nearest_row_is_that_of_arrays_ties_included(data: Any) -> None:
    d = data.draw(st.integers(1, 3))
    row = st.lists(st.integers(-2, 2), min_size=d, max_size=d)
    known = np.array(data.draw(st.lists(row, min_size=1, max_size=9)), dtype=float)
    queries = np.array(data.draw(st.lists(row, min_size=1, max_size=5)), dtype=float)
    tensors = torch.as_tensor(known), torch.as_tensor(queries)
    np.testing.assert_array_equal(nearest_rows(*tensors), nearest_rows(known, queries))
    folds = np.arange(len(known)) // 2
    expected = nearest_rows(known, known, folds)
    np.testing.assert_array_equal(nearest_rows(tensors[0], tensors[0], folds), expected)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_small_blocks_far_from_zero_change_nothing(
    offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    known, queries = random.normal(size=(60, 3)) + offset, random.normal(size=(20, 3)) + offset
    expected = nearest_rows(known, queries)
    monkeypatch.setattr(guessers, "_DEVICE_ROWS", 7)
    monkeypatch.setattr(guessers, "_DEVICE_PAIR_BYTES", 100)
    found = nearest_rows(torch.as_tensor(known), torch.as_tensor(queries))
    np.testing.assert_array_equal(found, expected)


@every_device
@pytest.mark.parametrize("shape", [(40, 5), (12, 30)])
def test_ridge_regressions_agree_in_nine_digits(shape: tuple[int, int], device: str) -> None:
    random = np.random.default_rng(0)
    fine = np.r_[np.zeros(5, int), np.arange(shape[0] - 5) % 3].astype(np.int32)
    X = random.normal(size=shape) + fine[:, None]
    here, there = (RidgeRegression.of(one, fine) for one in (X, on(device, X).tensor))
    assert there.fit.penalty == pytest.approx(here.fit.penalty, rel=1e-9)
    scores = there.fit.scores(on(device, X).tensor).cpu()
    np.testing.assert_allclose(scores, here.fit.scores(X), rtol=1e-9, atol=1e-10)
    folds = np.array([0, 1, 0, 2, 2, *range(3, shape[0] - 2)])
    held_out = there.held_out_scores(folds)
    assert held_out is not None
    expected = here.held_out_scores(folds)
    np.testing.assert_allclose(torch.as_tensor(held_out).cpu(), expected, rtol=1e-9, atol=1e-9)
    assert there.held_out_scores(np.zeros(shape[0], int)) is None


def test_constant_features_are_not_scaled() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 0, 4] + 0.1
    expected = 1 / np.where([1, 0, 1], X.std(axis=0), 1.0)
    np.testing.assert_allclose(inverse_deviations(torch.as_tensor(X)), expected, rtol=1e-12)


def test_a_full_device_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(RotatedRidge, "of", fail)
    case = kinds()
    message = r"exhausted.*guess fewer samples"
    with compute_on("torch-cpu"), pytest.raises(DeviceMemoryError, match=message):
        guess_fine(case.X, *case.labels)


@pytest.mark.parametrize(
    ("X", "message"),
    [(np.full((2, 2), 1e150), "too large"), (np.zeros((0, 2)), "without any numbers")],
)
def test_bad_rows_on_a_device_are_refused(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        guess_within(np.eye(2), [0, 1], on("torch-cpu", X))
