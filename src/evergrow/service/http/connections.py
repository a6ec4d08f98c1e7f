"""Connections that send nothing, or too slowly, are closed; what is no HTTP is refused in words."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from evergrow.service.http.headers import SAFE_HEADERS
from evergrow.service.http.problems import problem
from evergrow.service.http.sending import SendWatch

__all__ = ["Connection"]


class Connection(H11Protocol):
    """Uvicorn's protocol for connections that must say soon what they want.

    How long a connection may be idle between two requests is uvicorn's ``timeout_keep_alive``.
    """

    # From the beginning of a connection to the end of the head of its first request, and from the
    # first byte of the head of a later one to its end.
    head_seconds = 15.0
    # How long the other side may take nothing of an answer.
    send_seconds = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        # Since when a head is awaited; None while there is none to wait for.
        self.head_since: float | None = self.loop.time()
        self.watch = self.loop.call_later(self.head_seconds, self.look)
        self.sending = SendWatch(self.loop, transport, self.send_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self.watch.cancel()
        self.sending.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Note that the other side reads."""
        self.sending.progressed()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Note whether this is part of a head."""
        before = self.cycle
        super().data_received(data)
        if self.is_answering or self.cycle is not before:
            self.head_since = None
        elif self.head_since is None:
            self.head_since = self.loop.time()

    @property
    def is_answering(self) -> bool:
        """Whether there is a request that is not answered whole."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def look(self) -> None:
        """Close the connection if its time is over, else look again when it may be."""
        waited = 0.0
        if self.head_since is not None and not self.is_answering:
            waited = self.loop.time() - self.head_since
        if waited < self.head_seconds:
            self.watch = self.loop.call_later(self.head_seconds - waited, self.look)
            return
        self.transport.close()
        # Closing waits for what is still to be sent, and the other side may never take it.
        self.watch = self.loop.call_later(self.head_seconds, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP as everything else is refused."""
        # An answer that has begun cannot be taken back.
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in self._refusal(msg):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _refusal(self, msg: str) -> tuple[h11.Event, ...]:
        refused = problem(HTTPStatus.BAD_REQUEST, msg, {"Connection": "close"})
        headers = [*self.server_state.default_headers, *refused.raw_headers, *SAFE_HEADERS]
        start = h11.Response(
            status_code=refused.status_code,
            headers=headers,
            reason=HTTPStatus.BAD_REQUEST.phrase.encode(),
        )
        return start, h11.Data(data=bytes(refused.body)), h11.EndOfMessage()
