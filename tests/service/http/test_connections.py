"""Timeouts of connections, which are closed for others, and data that are not HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra 'service' is not installed")

import uvicorn
from uvicorn.server import ServerState

from evergrow.service.http.connection_pool import ConnectionPool, Peer
from evergrow.service.http.connections import Connection, Listener, Triage, connection_limit
from evergrow.service.http.fairness import Actor
from evergrow.service.http.middleware import CONTENT_SECURITY_POLICY
from evergrow.service.http.responses import json_response
from evergrow.service.http.server import Server
from evergrow.service.http.service import Service
from evergrow.service.wire import Health

HEAD_SECONDS = Connection.header_seconds
KEEP_ALIVE_SECONDS = 30
READER = Actor("reader", frozenset({"read"}))
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


class Timer:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.is_cancelled = at, call, False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """A loop with a clock that is set by hand; its tasks end at once or wait forever."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []
        self.waiting: list[Coroutine[Any, Any, None]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.now + delay, call))
        return self.timers[-1]

    def create_task(self, task: Coroutine[Any, Any, None]) -> Loop:
        try:
            task.send(None)
            self.waiting.append(task)
        except StopIteration:
            pass
        return self

    def add_done_callback(self, _: Any) -> None:
        """A task's."""

    def call_soon(self, call: Any) -> None:
        self.call_later(0.0, call)

    def go_on(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [one for one in self.timers if one.at <= end and not one.is_cancelled]:
            first = min(due, key=lambda one: one.at)
            self.timers.remove(first)
            self.now = first.at
            first.call()
        self.now = end


class Transport:
    def __init__(self) -> None:
        self.written, self.ended, self.n_writes = b"", "", 0
        # What the other side has not taken yet.
        self.n_left = 0

    def get_extra_info(self, _: str) -> None:
        return None

    def write(self, data: bytes) -> None:
        self.written += data
        self.n_writes += 1

    def close(self) -> None:
        self.ended = self.ended or "closed"

    def abort(self) -> None:
        self.ended = "aborted"

    def is_closing(self) -> bool:
        return bool(self.ended)

    def get_write_buffer_size(self) -> int:
        return self.n_left

    def pause_reading(self) -> None:
        """Nothing is read by itself."""

    resume_reading = pause_reading


class Never:
    """Something to wait for that does not come."""

    def __await__(self) -> Iterator[None]:
        yield


BODY = b"body"
LARGE = 100_000


async def answer(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":
        await Never()
    body = bytes(LARGE) if scope["path"] == "/large" else BODY
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["path"] == "/halfway":
        await Never()
    await send({"type": "http.response.body", "body": body})


class Connected:
    """A connection in its first moment."""

    def __init__(self) -> None:
        self.loop, self.transport = Loop(), Transport()
        config = uvicorn.Config(
            answer,
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        kind: Any = Connection
        self.protocol = kind(config, ServerState(), {}, _loop=self.loop)
        self.protocol.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        self.protocol.data_received(data)


def test_a_response_that_is_not_complete_is_sent_in_the_next_round(connected: Connected) -> None:
    connected.send(b"GET /halfway HTTP/1.1\r\nHost: x\r\n\r\n")
    assert not connected.transport.written
    connected.loop.go_on(0.001)
    assert connected.transport.written.endswith(b"\r\n\r\n")


def test_large_bodies_are_sent_at_once_and_nothing_after_the_end(connected: Connected) -> None:
    connected.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    assert len(connected.transport.written) > LARGE
    writes: Any = connected.protocol.transport
    writes.write(b"more")
    connected.transport.abort()
    connected.loop.go_on(1)
    assert not connected.transport.written.endswith(b"more")


@pytest.fixture
def connected() -> Iterator[Connected]:
    found = Connected()
    yield found
    for task in found.loop.waiting:
        task.close()


def test_a_busy_connection_stays_open(connected: Connected) -> None:
    for number in range(200):
        connected.send(REQUEST)
        assert connected.transport.written.count(b" 200 ") == number + 1
        connected.loop.go_on(0.5)
    assert not connected.transport.ended


def test_an_idle_connection_is_closed(connected: Connected) -> None:
    connected.send(REQUEST)
    connected.loop.go_on(KEEP_ALIVE_SECONDS)
    assert connected.transport.ended == "closed"


@pytest.mark.parametrize("n_before", [0, 1])
def test_headers_that_arrive_byte_by_byte_time_out(connected: Connected, n_before: int) -> None:
    for _ in range(n_before):
        connected.send(REQUEST)
        connected.loop.go_on(10)
    for byte in REQUEST[: int(HEAD_SECONDS)]:
        assert not connected.transport.ended
        connected.send(bytes([byte]))
        connected.loop.go_on(1)
    assert connected.transport.ended == "closed"


def test_a_closing_connection_whose_client_does_not_read_is_aborted(connected: Connected) -> None:
    connected.loop.go_on(2 * HEAD_SECONDS)
    assert connected.transport.ended == "aborted"


def test_timers_of_a_closed_connection_are_cancelled(connected: Connected) -> None:
    connected.protocol.connection_lost(None)
    assert all(timer.is_cancelled for timer in connected.loop.timers)


def test_invalid_http_gets_a_problem_with_security_headers(connected: Connected) -> None:
    connected.send(b"\x16\x03\x01 hello\r\n\r\n")
    head, _, body = connected.transport.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"\r\ncontent-type: application/problem+json\r\n" in head.lower() + b"\r\n"
    assert CONTENT_SECURITY_POLICY.encode() in head
    assert json.loads(body)["status"] == 400
    assert connected.transport.ended == "closed"


def test_an_upgrade_is_ignored_without_a_warning(
    connected: Connected, caplog: pytest.LogCaptureFixture
) -> None:
    connected.send(REQUEST.replace(b"Host", b"Connection: Upgrade\r\nUpgrade: websocket\r\nHost"))
    assert b" 200 " in connected.transport.written
    assert not caplog.records


def test_an_invalid_body_after_the_response_began_closes_the_connection(
    connected: Connected,
) -> None:
    head = REQUEST.replace(b"GET", b"POST").replace(b"Host", b"Transfer-Encoding: chunked\r\nHost")
    connected.send(head)
    answered = connected.transport.written
    assert b" 200 " in answered
    connected.send(b"no length\r\n")
    assert connected.transport.written == answered
    assert connected.transport.ended == "closed"


@pytest.fixture
def listening() -> Iterator[Listener]:
    with Listener("127.0.0.1", 0, ConnectionPool(2, per_address=2)) as found:
        found.settimeout(30)
        yield found


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(listening: Listener) -> None:
    host, port = listening.getsockname()
    with pytest.raises(
        OSError, match=rf"cannot listen at {host} port {port} .*already runs.*--port"
    ):
        Listener(host, port, listening._pool, listening.triage)


def connect(listening: Listener) -> socket.socket:
    """A client that has sent something: others may wait in the system."""
    client = socket.create_connection(listening.getsockname(), timeout=30)
    client.sendall(b"x")
    return client


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_new_connection_takes_the_place_of_the_oldest_one(listening: Listener) -> None:
    clients = [connect(listening) for _ in range(3)]
    served = [listening.accept()[0] for _ in range(3)]
    assert is_closed(clients[0])
    for one in served[1:]:
        one.sendall(b"x")
    assert [one.recv(1) for one in clients[1:]] == [b"x", b"x"]
    for one in (*clients, *served):
        one.close()


def test_connections_that_serve_requests_keep_their_places(listening: Listener) -> None:
    clients = [connect(listening) for _ in range(4)]
    served = []
    for _ in range(2):
        connection, peer = listening.accept()
        place = listening._pool.find(peer)
        assert place is not None
        listening._pool.begin(place, READER)
        served.append(connection)
    with pytest.raises(BlockingIOError):
        listening.accept()
    assert is_closed(clients[2])
    served[0].close()
    connection, _ = listening.accept()
    connection.sendall(b"x")
    assert clients[3].recv(1) == b"x"
    for one in (*clients, *served, connection):
        one.close()


def test_other_work_is_done_between_many_new_connections() -> None:
    with Listener("127.0.0.1", 0, ConnectionPool(1000)) as listening:
        listening.settimeout(30)
        clients = [connect(listening) for _ in range(40)]
        served: list[socket.socket] = []
        n_rounds = 0
        while len(served) < len(clients):
            n_rounds += 1
            with contextlib.suppress(BlockingIOError):
                while len(served) < len(clients):
                    served.append(listening.accept()[0])
        assert n_rounds == 3
        for one in (*clients, *served):
            one.close()


def test_a_lack_of_file_descriptors_is_logged_once(
    listening: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: socket.socket) -> Any:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(socket.socket, "accept", fail)
    for _ in range(2):
        with pytest.raises(OSError, match="too many open files") as raised:
            listening.accept()
        assert not isinstance(raised.value, BlockingIOError)
        with pytest.raises(BlockingIOError):
            listening.accept()


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
@pytest.mark.parametrize(("soft", "hard", "most"), [(256, 4096, 1000), (256, 256, 128)])
def test_connections_leave_file_descriptors_for_the_rest(
    soft: int, hard: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert connection_limit(1000) == most
    assert asked == ([(hard, hard)] if hard > soft else [])


@pytest.mark.parametrize(("tls", "limited"), [(ssl.create_default_context(), True), (None, False)])
def test_a_handshake_has_a_timeout(
    tls: ssl.SSLContext | None, limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {}

    async def create(_: Any, *__: Any, **options: Any) -> None:
        given.update(options)

    async def serve(_: Any, sockets: Any) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_server(asyncio.Protocol, sock=sockets[0], ssl=tls)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "create_server", create)
    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    server = Server(uvicorn.Config(answer, log_config=None), Service("nowhere"))
    with socket.socket() as free:
        server.run([free])
    assert (given.get("ssl_handshake_timeout", 60) < 60) is limited


def test_a_client_that_does_not_read_its_response_is_disconnected(connected: Connected) -> None:
    connected.send(REQUEST)
    connected.transport.n_left = 1000
    connected.loop.go_on(2 * Connection.send_seconds)
    assert connected.transport.ended == "aborted"


@pytest.mark.parametrize("takes", ["a part", "all", "as much as comes"])
def test_a_client_that_reads_slowly_gets_its_answer(connected: Connected, takes: str) -> None:
    connected.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
    connected.transport.n_left = 1000
    for _ in range(9):
        connected.loop.go_on(Connection.send_seconds)
        connected.transport.n_left -= {"a part": 1, "all": connected.transport.n_left}.get(takes, 0)
        if takes == "as much as comes":
            connected.protocol.resume_writing()
    assert not connected.transport.ended


TEACHER = Actor("teacher", frozenset({"read", "teach"}))


class Pool(ConnectionPool):
    """A pool that notes which ports were closed."""

    def __init__(self, n: int, **options: int) -> None:
        self.reasons: list[str] = []
        self.closed: list[int] = []
        super().__init__(n, on_closed=lambda _, why: self.reasons.append(why), **options)

    def connect(self, port: int, address: str = "192.0.2.1") -> bool:
        peer: Peer = (address, port)
        return self.admit(peer, lambda: self.closed.append(port)) is not None

    def serve(self, port: int, actor: Actor | None, address: str = "192.0.2.1") -> None:
        place = self.find((address, port))
        assert place is not None
        self.progress(place)
        if actor is not None:
            self.begin(place, actor)
        self.end(place)


def test_the_connection_without_progress_for_the_longest_time_is_closed() -> None:
    pool = Pool(3, per_address=3)
    for port in (1, 2, 3):
        assert pool.connect(port)
    first = pool.find(("192.0.2.1", 1))
    assert first is not None
    pool.progress(first)
    assert pool.connect(4)
    assert pool.closed == [2]
    assert pool.reasons == ["too many connections of this address"]


def test_connections_that_teach_are_closed_last() -> None:
    pool = Pool(4, per_address=4)
    pool.connect(4)
    for port, actor in ((1, TEACHER), (2, READER), (3, None)):
        pool.connect(port)
        pool.serve(port, actor)
    for port in (5, 6, 7, 8):
        pool.connect(port, f"192.0.2.{port}")
        pool.serve(port, Actor(f"user {port}", frozenset({"read"})), f"192.0.2.{port}")
    # Had its response, had none, and then those that read, the oldest first.
    assert pool.closed == [3, 4, 2, 5]


def test_an_address_holds_a_quarter_and_others_find_places() -> None:
    pool = Pool(100)
    for port in range(1000):
        assert pool.connect(port)
    assert len(pool) == 25
    assert pool.connect(1, "192.0.2.2")
    assert len(pool) == 26


def test_the_idle_connections_of_one_token_are_limited() -> None:
    pool = Pool(100, per_address=100)
    for port in range(40):
        pool.connect(port)
        pool.serve(port, READER)
    assert pool.closed == list(range(15))
    assert set(pool.reasons) == {"too many idle connections of this token"}


def test_a_connection_whose_token_is_refused_loses_its_rank() -> None:
    pool = Pool(2, per_address=2)
    for port, actor in ((1, READER), (2, TEACHER)):
        pool.connect(port)
        pool.serve(port, actor)
    second = pool.find(("192.0.2.1", 2))
    assert second is not None
    pool.refuse(second)
    pool.connect(3, "192.0.2.3")
    assert pool.closed == [2]


def test_nothing_is_remembered_of_closed_connections() -> None:
    pool = Pool(10)
    for port in range(100):
        pool.connect(port, f"192.0.2.{port}")
        pool.serve(port, [READER, TEACHER, None][port % 3], f"192.0.2.{port}")
    for port in range(100):
        if (place := pool.find((f"192.0.2.{port}", port))) is not None:
            pool.discard(place)
    assert len(pool) == 0
    assert not pool._by_owner
    assert not any(pool._by_rank.values())


def check(triage: Triage, sent: bytes, address: str = "192.0.2.1") -> tuple[bool, bytes]:
    """Whether a connection that sent this may have a place, and the response."""
    near, far = socket.socketpair()
    with near, far:
        near.sendall(sent)
        admitted = triage.admit(far, address)
        near.settimeout(5)
        return admitted, b"" if admitted else near.recv(1 << 16)


def triage(is_valid: Callable[[str], bool] = lambda token: token == "right") -> Triage:
    def health(path: str) -> object:
        return json_response(Health(status="alive")) if path == "/healthz" else None

    return Triage(health, is_valid)  # type: ignore[arg-type]


def test_a_crowded_service_answers_health_checks_at_once() -> None:
    crowded = triage()
    for _ in range(200):
        admitted, answer = check(crowded, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert not admitted
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b'{"status":"alive"}')


def test_a_crowded_service_admits_valid_tokens_and_few_others() -> None:
    crowded = triage()
    with_token = b"POST /v1/examples HTTP/1.1\r\nAuthorization: Bearer %s\r\n\r\n"
    verdicts = [check(crowded, with_token % b"wrong") for _ in range(100)]
    assert 50 <= sum(admitted for admitted, _ in verdicts) < 60
    assert verdicts[-1][1].startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in verdicts[-1][1].lower()
    for _ in range(100):
        assert check(crowded, with_token % b"right")[0]
