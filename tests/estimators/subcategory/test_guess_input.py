"""Wrong input is refused with an error that says what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evergrow.estimators import NearestGuesser, RidgeGuesser, guess_fine, guess_within
from evergrow.foundation.errors import InvalidInputError

GOOD: dict[str, Any] = {
    "X": np.arange(8.0).reshape(4, 2),
    "coarse": [0, 0, 0, 1],
    "fine": [0, 1, -1, -1],
    "parents": [0, 0],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": [[np.nan, 0.0]] * 4}, "NaN"),
        ({"X": np.zeros(4)}, "2D array"),
        ({"X": np.zeros((0, 2)), "coarse": [], "fine": []}, "0 sample"),
        ({"X": np.full((4, 2), 1e200)}, "too large"),
        ({"coarse": [0, 0, 0]}, "coarse must have one code per sample, 4, got 3"),
        ({"coarse": [0, 0, 0, -1]}, "coarse must be codes from 0 to .*, got -1"),
        ({"fine": [0, 1, -1]}, "fine must have one code per sample, 4, got 3"),
        ({"fine": [0, 1, -2, -1]}, "fine must be codes from -1 to .*, got -2"),
        ({"fine": [0.0, 1.0, -1.0, -1.0]}, "fine must be a flat array of integers"),
        ({"fine": ["a", "b", "c", "d"]}, "fine must be a flat array of integers"),
        ({"fine": [[0], [1], [-1], [-1]]}, "fine must be a flat array of integers"),
        ({"fine": [0, 2, -1, -1]}, "fine has the code 2, but parents ends at 1"),
        ({"fine": [0, 2**40, -1, -1]}, "fine must be codes from -1 to"),
        ({"parents": []}, "fine has the code 1, but parents ends at -1"),
        ({"parents": [[0, 0]]}, "parents must be a flat array of integers, got int64 of shape"),
        ({"parents": [[0], [0, 0]]}, "inhomogeneous shape"),
        (
            {"parents": [0, 1]},
            "sample 1 has the fine class 1 of the coarse class 1, but its coarse class is 0",
        ),
        ({"guesser": "knn"}, r"guesser must be one of \['nn', 'ridge'\].*got 'knn'"),
        ({"guesser": RidgeGuesser}, "guesser must be"),
        ({"scale": [1.0]}, r"scale must have the shape \(2,\), got \(1,\)"),
        ({"scale": [1.0, 0.0]}, "scale must be positive"),
        ({"scale": "wide"}, "could not convert string to float"),
        ({"scale": [1.0, np.inf]}, "scale must be positive and finite"),
        ({"check": 1}, "check must be True or False"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"verbose": -1}, "verbose must be"),
    ],
)
def test_bad_input_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        guess_fine(**{**GOOD, **changed})


@pytest.mark.parametrize("scaling", [-1.0, 1.5, "1", None])
@pytest.mark.parametrize("guesser", [RidgeGuesser, NearestGuesser])
def test_options_of_guessers_are_checked(guesser: Any, scaling: Any) -> None:
    with pytest.raises(ValueError, match=r"Guesser.scaling must be a float in \[0, 1\]"):
        guesser(scaling=scaling)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": np.zeros((2, 3))}, "X has 3 features, but known_X has 2"),
        ({"known_fine": [0, 1]}, "known_fine must have one code per sample, 4, got 2"),
        ({"known_fine": [0, 1, -1, 0]}, "known_fine must be codes from 0"),
        ({"guesser": "knn"}, "guesser must be one of"),
        ({"scale": [1.0]}, "scale must have the shape"),
    ],
)
def test_bad_input_for_new_samples_is_refused(changed: dict[str, Any], message: str) -> None:
    good = {"known_X": GOOD["X"], "known_fine": [0, 0, 1, 1], "X": np.zeros((2, 2))}
    with pytest.raises(ValueError, match=message):
        guess_within(**{**good, **changed})


def test_what_is_given_is_not_changed() -> None:
    X, fine = GOOD["X"].copy(), np.array(GOOD["fine"], dtype=np.int32)
    guess_fine(X, GOOD["coarse"], fine, GOOD["parents"])
    np.testing.assert_array_equal(X, GOOD["X"])
    assert fine.tolist() == GOOD["fine"]
