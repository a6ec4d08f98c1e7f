"""Connections: their place in the pool, and timeouts for handshakes, headers and responses."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from evergrow.service.http.connection_pool import ConnectionPool, PooledConnection
from evergrow.service.http.fairness import Actor, Pacer, address_group
from evergrow.service.http.middleware import SECURITY_HEADERS
from evergrow.service.http.responses import problem

# Connections that wait to be accepted. A full queue drops new ones, and their clients try again
# only after a second or more.
BACKLOG = 4096
# Accepted before anything else is done: a new connection must be able to send its request before
# so many others arrive that its place is needed again.
_ACCEPTED_AT_ONCE = 16
_HANDSHAKE_SECONDS = 15.0
# How long a connection without any data waits in the system.
_DEFER_SECONDS = 5
# While there are too many connections: new ones without a valid token, per second and address, and
# for all addresses together.
_CROWDED_PER_SECOND, _CROWDED_BURST = 20.0, 50
_ALL_CROWDED_PER_SECOND, _ALL_CROWDED_BURST = 50.0, 100
_FIRST_BYTES = 16_384
_HEALTH_CHECK = re.compile(rb"GET (/[a-z]{1,10}) HTTP/1\.[01]\r\n")
_TOKEN = re.compile(rb"\r\nauthorization: *bearer +([!-~]{1,512}) *\r\n", re.IGNORECASE)
# The head and the body of most responses.
_JOINED_BYTES = 16_384
# Wanted limit on open files: enough for all connections and everything else.
_WANTED_FILES = 65_536
# The other half is for the workspace, the decoders and libraries.
_CONNECTION_SHARE = 0.5
# As many sockets as select() can watch on Windows.
_SOCKETS_ON_WINDOWS = 512


class Triage:
    """Looks at the first bytes of a new connection for which another one has to be closed.

    A health check is answered at once, which takes less than a tenth of the time of an ordinary
    request. A connection with a valid token gets a place. Of the others only so many per second
    get one, so that clients that come back as soon as they are closed cannot use up the processor.
    Behind TLS nothing can be seen, so all connections are limited like this.

    Parameters
    ----------
    health : callable
        Returns the response to a path, None if it is not a health check.
    is_valid : callable
        Whether a token is valid.
    """

    def __init__(
        self, health: Callable[[str], Response | None], is_valid: Callable[[str], bool]
    ) -> None:
        self._health = health
        self._is_valid = is_valid
        self._of_address = Pacer(_CROWDED_PER_SECOND, _CROWDED_BURST, 0.0)
        self._of_all = Pacer(_ALL_CROWDED_PER_SECOND, _ALL_CROWDED_BURST, 0.0)
        self._refusal = _render(unavailable_response())

    def admit(self, plain: socket.socket, address: str) -> bool:
        """Return whether a connection may have a place; otherwise respond and close it."""
        plain.setblocking(False)
        try:
            head = plain.recv(_FIRST_BYTES, socket.MSG_PEEK)
        except OSError:
            head = b""
        response = self._health_of(head)
        if response is None:
            token = _TOKEN.search(head)
            if token is not None and self._is_valid(token[1].decode()):
                return True
            if self._of_address.delay(address) == 0 and self._of_all.delay("") == 0:
                return True
        with contextlib.suppress(OSError):
            # Closing a connection with unread data would lose the response.
            plain.recv(_FIRST_BYTES)
            plain.send(self._refusal if response is None else response)
        plain.close()
        return False

    def _health_of(self, head: bytes) -> bytes | None:
        found = _HEALTH_CHECK.match(head)
        if found is None or not head.endswith(b"\r\n\r\n"):
            return None
        response = self._health(found[1].decode())
        return None if response is None else _render(response)


def unavailable_response() -> Response:
    """Return the response to a connection without a place."""
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; retry later")


def _render(response: Response) -> bytes:
    """Return a complete response, after which the connection is closed."""
    known = HTTPStatus(response.status_code)
    headers = [*response.raw_headers, *SECURITY_HEADERS, (b"connection", b"close")]
    lines = [b"HTTP/1.1 %d %s" % (known, known.phrase.encode())]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join([*lines, b"", bytes(response.body)])


class Listener(socket.socket):
    """A listening socket whose connections get a place in a pool.

    Connections count from the moment they are accepted, so those that never finish their TLS
    handshake count as well. Without a ``triage`` all connections get a place while there is one.
    """

    def __init__(
        self, host: str, port: int, pool: ConnectionPool, triage: Triage | None = None
    ) -> None:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With the protocol given, asyncio sets TCP_NODELAY. Otherwise the end of a response would
        # arrive 40 ms after its beginning.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._pool = pool
        self.triage = triage
        self._n_accepted = 0
        self._has_failed = False
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_DEFER_ACCEPT"):
                # Connections without any data wait in the system, not here.
                self.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _DEFER_SECONDS)
            self.bind((host, port))
            self.listen(BACKLOG)
            self.set_inheritable(False)
        except OSError as error:
            self.close()
            text = f"cannot listen at {host} port {port} ({error.strerror})"
            other = "choose another port (--port), such as 0 for a free one"
            if error.errno == errno.EADDRINUSE:
                text += f": if a service of this workspace already runs, use it; otherwise {other}"
            elif error.errno == errno.EACCES:
                text += f": {other}"
            raise OSError(text) from error

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection; without a place for it, close it and report that."""
        while True:
            # asyncio calls this until it raises an error, and then goes on with other work.
            self._n_accepted += 1
            if self._n_accepted > _ACCEPTED_AT_ONCE:
                self._n_accepted = 0
                raise BlockingIOError("the next connections are accepted later")
            plain, address = self._accept_plain()
            triage = self.triage
            if (
                triage is None
                or not self._pool.is_crowded(address)
                or triage.admit(plain, address_group(address[0]))
            ):
                break
        accepted = _Accepted(plain, self._pool)
        accepted.place = self._pool.admit(address, accepted.end)
        if accepted.place is None:
            accepted.close()
            raise BlockingIOError("all connections are in use")
        return accepted, address

    def _accept_plain(self) -> tuple[socket.socket, Any]:
        try:
            return super().accept()
        except BlockingIOError:
            self._n_accepted = 0
            raise
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            # asyncio pauses for a second after a failure, but before that it tries as often as its
            # backlog is long and logs each failure: report only the first.
            self._has_failed = not self._has_failed
            if self._has_failed:
                raise
            raise BlockingIOError(*error.args) from error


class _Accepted(socket.socket):
    """A connection that has its place in the pool until it is closed."""

    def __init__(self, plain: socket.socket, pool: ConnectionPool) -> None:
        super().__init__(plain.family, plain.type, plain.proto, plain.detach())
        self._pool = pool
        self.place: PooledConnection | None = None

    def end(self) -> None:
        """End a connection that has no protocol yet; the event loop then closes it."""
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self.place is not None:
            self._pool.discard(self.place)
        super().close()


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's loop with a short handshake timeout; it accepts by :meth:`Listener.accept`."""

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        """Serve, with a timeout for TLS handshakes."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", _HANDSHAKE_SECONDS)
        return await super().create_server(*arguments, **options)


def connection_limit(wanted: int) -> int:
    """Raise the limit on open files, and return how many of the wanted connections fit into it."""
    return max(1, min(wanted, int(_raise_file_limit() * _CONNECTION_SHARE)))


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
    """Uvicorn's protocol with a place in a pool, and timeouts for headers and stalled responses.

    How long a connection may be idle between two requests is uvicorn's ``timeout_keep_alive``. The
    scope of each request has the connection as ``scope["connection"]``.
    """

    # From opening a connection to the end of its first request's headers, and from the first byte
    # of a later request to the end of its headers.
    header_seconds = 15.0
    # How long a client may read nothing of a response.
    send_seconds = 30.0

    def __init__(self, *arguments: Any, pool: ConnectionPool | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._pool = pool
        self._place: PooledConnection | None = None
        self._served_app: Any = self.app
        self.app = self._serve

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        scope["connection"] = self
        await self._served_app(scope, receive, send)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeouts."""
        # Timeouts and the pool use the transport itself.
        self._writes = JoinedWrites(self.loop, transport)
        super().connection_made(self._writes)  # type: ignore[arg-type]
        if self._pool is not None:
            self._place = self._pool.find(transport.get_extra_info("peername"))
            if self._place is None:
                # Its place was given to another connection meanwhile.
                transport.abort()
            else:
                self._place.close = transport.abort
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
        if self._pool is not None and self._place is not None:
            self._pool.progress(self._place)
        super().data_received(data)
        if self.is_responding or self.cycle is not before:
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = self.loop.time()

    def accept_token(self, actor: Actor) -> None:
        """Keep the connection open while it serves a request with a valid token."""
        if self._pool is not None and self._place is not None:
            self._pool.begin(self._place, actor)

    def refuse_token(self) -> None:
        """Let the connection be closed before all those with a valid token."""
        if self._pool is not None and self._place is not None:
            self._pool.refuse(self._place)

    def release(self) -> None:
        """Let the connection be closed for others although its response is not complete."""
        if self._pool is not None and self._place is not None:
            self._pool.end(self._place)

    def on_response_complete(self) -> None:
        """Note that the connection is idle."""
        # First, because it may then be closed for another one.
        self._writes.flush()
        self.release()
        super().on_response_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Serve the request as if it had not asked for another protocol, which is allowed.

        Uvicorn logs two lines for each, so that clients without a token could fill the log.
        """

    def drop(self) -> None:
        """Close the connection at once, without a response."""
        cycle: Any = self.cycle
        if cycle is not None:
            # Known only in the next round of the event loop otherwise: uvicorn would miss a
            # response.
            cycle.disconnected = True
        self.transport.abort()

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


class JoinedWrites:
    """A transport that sends what is written in one round of the event loop at once.

    Uvicorn writes the head and the body of a response one after the other, which would be two
    system calls and two packets. Many bytes are sent at once, so that the transport can tell the
    writer to wait.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._waiting: list[bytes] = []
        self._n_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data at the end of this round of the event loop, or at once if there are many."""
        if not data:
            return
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append(data)
        self._n_bytes += len(data)
        if self._n_bytes > _JOINED_BYTES:
            self.flush()

    def close(self) -> None:
        """Close the connection after everything was sent."""
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        """Send everything now."""
        if self._waiting:
            data, self._waiting, self._n_bytes = b"".join(self._waiting), [], 0
            if not self._transport.is_closing():
                self._transport.write(data)


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
