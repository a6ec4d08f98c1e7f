"""Clients that teach: every example is sent until it is acknowledged."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tests.harness.http_client import LOST, Body, Caller, embedding_body, picture_body
from tests.harness.pictures import different
from tests.harness.process import ServiceProcess

# Statuses after which a request is retried: rate limit, not ready, disk full.
RETRIED = (429, 503, 507)
# Short compared with a start of the service, long compared with one attempt.
_PAUSE_SECONDS = 0.02
# Every so many examples are sent again after they were acknowledged.
_AGAIN_EVERY = 16


def row_digest(embedding: npt.NDArray[np.float32]) -> str:
    """Digest of a vector."""
    return hashlib.sha256(np.ascontiguousarray(embedding, dtype="<f4").tobytes()).hexdigest()


@dataclass(frozen=True)
class Acknowledged:
    """An example that the service acknowledged."""

    example: int
    label: str
    # SHA-256 of the vector or of the picture that was sent.
    content: str


@dataclass
class TeachingClient(threading.Thread):
    """One client in its own thread.

    Attributes
    ----------
    acknowledged : list of Acknowledged
        In the order of the responses.
    failures : list of str
        Responses that must not happen.
    """

    number: int
    port: int
    token: str
    n_features: int
    n_classes: int = 10
    pictures: tuple[bytes, ...] = ()
    # Share of the examples that are pictures.
    picture_share: float = 0.0
    acknowledged: list[Acknowledged] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(name=f"client {self.number}", daemon=True)
        self._ending = threading.Event()
        self._rng = np.random.default_rng([11, self.number])
        centres = np.random.default_rng(5).normal(size=(self.n_classes, self.n_features))
        self._centres = centres.astype(np.float32)

    # Threads are hashed by identity, not by their fields.
    __hash__ = threading.Thread.__hash__

    def end(self) -> None:
        """Stop after the current example."""
        self._ending.set()

    def run(self) -> None:
        with closing(Caller(self.port, self.token)) as caller:
            self._teach(caller)

    def _teach(self, caller: Caller) -> None:
        number = 0
        while not self._ending.is_set():
            key = f"client-{self.number}-example-{number}"
            example, body = self._make_example(number)
            number_of_example = self._send(caller, body, key)
            if number_of_example is None:
                return
            self.acknowledged.append(replace(example, example=number_of_example))
            if number % _AGAIN_EVERY == 0 and self._send(caller, body, key) != number_of_example:
                self.failures.append(f"{key}: sent again, another example came back")
            number += 1

    def _make_example(self, number: int) -> tuple[Acknowledged, Body]:
        known = int(self._rng.integers(self.n_classes))
        label = f"class {known}"
        if self.pictures and self._rng.random() < self.picture_share:
            # One number for each example of each client: no picture comes twice.
            drawn = self.pictures[known % len(self.pictures)]
            picture = different(drawn, number * 1000 + self.number)
            content = hashlib.sha256(picture).hexdigest()
            return Acknowledged(0, label, content), picture_body(picture, label)
        noise = self._rng.normal(size=self.n_features).astype(np.float32)
        row = self._centres[known] + noise
        return Acknowledged(0, label, row_digest(row)), embedding_body(row, label)

    def _send(self, caller: Caller, body: Body, key: str) -> int | None:
        while True:
            try:
                reply = caller.teach(body, key)
            except LOST:
                time.sleep(_PAUSE_SECONDS)
                continue
            if reply.status in (200, 201):
                return int(reply.json()["example"]["id"])
            if reply.status not in RETRIED:
                self.failures.append(f"{key}: {reply.status} {reply.content[:300]!r}")
                return None
            time.sleep(_PAUSE_SECONDS)


def finish(clients: Sequence[TeachingClient], service: ServiceProcess) -> None:
    """Start a service, let each client get its last example acknowledged, and stop it."""
    service.start()
    for client in clients:
        client.end()
    for client in clients:
        client.join()
    service.stop()
