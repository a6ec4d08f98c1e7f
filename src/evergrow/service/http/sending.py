"""Clients that do not read what they asked for are let go."""

from __future__ import annotations

import asyncio

__all__ = ["SendWatch"]


class SendWatch:
    """Ends a connection whose other side takes nothing of what is to be sent.

    Neither closing a connection nor sending has an end of its own: both wait for the other side,
    and meanwhile the answer, and what it is made of, are kept.

    Parameters
    ----------
    loop : event loop
        Keeps the time.
    transport : Transport
        What is watched.
    seconds : float
        How long the other side may take nothing; up to twice as long in practice.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, seconds: float
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._seconds = seconds
        # Bytes that were left at the last look; None if some were taken since.
        self._left: int | None = None
        self._timer = loop.call_later(seconds, self._look)

    def progressed(self) -> None:
        """Say that the other side took something."""
        self._left = None

    def cancel(self) -> None:
        """Stop watching."""
        self._timer.cancel()

    def _look(self) -> None:
        left = self._transport.get_write_buffer_size()
        if left and left == self._left:
            self._transport.abort()
            return
        self._left = left
        self._timer = self._loop.call_later(self._seconds, self._look)
