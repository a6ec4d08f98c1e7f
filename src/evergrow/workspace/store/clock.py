"""Times that never go backwards, whatever the computer's clock does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

__all__ = ["Clock", "now", "text_of"]


def now() -> datetime:
    """The time by the computer's clock."""
    return datetime.now(UTC)


def text_of(moment: datetime) -> str:
    """A time as it is written down: in UTC and of fixed length, so that text sorts as time does.

    >>> text_of(datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC))
    '2026-01-02T03:04:05.678Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock:
    """Tells the time of a new event.

    Order among events is by their number; the time is for people. Still it should not contradict
    the order: where the computer's clock was set back, time stands still until it has caught up.

    Parameters
    ----------
    last : str
        The newest time written down so far; empty if there is none.
    read : callable
        Gives the time by the computer's clock.
    """

    def __init__(self, last: str = "", read: Callable[[], datetime] = now) -> None:
        self._last = last
        self._read = read

    def __call__(self) -> str:
        """The time now, never before one that was told already."""
        self._last = max(self._last, text_of(self._read()))
        return self._last
