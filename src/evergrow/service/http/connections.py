"""Connections: how many at a time, and timeouts for handshakes, request headers and responses."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
import weakref
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from evergrow.service.http.middleware import SECURITY_HEADERS
from evergrow.service.http.responses import problem

_BACKLOG = 512
_HANDSHAKE_SECONDS = 15.0
_MAX_CONNECTIONS = 1000
# Wanted limit on open files: enough for all connections and everything else.
_WANTED_FILES = 65_536
# The other half is for the workspace, the decoders and libraries.
_CONNECTION_SHARE = 0.5
# As many sockets as select() can watch on Windows.
_SOCKETS_ON_WINDOWS = 512


class Listener(socket.socket):
    """A listening socket that closes new connections beyond a limit.

    Connections count from the moment they are accepted, so those that never finish their TLS
    handshake count as well.
    """

    def __init__(self, host: str, port: int, *, max_connections: int) -> None:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With the protocol given, asyncio sets TCP_NODELAY. Otherwise the end of a response would
        # arrive 40 ms after its beginning.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._max_connections = max_connections
        self._open: weakref.WeakSet[_Accepted] = weakref.WeakSet()
        self._has_failed = False
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind((host, port))
            self.listen(_BACKLOG)
            self.set_inheritable(False)
        except OSError as error:
            self.close()
            raise OSError(
                error.errno, f"cannot listen on {host} port {port}: {error.strerror}"
            ) from error

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection; beyond the limit, close it and report that there is none."""
        try:
            plain, address = super().accept()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            # asyncio pauses for a second after a failure, but before that it tries as often as its
            # backlog is long and logs each failure: report only the first.
            self._has_failed = not self._has_failed
            if self._has_failed:
                raise
            raise BlockingIOError(*error.args) from error
        if len(self._open) >= self._max_connections:
            plain.close()
            raise BlockingIOError("there are too many connections")
        return _Accepted(plain, self._open), address


class _Accepted(socket.socket):
    """A connection that counts until it is closed."""

    def __init__(self, plain: socket.socket, among: weakref.WeakSet[_Accepted]) -> None:
        super().__init__(plain.family, plain.type, plain.proto, plain.detach())
        self._among = among
        among.add(self)

    def close(self) -> None:
        self._among.discard(self)
        super().close()


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's loop with a short handshake timeout; it accepts by :meth:`Listener.accept`."""

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        """Serve, with a timeout for TLS handshakes."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", _HANDSHAKE_SECONDS)
        return await super().create_server(*arguments, **options)


def connection_limit() -> int:
    """Raise the limit on open files, and return how many connections fit into it."""
    return max(1, min(_MAX_CONNECTIONS, int(_raise_file_limit() * _CONNECTION_SHARE)))


if sys.platform == "win32":

    def _raise_file_limit() -> int:
        """Return how many sockets can be watched."""
        return _SOCKETS_ON_WINDOWS

else:
    import resource

    def _raise_file_limit() -> int:
        """Raise the limit on open files where it is low, and return it."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
        if soft == resource.RLIM_INFINITY or soft >= most:
            return _WANTED_FILES if soft == resource.RLIM_INFINITY else soft
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):
            # Some systems allow less than they report.
            return soft
        return most


class Connection(H11Protocol):
    """Uvicorn's protocol with timeouts for request headers and for stalled responses.

    How long a connection may be idle between two requests is uvicorn's ``timeout_keep_alive``.
    """

    # From opening a connection to the end of its first request's headers, and from the first byte
    # of a later request to the end of its headers.
    header_seconds = 15.0
    # How long a client may read nothing of a response.
    send_seconds = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeouts."""
        super().connection_made(transport)
        # Since when headers are awaited; None while none are.
        self.waiting_since: float | None = self.loop.time()
        self.header_timer = self.loop.call_later(self.header_seconds, self.check_timeout)
        self.send_timeout = SendTimeout(self.loop, transport, self.send_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeouts."""
        self.header_timer.cancel()
        self.send_timeout.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Note that the client reads."""
        self.send_timeout.reset()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Note whether the data are part of request headers."""
        before = self.cycle
        super().data_received(data)
        if self.is_responding or self.cycle is not before:
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = self.loop.time()

    @property
    def is_responding(self) -> bool:
        """Whether there is a request without a complete response."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def check_timeout(self) -> None:
        """Close the connection if its headers are late, else check again later."""
        waited = 0.0
        if self.waiting_since is not None and not self.is_responding:
            waited = self.loop.time() - self.waiting_since
        if waited < self.header_seconds:
            remaining = self.header_seconds - waited
            self.header_timer = self.loop.call_later(remaining, self.check_timeout)
            return
        self.transport.close()
        # Closing waits until everything is sent, which the client may never read.
        self.header_timer = self.loop.call_later(self.header_seconds, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Respond with a problem to data that are not valid HTTP."""
        # A response that was started cannot be replaced.
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in self._bad_request(msg):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _bad_request(self, msg: str) -> tuple[h11.Event, ...]:
        refused = problem(HTTPStatus.BAD_REQUEST, msg, {"Connection": "close"})
        headers = [*self.server_state.default_headers, *refused.raw_headers, *SECURITY_HEADERS]
        start = h11.Response(
            status_code=refused.status_code,
            headers=headers,
            reason=HTTPStatus.BAD_REQUEST.phrase.encode(),
        )
        return start, h11.Data(data=bytes(refused.body)), h11.EndOfMessage()


class SendTimeout:
    """Aborts a connection whose client reads nothing of a response for so many seconds.

    Without it, sending and closing wait for the client forever, and the response stays in memory.
    In practice the client may take up to twice as long.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, seconds: float
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._seconds = seconds
        # Unsent bytes at the last check; None if the client read some since.
        self._unsent: int | None = None
        self._timer = loop.call_later(seconds, self._check)

    def reset(self) -> None:
        """Note that the client read something."""
        self._unsent = None

    def cancel(self) -> None:
        """Stop checking."""
        self._timer.cancel()

    def _check(self) -> None:
        unsent = self._transport.get_write_buffer_size()
        if unsent and unsent == self._unsent:
            self._transport.abort()
            return
        self._unsent = unsent
        self._timer = self._loop.call_later(self._seconds, self._check)
