"""Bytes and seconds as they are written and read."""

from __future__ import annotations

import pytest

from evergrow.planning.amounts import as_bytes, said_bytes, said_seconds


@pytest.mark.parametrize(
    ("written", "n_bytes"),
    [("600MiB", 600 << 20), ("2GB", 2 * 10**9), (" 1.5 tib ", 3 << 39), ("7", 7), (12, 12)],
)
def test_a_unit_multiplies(written: object, n_bytes: int) -> None:
    assert as_bytes(written, "memory_limit") == n_bytes


@pytest.mark.parametrize(
    "written",
    [
        "",
        "4 elephants",
        "-1GiB",
        "1e400",
        "nan",
        "9" * 400,
        "0",
        0,
        -5,
        float("nan"),
        None,
        True,
        [],
    ],
)
def test_what_is_no_amount_is_refused_by_name(written: object) -> None:
    with pytest.raises(ValueError, match=r"memory_limit must be a number of bytes"):
        as_bytes(written, "memory_limit")


@pytest.mark.parametrize("n_bytes", [1, 1023, 1024, 10**6, 3 << 30, 5 << 40])
def test_bytes_that_are_said_can_be_read_again(n_bytes: int) -> None:
    assert as_bytes(said_bytes(n_bytes), "x") == pytest.approx(n_bytes, rel=0.05)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.5, "0.5 s"), (119, "119 s"), (121, "2 min"), (7200, "2 h")]
)
def test_seconds_are_said_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert said_seconds(seconds) == said
