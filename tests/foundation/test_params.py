"""Rules of parameters and the messages about values that they do not admit."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from evergrow import InvalidInputError
from evergrow.foundation.params import (
    Choice,
    FilePath,
    Flag,
    Fraction,
    MemorySize,
    Nothing,
    RandomState,
    Rule,
    check_parameters,
)

CASES: list[tuple[Rule, list[Any], list[Any], str]] = [
    (Nothing(), [None], [0, ""], "None"),
    (Flag(), [True, np.False_], [0, 1, None], "True or False"),
    (Fraction(), [0.1, 1.0, np.float32(0.5)], [0.0, 1, 1.5, True], "a float in (0, 1]"),
    (FilePath(), ["a", pathlib.Path("a")], ["", "a\0", b"a", 3], "a path"),
    (
        RandomState(),
        [0, 2**32 - 1, np.random.RandomState(0)],
        [-1, 2**32, 1.0, "x"],
        "an integer from 0 to 4294967295 or a numpy.random.RandomState",
    ),
    (
        MemorySize(),
        ["4GiB", "1.5 KiB", 1],
        ["4GiBs", "0B", 0, 2.5, None],
        "a size such as '4GiB' or a number of bytes, at least 1",
    ),
]


@pytest.mark.parametrize(("rule", "good", "bad", "text"), CASES)
def test_a_rule_admits_what_its_text_says(
    rule: Rule, good: list[Any], bad: list[Any], text: str
) -> None:
    for value in good:
        check_parameters({"size": value}, {"size": [rule]})
    for value in bad:
        with pytest.raises(InvalidInputError) as caught:
            check_parameters({"size": value}, {"size": [rule]})
        assert str(caught.value) == f"size must be {text}, got {value!r}"


def test_alternatives_are_joined_by_or() -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_parameters({"random_state": "x"}, {"random_state": [Nothing(), RandomState()]})
    assert str(caught.value) == (
        "random_state must be None or an integer from 0 to 4294967295 or a "
        "numpy.random.RandomState, got 'x'"
    )


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("quik", ": did you mean 'quick'?"),
        ("Quick", ": did you mean 'quick'?"),
        (None, ": did you mean 'none'?"),
        ("red", ""),
        (3, ""),
    ],
)
def test_a_similar_choice_is_suggested(value: object, hint: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_parameters({"mode": value}, {"mode": [Flag(), Choice(("quick", "none"))]})
    assert str(caught.value) == (
        f"mode must be True or False or one of ['none', 'quick'], got {value!r}{hint}"
    )
