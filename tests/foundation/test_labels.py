"""The growing class list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.labels import ClassList, as_classes, check_label_types

# NumPy treats strings as equal that differ in trailing zero characters only.
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
BATCHES = st.lists(
    st.lists(st.integers(-5, 30), min_size=1, max_size=8), min_size=1, max_size=6
) | st.lists(st.lists(NAMES, min_size=1, max_size=8), min_size=1, max_size=6)


@given(BATCHES)
def test_columns_never_move(batches: list[list[Any]]) -> None:
    known, _ = ClassList.of(np.array(batches[0]))
    for batch in batches[1:]:
        grown, codes = known.extend(np.array(batch))
        assert grown.classes[: len(known)].tolist() == known.classes.tolist()
        assert grown.classes[codes].tolist() == batch
        new = grown.classes[len(known) :].tolist()
        assert new == sorted(set(batch) - set(known.classes.tolist()))
        known = grown


def test_a_batch_without_new_classes_changes_nothing() -> None:
    known, _ = ClassList.of(np.array(["b", "a"]))
    same, codes = known.extend(np.array(["b", "b"]))
    assert same.classes is known.classes
    assert codes.tolist() == [1, 1]


def test_the_list_cannot_be_changed_from_outside() -> None:
    known, _ = ClassList.of(np.array([1, 2]))
    with pytest.raises(ValueError, match="read-only"):
        known.classes[0] = 7


def test_longer_strings_are_not_cut() -> None:
    known, _ = ClassList.of(np.array(["a"]))
    assert known.extend(np.array(["elephant"]))[0].classes.tolist() == ["a", "elephant"]


@pytest.mark.parametrize(
    "y",
    [
        [1, "a"],
        ("a", 2.0),
        np.array(["a", 1], dtype=object),
        pd.Series(["a", 1]),
        ["a", b"a"],
        ["a", None],
        [None, None],
    ],
    ids=["list", "tuple", "object array", "series", "bytes", "missing", "all missing"],
)
def test_mixed_labels_are_refused(y: Any) -> None:
    with pytest.raises(TypeError, match="all strings or all numbers"):
        check_label_types(y)


@pytest.mark.parametrize(
    "y", [[1, 2], ["a", "b"], np.array([1, 2]), pd.Series(["a", "b"]), pd.Categorical(["a"]), None]
)
def test_labels_of_one_kind_pass(y: Any) -> None:
    check_label_types(y)


def test_unsigned_and_signed_classes_stay_integers() -> None:
    large = 2**60
    known, _ = ClassList.of(np.array([large, large + 1], dtype=np.uint64))
    grown, codes = known.extend(np.array([5, -6, large + 1]))
    assert grown.classes.tolist() == [large, large + 1, -6, 5]
    assert codes.tolist() == [3, 2, 1]


def test_classes_beyond_signed_integers_are_kept_or_refused() -> None:
    known, _ = ClassList.of(np.array([2**63 + 1], dtype=np.uint64))
    assert known.extend(np.array([5]))[0].classes.tolist() == [2**63 + 1, 5]
    with pytest.raises(ValueError, match="cannot be stored exactly"):
        known.extend(np.array([-5]))


@pytest.mark.parametrize(
    ("known", "new", "error", "message"),
    [
        (["a"], [1], InvalidTypeError, "must be strings like the known classes, got numbers"),
        ([2**60, 2**60 + 1], [0.5], InvalidInputError, "cannot be stored exactly"),
    ],
)
def test_classes_that_do_not_go_together_are_refused(
    known: Any, new: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        ClassList.of(np.array(known))[0].extend(np.array(new))
    assert type(caught.value) is error


@pytest.mark.parametrize("name", [float("nan"), "a\0"])
def test_a_name_that_numpy_cannot_hold_is_refused(name: Any) -> None:
    known, _ = ClassList.of(np.array(["a", "b"] if isinstance(name, str) else [1, 2]))
    with pytest.raises(ValueError, match="cannot be stored exactly"):
        ClassList.named([name, known.classes.tolist()[1]], like=known)


def test_listed_classes_and_labels_are_sorted_together() -> None:
    known, _ = ClassList.of(np.array([5]))
    grown, codes = known.extend_with(np.array([3, 5, 1]), np.array([2, 9, 5]))
    assert grown.classes.tolist() == [5, 1, 2, 3, 9]
    assert codes.tolist() == [3, 0, 1]


@pytest.mark.parametrize("classes", [{1, 2}, [1, "a"], [[1], [2]], [None], np.array([None])])
def test_what_lists_no_classes_is_refused(classes: Any) -> None:
    with pytest.raises(TypeError, match="all strings or all numbers"):
        as_classes(classes)


@pytest.mark.parametrize("classes", [np.zeros((2, 2)), [1.0, np.nan], [np.inf]])
def test_classes_must_be_flat_and_finite(classes: Any) -> None:
    with pytest.raises(ValueError, match=r"flat list|NaN or infinite"):
        as_classes(classes)
