"""Bytes and seconds as they are said."""

from __future__ import annotations

import pytest

from evergrow.distributed.planning.amounts import said_bytes, said_seconds
from evergrow.foundation.params import bytes_of


@pytest.mark.parametrize("n_bytes", [1, 1023, 1024, 10**6, 3 << 30, 5 << 40])
def test_bytes_that_are_said_can_be_read_again(n_bytes: int) -> None:
    assert bytes_of(said_bytes(n_bytes)) == pytest.approx(n_bytes, rel=0.05)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "under 0.01 ms"),
        (7.3e-5, "0.073 ms"),
        (0.0123, "12 ms"),
        (0.5, "0.5 s"),
        (119, "119 s"),
        (121, "2 min"),
        (7200, "2 h"),
    ],
)
def test_seconds_are_said_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert said_seconds(seconds) == said
