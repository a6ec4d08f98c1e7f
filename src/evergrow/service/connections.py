"""Connections that send nothing, or too slowly, are closed; so are too many of them."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["connections_with"]


def connections_with(head_seconds: float, most: int) -> type[asyncio.Protocol]:
    """Uvicorn's protocol for connections that must ask for something from time to time.

    Parameters
    ----------
    head_seconds : float
        How long a connection may wait, or take, to send the head of a request; up to twice as long
        in practice.
    most : int
        Connections at once; further ones are closed as they come.
    """
    kind: Any = AutoHTTPProtocol

    class Connection(kind):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.waited = False
            self.watch: asyncio.TimerHandle | None = None
            if len(self.connections) > most:
                transport.abort()
                return
            self.watch = self.loop.call_later(head_seconds, self.look)

        def connection_lost(self, error: Exception | None) -> None:
            if self.watch is not None:
                self.watch.cancel()
            super().connection_lost(error)

        def look(self) -> None:
            cycle = self.cycle
            waits = cycle is None or cycle.response_complete
            if waits and self.waited:
                self.transport.abort()
                return
            self.waited = waits
            self.watch = self.loop.call_later(head_seconds, self.look)

    return Connection
