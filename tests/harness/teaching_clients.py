"""Clients that teach: every example is sent until it is acknowledged."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt

from tests.harness.http_client import LOST, Body, Caller, embedding_body, picture_body
from tests.harness.pictures import different
from tests.harness.process import ServiceProcess

# Statuses after which a request is retried: rate limit, not ready, disk full.
RETRIED = (429, 503, 507)
# Short compared with a start of the service, long compared with one attempt.
_PAUSE_SECONDS = 0.02
# Times in responses are in milliseconds.
_CLOCK_SECONDS = 0.002
# Every so many examples are sent again after they were acknowledged.
_AGAIN_EVERY = 16


def row_digest(embedding: npt.NDArray[np.float32]) -> str:
    """Digest of a vector."""
    return hashlib.sha256(np.ascontiguousarray(embedding, dtype="<f4").tobytes()).hexdigest()


@dataclass(frozen=True)
class Acknowledged:
    """An example that the service acknowledged."""

    key: str
    example: int
    label: str
    # SHA-256 of the vector or of the picture that was sent.
    content: str
    picture: bool


@dataclass
class TeachingClient(threading.Thread):
    """One client in its own thread.

    Attributes
    ----------
    acknowledged : list of Acknowledged
        In the order of the responses.
    n_retried, n_already_taught : int
        Requests that were retried, and retried ones that had been taught already because the
        service died after storing them and before responding.
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
    n_retried: int = 0
    n_already_taught: int = 0
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
            example, body = self._make_example(key, number)
            number_of_example = self._send(caller, body, key)
            if number_of_example is None:
                return
            self.acknowledged.append(replace(example, example=number_of_example))
            if number % _AGAIN_EVERY == 0 and self._send(caller, body, key) != number_of_example:
                self.failures.append(f"{key}: sent again, another example came back")
            number += 1

    def _make_example(self, key: str, number: int) -> tuple[Acknowledged, Body]:
        known = int(self._rng.integers(self.n_classes))
        label = f"class {known}"
        if self.pictures and self._rng.random() < self.picture_share:
            # One number for each example of each client: no picture comes twice.
            drawn = self.pictures[known % len(self.pictures)]
            picture = different(drawn, number * 1000 + self.number)
            content = hashlib.sha256(picture).hexdigest()
            return Acknowledged(key, 0, label, content, picture=True), picture_body(picture, label)
        noise = self._rng.normal(size=self.n_features).astype(np.float32)
        row = self._centres[known] + noise
        example = Acknowledged(key, 0, label, row_digest(row), picture=False)
        return example, embedding_body(row, label)

    def _send(self, caller: Caller, body: Body, key: str) -> int | None:
        tried = False
        while True:
            sent = time.time()
            try:
                reply = caller.teach(body, key)
            except LOST:
                self.n_retried += 1
                tried = True
                time.sleep(_PAUSE_SECONDS)
                continue
            if reply.status in (200, 201):
                example = reply.json()["example"]
                taught = datetime.fromisoformat(example["at"]).timestamp()
                self.n_already_taught += tried and taught < sent - _CLOCK_SECONDS
                return int(example["id"])
            if reply.status not in RETRIED:
                self.failures.append(f"{key}: {reply.status} {reply.content[:300]!r}")
                return None
            self.n_retried += 1
            time.sleep(_PAUSE_SECONDS)


def finish(clients: Sequence[TeachingClient], service: ServiceProcess) -> None:
    """Start a service, let each client get its last example acknowledged, and stop it."""
    service.start()
    for client in clients:
        client.end()
    for client in clients:
        client.join()
    service.stop()
