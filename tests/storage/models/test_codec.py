"""Declared fields of values in model files: what is written is read, what is wrong is named."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from evergrow import InvalidInputError, ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Choice, Flag, Integer, Nothing, Number
from evergrow.storage.models.codec import (
    MOST_COUNTED,
    Array,
    ClassNames,
    Fields,
    Nested,
    Several,
    decode,
    encode,
)


@dataclass(frozen=True, eq=False)
class Part:
    share: float | None
    sizes: tuple[int, ...]
    ids: Any

    _stored: ClassVar[Fields] = {
        "share": [Nothing(), Number(0.0, 1.0, open_low=True)],
        "sizes": Several([Integer(0, MOST_COUNTED)]),
        "ids": Array(np.int64, ("rows",), -1, order="distinct"),
    }


@dataclass(frozen=True, eq=False)
class Whole:
    labels: Any
    kind: str
    part: Part | None
    rows: Any
    codes: Any
    counts: Any
    rates: Any = None

    _stored: ClassVar[Fields] = {
        "labels": ClassNames(),
        "kind": [Choice(("a", "b")), Flag()],
        "rows": Array((np.float32, np.float64), ("rows", None), -10.0, 10.0, filled=True),
        "codes": Array(np.int32, ("rows",), 0, "classes"),
        "counts": Array(np.int64, ("classes", 2), 0, total=MOST_COUNTED),
        "rates": Array(
            np.float64, ("classes",), 0.0, open_low=True, order="ascending", optional=True
        ),
        "part": Nested(Part, optional=True),
    }

    def check_stored(self) -> None:
        if self.kind == "b" and self.part is None:
            raise InvalidInputError("kind b needs a part")


def whole() -> Whole:
    return Whole(
        ClassList(np.array(["x", "y"])),
        "a",
        Part(np.float64(1), (2, 3), np.array([-1, 4, 9])),
        np.array([[1.0], [2.0], [10.0]]),
        np.array([0, 1, 1], dtype=np.int32),
        np.array([[1, 2], [3, 4]]),
        np.array([0.5, 0.5]),
    )


@pytest.mark.parametrize("change", [{}, {"part": None, "rates": None}])
def test_what_is_written_is_read(change: dict[str, Any]) -> None:
    value = replace(whole(), **change)
    header, arrays = encode(value)
    again = decode(Whole, header, arrays)
    assert ("part" in header, "rates" in arrays) == (not change, not change)
    assert again.labels.classes.tolist() == ["x", "y"]
    for name in ("kind", "rows", "codes", "counts", "rates"):
        assert getattr(again, name) is getattr(value, name)
    if not change:
        assert (again.part.share, again.part.sizes) == (1.0, (2, 3))
        assert type(header["part"]["share"]) is float


REFUSED: list[tuple[str, Any, str]] = [
    ("kind", "c", "kind must be one of ['a', 'b'] or True or False, got 'c'"),
    ("kind", "x" * 999, "xxx..."),
    ("other", 1, "header must have labels, kind, "),
    ("labels", None, "lists no classes"),
    ("part", [], "part must have share, sizes, ids, got []"),
    ("part/share", 1, "part.share must be None or a float in (0, 1], got 1"),
    ("part/share", 0.0, "part.share must be"),
    ("part/sizes", [1, True], "part.sizes must be an integer from 0 to 9007199254740992, got True"),
    ("part/sizes", [2**53 + 1], "part.sizes must be"),
    ("part.ids", None, "lacks the array 'part.ids'"),
    ("part.ids", np.array([4, 4, 9]), "the array part.ids must be distinct and sorted"),
    ("part.ids", np.array([-2, 4, 9]), "part.ids must have values from -1 to "),
    ("part.ids", np.arange(2), "part.ids must be int64 of shape (3), got int64 of shape (2,)"),
    ("rows", np.zeros((0, 1)), "rows must be float32 or float64 of shape (0, any) and not empty"),
    ("rows", np.zeros(3), "got float64 of shape (3,)"),
    ("rows", np.array([[1.0], [np.nan], [2.0]]), "rows must have values from -10 to 10, got nan"),
    ("rows", np.array([[1.0], [11.0], [2.0]]), "got 1.0 to 11.0"),
    ("codes", np.array([0, 2, 1], np.int32), "codes must have values from 0 to 1, got 0 to 2"),
    ("counts", np.array([[1, 2], [3, 2**53]]), "counts must add up to at most 9.0072e+15"),
    ("rates", np.array([0.5, np.inf]), "rates must have values above 0 to 1.79769e+308, got 0.5"),
    ("rates", np.array([0.0, 0.5]), "rates must have values above 0"),
    ("rates", np.array([0.5, 0.4]), "rates must be ascending and sorted"),
]


@pytest.mark.parametrize(("path", "found", "message"), REFUSED)
def test_a_wrong_field_is_named(path: str, found: Any, message: str) -> None:
    header, arrays = encode(whole())
    if path in arrays and found is None:
        del arrays[path]
    elif path in arrays:
        arrays[path] = found
    else:
        *folders, name = path.split("/")
        (header["part"] if folders else header)[name] = found
    with pytest.raises(ModelFileError, match=f"the model file .*{re.escape(message)}"):
        decode(Whole, header, arrays)


def test_what_no_field_shows_alone_is_checked() -> None:
    header, arrays = encode(replace(whole(), kind="b"))
    del header["part"]
    with pytest.raises(ModelFileError, match="the model file is inconsistent: kind b needs a part"):
        decode(Whole, header, arrays)


@pytest.mark.parametrize(
    "change",
    [
        {"counts": np.array([[1, 2], [3, 2**53]])},
        {"part": Part(None, (2**53 + 1,), np.array([1, 4, 9]))},
        {"rows": np.array([[1.0], [2.0], [11.0]])},
    ],
)
def test_what_is_past_its_limit_is_not_written(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="the model cannot be saved: "):
        encode(replace(whole(), **change))
