"""Which connections are closed for others, and what a crowded service does with new ones."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from evergrow.service.http.connection_pool import ConnectionPool, Peer
from evergrow.service.http.connections import Triage
from evergrow.service.http.fairness import Actor
from evergrow.service.http.responses import json_response
from evergrow.service.wire import Health

READER = Actor("reader", frozenset({"read"}))
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


def test_many_users_behind_one_address_keep_their_connections() -> None:
    pool = Pool(100)
    for port in range(80):
        pool.connect(port)
        pool.serve(port, Actor(f"user {port % 8}", frozenset({"read"})))
    assert not pool.closed
    assert len(pool) == 80


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


@pytest.mark.parametrize("sent", [b"", b"GET /hea", b"\x16\x03\x01", b"\xff" * 9999])
def test_any_first_bytes_are_handled(sent: bytes) -> None:
    crowded = triage()
    for n in range(60):
        check(crowded, sent or b"x", f"192.0.2.{n}")
