"""Thousands of hostile connections to a service, and the clients that must not notice them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Literal, Self

import psutil

from tests.harness.http_client import (
    LOST,
    MULTIPART,
    Body,
    embedding_body,
    picture_body,
    pictures_body,
    raw_reply,
    raw_request,
)
from tests.harness.pictures import different, photograph
from tests.harness.workspaces import vectors

HOST = "127.0.0.1"
# Just under the longest request that is accepted.
_LARGE_BYTES = 19_999_000
_WRONG_TOKEN = "eg_read_" + "x" * 43
# A client whose connection was closed comes back after about this long.
_RETRY_SECONDS = 5.0
# A flood comes back sooner, and has so many requests on the way at a time.
_FLOOD_RETRY_SECONDS = 1.0
_FLOOD_DEPTH = 100
# Just before the service closes an idle connection.
_ALMOST_IDLE_SECONDS = 29.0

Source = Literal["one address", "many addresses"]


@dataclass(frozen=True)
class Attack:
    """Numbers of hostile connections by what they do.

    ``slow_bodies``, ``stalled_bodies`` and ``predictions`` have a valid token that may read.
    """

    slow_heads: int = 560
    idle: int = 500
    health_loops: int = 400
    # Many health checks on the way at a time, without a pause.
    health_floods: int = 60
    slow_bodies: int = 200
    # Everything but the last bytes of a large request.
    stalled_bodies: int = 60
    refused_tokens: int = 160
    # 32 pictures in each request, one after the other.
    predictions: int = 60

    @property
    def n_connections(self) -> int:
        """Number of all connections."""
        return sum(vars(self).values())

    def scaled(self, share: float) -> Attack:
        """Return a smaller attack of the same kinds."""
        return Attack(**{name: max(1, round(share * n)) for name, n in vars(self).items()})


@dataclass
class Attacked:
    """What the hostile clients saw."""

    # Connections that were opened, by kind.
    opened: Counter[str] = field(default_factory=Counter)
    # Responses by kind and status.
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)


class HostileClients:
    """An attack in a process of its own; a context manager that begins and ends it."""

    def __init__(self, port: int, token: str, attack: Attack, source: Source) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_attack, args=(port, token, attack, source, there))
        self.found = Attacked()

    def __enter__(self) -> Self:
        self._process.start()
        # Every client has tried to connect.
        assert self._here.recv() == "begun"
        return self

    def __exit__(self, *_: object) -> None:
        self._here.send("end")
        self.found = self._here.recv()
        self._process.join()


def _attack(port: int, token: str, attack: Attack, source: Source, back: Connection) -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_Attackers(port, token, source).run(attack, back))


class _Attackers:
    def __init__(self, port: int, token: str, source: Source) -> None:
        self._port = port
        self._source = source
        self._found = Attacked()
        self._n_begun = 0
        self._random = random.Random(0)
        large: Body = (MULTIPART, bytes(_LARGE_BYTES))
        self._large = raw_request("/v1/predictions", token, large)
        drawn = [photograph(seed) for seed in range(4)]
        many = [different(drawn[n % 4], n) for n in range(32)]
        self._predictions = raw_request("/v1/predictions", token, pictures_body(many))
        self._wrong = raw_request("/v1/predictions", _WRONG_TOKEN, ("application/json", b"{}"))

    async def run(self, attack: Attack, back: Connection) -> None:
        """Attack until told to end."""
        behaviours: dict[str, Callable[[socket.socket, str], object]] = {
            "slow_heads": self._slow_head,
            "idle": self._idle,
            "health_loops": self._health_loop,
            "health_floods": self._health_flood,
            "slow_bodies": self._slow_body,
            "stalled_bodies": self._stalled_body,
            "refused_tokens": self._refused_token,
            "predictions": self._predict,
        }
        kinds = [kind for kind, n in vars(attack).items() for _ in range(n)]
        self._random.shuffle(kinds)
        tasks = [
            asyncio.create_task(self._client(kind, behaviours[kind], number))
            for number, kind in enumerate(kinds)
        ]
        while self._n_begun < len(tasks):
            await asyncio.sleep(0.05)
        back.send("begun")
        while not back.poll():
            await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        back.send(self._found)

    async def _client(self, kind: str, behave: Callable[..., object], number: int) -> None:
        loop = asyncio.get_running_loop()
        address = HOST
        if self._source == "many addresses":
            address = f"127.1.{number // 200}.{1 + number % 200}"
        # Not all of them in the same moment.
        await asyncio.sleep(self._random.uniform(0, 2))
        for attempt in itertools.count():
            with socket.socket() as connection:
                connection.setblocking(False)
                connection.bind((address, 0))
                is_open = False
                try:
                    await loop.sock_connect(connection, (HOST, self._port))
                    is_open = True
                    self._found.opened[kind] += 1
                    self._n_begun += attempt == 0
                    await behave(connection, kind)  # type: ignore[misc]
                except OSError:
                    self._n_begun += attempt == 0 and not is_open
            pause = _FLOOD_RETRY_SECONDS if kind == "health_floods" else _RETRY_SECONDS
            await asyncio.sleep(pause * self._random.uniform(0.5, 1.5))

    async def _ask(self, connection: socket.socket, kind: str, request: bytes) -> bool:
        """Send a request and count its status; return whether the connection is still open."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, request)
        found = await loop.sock_recv(connection, 1 << 16)
        if found.startswith(b"HTTP/1.1 "):
            self._found.statuses[kind, int(found[9:12])] += 1
        return bool(found) and b"connection: close" not in found.lower()

    async def _slow_head(self, connection: socket.socket, kind: str) -> None:
        loop = asyncio.get_running_loop()
        for byte in b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 1000:
            await loop.sock_sendall(connection, bytes([byte]))
            await self._wait(connection, 1.0)

    async def _idle(self, connection: socket.socket, kind: str) -> None:
        await self._ask(connection, kind, _HEALTH)
        await self._wait(connection, 3600)

    async def _health_loop(self, connection: socket.socket, kind: str) -> None:
        while await self._ask(connection, kind, _HEALTH):
            await self._wait(connection, _ALMOST_IDLE_SECONDS)

    async def _health_flood(self, connection: socket.socket, kind: str) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, _HEALTH * _FLOOD_DEPTH)
        while found := await loop.sock_recv(connection, 1 << 16):
            n_answered = found.count(b"HTTP/1.1 200 ")
            self._found.statuses[kind, 200] += n_answered
            if b"connection: close" in found.lower():
                return
            await loop.sock_sendall(connection, _HEALTH * n_answered)

    async def _slow_body(self, connection: socket.socket, kind: str) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, self._large[:1000])
        while True:
            await self._wait(connection, 1.0)
            await loop.sock_sendall(connection, b"x")

    async def _stalled_body(self, connection: socket.socket, kind: str) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, memoryview(self._large)[:-1000])
        await self._wait(connection, 3600)

    async def _refused_token(self, connection: socket.socket, kind: str) -> None:
        while await self._ask(connection, kind, self._wrong):
            pass

    async def _predict(self, connection: socket.socket, kind: str) -> None:
        while await self._ask(connection, kind, self._predictions):
            pass

    async def _wait(self, connection: socket.socket, seconds: float) -> None:
        """Wait; raise an ``OSError`` if the service closes the connection meanwhile."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            found = await asyncio.wait_for(loop.sock_recv(connection, 1 << 16), seconds)
            if not found:
                raise ConnectionResetError("the service closed the connection")


_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@dataclass
class Bystanders:
    """What a client that teaches and a health check saw for some seconds."""

    seconds: float
    taught: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    # Seconds that each health check took.
    health: list[float] = field(default_factory=list)

    def per_second(self, kind: str) -> float:
        """Examples that were taught per second."""
        return self.taught[kind] / self.seconds


_numbers = itertools.count(1_000_000)


def _examples(token: str, kind: str, n_features: int) -> Iterator[bytes]:
    drawn = [photograph(seed) for seed in range(10, 14)]
    X, labels = vectors(200, n_features, 10, seed=next(_numbers))
    for number in _numbers:
        label = labels[number % 10]
        if kind == "pictures":
            body = picture_body(different(drawn[number % 4], number), label)
        else:
            row = X[number % 200].copy()
            row[0] = number / 1e6
            body = embedding_body(row, label)
        yield raw_request("/v1/examples", token, body)


def teach_and_check(
    port: int,
    token: str,
    n_features: int,
    seconds: float,
    *,
    kinds: Sequence[str] = ("pictures", "vectors"),
    pause: float = 0.2,
) -> Bystanders:
    """Teach pictures, then vectors, each for some seconds, while health is checked."""
    found = Bystanders(seconds)
    ended = threading.Event()
    checks = threading.Thread(target=_check_health, args=(port, found, ended, pause))
    checks.start()
    try:
        for kind in kinds:
            found.taught[kind] = _teach(port, _examples(token, kind, n_features), found)
    finally:
        ended.set()
        checks.join()
    return found


def _teach(port: int, requests: Iterator[bytes], found: Bystanders) -> int:
    n_taught = 0
    until = time.perf_counter() + found.seconds
    connection: socket.socket | None = None
    for request in requests:
        if time.perf_counter() > until:
            break
        try:
            if connection is None:
                connection = socket.create_connection((HOST, port), timeout=60)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            status = raw_reply(connection, request)
        except LOST as error:
            found.errors.append(f"teaching: {error!r}")
            connection = None
            continue
        if status == 201:
            n_taught += 1
        else:
            found.errors.append(f"teaching: status {status}")
    if connection is not None:
        connection.close()
    return n_taught


def _check_health(port: int, found: Bystanders, ended: threading.Event, pause: float) -> None:
    """Check health over a new connection each time, as load balancers do."""
    while not ended.wait(pause):
        begun = time.perf_counter()
        try:
            with socket.create_connection((HOST, port), timeout=30) as connection:
                status = raw_reply(connection, _HEALTH)
            if status != 200:
                found.errors.append(f"health: status {status}")
        except LOST as error:
            found.errors.append(f"health: {error!r}")
        found.health.append(time.perf_counter() - begun)


def n_open_files(pid: int) -> int:
    """Number of files and sockets that a process has open."""
    return int(psutil.Process(pid).num_fds())
