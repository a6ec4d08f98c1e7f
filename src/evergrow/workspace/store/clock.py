"""Timestamps that never go backwards, even if the system clock does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime


def now() -> datetime:
    """The time of the system clock."""
    return datetime.now(UTC)


def format_time(moment: datetime) -> str:
    """A time as text in UTC and of fixed length, so that text order is time order.

    >>> format_time(datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC))
    '2026-01-02T03:04:05.678Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock:
    """Gives the timestamp of a new event.

    Events are ordered by their number; the time is for people. To agree with that order, the
    timestamp repeats the last one while a system clock that was set back catches up.

    Parameters
    ----------
    last : str
        Newest timestamp so far; empty if there is none.
    read : callable
        Returns the time of the system clock.
    """

    def __init__(self, last: str = "", read: Callable[[], datetime] = now) -> None:
        self._last = last
        self._read = read

    def __call__(self) -> str:
        """The current time, never before an earlier result."""
        self._last = max(self._last, format_time(self._read()))
        return self._last
