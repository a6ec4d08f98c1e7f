"""Clients that teach and never give up: every lesson is sent until it is acknowledged."""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt

from tests.harness.asking import LOST, Body, Caller, embedding_body, picture_body
from tests.harness.pictures import different

__all__ = ["Acknowledged", "Pupil", "row_digest"]

# Statuses that ask to come again: too fast, not ready, disk full.
LATER = (429, 503, 507)
# Short beside a start of the service, long beside what trying costs.
_PAUSE_SECONDS = 0.02
# Times in answers are in milliseconds.
_CLOCK_SECONDS = 0.002
# Every so many lessons are asked for again after they were acknowledged.
_AGAIN_EVERY = 16


def row_digest(embedding: npt.NDArray[np.float32]) -> str:
    """What tells vectors apart."""
    return hashlib.sha256(np.ascontiguousarray(embedding, dtype="<f4").tobytes()).hexdigest()


@dataclass(frozen=True)
class Acknowledged:
    """A lesson that the service said it has."""

    key: str
    example: int
    label: str
    # SHA-256 of the vector or of the picture that was sent.
    content: str
    picture: bool


@dataclass
class Pupil(threading.Thread):
    """One client in a thread of its own, until told to end after the lesson at hand.

    Attributes
    ----------
    acknowledged : list of Acknowledged
        In the order of the answers.
    n_retried, n_already_taught : int
        Requests that were lost or refused for now; retried ones that turned out to be taught:
        the service died between keeping them and answering.
    failures : list of str
        What must not happen.
    """

    number: int
    port: int
    token: str
    n_features: int
    n_classes: int = 10
    pictures: tuple[bytes, ...] = ()
    # Share of the lessons that are pictures.
    picture_share: float = 0.0
    acknowledged: list[Acknowledged] = field(default_factory=list)
    n_retried: int = 0
    n_already_taught: int = 0
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(name=f"pupil {self.number}", daemon=True)
        self._ending = threading.Event()
        self._rng = np.random.default_rng([11, self.number])
        centres = np.random.default_rng(5).normal(size=(self.n_classes, self.n_features))
        self._centres = centres.astype(np.float32)

    # Threads are told apart by what they are, not by what they learnt.
    __hash__ = threading.Thread.__hash__

    def end(self) -> None:
        """Finish the lesson at hand and no more."""
        self._ending.set()

    def run(self) -> None:
        with closing(Caller(self.port, self.token)) as caller:
            self._teach(caller)

    def _teach(self, caller: Caller) -> None:
        number = 0
        while not self._ending.is_set():
            key = f"pupil-{self.number}-lesson-{number}"
            lesson, body = self._lesson(key, number)
            example = self._sent(caller, body, key)
            if example is None:
                return
            lesson = Acknowledged(key, example, lesson.label, lesson.content, lesson.picture)
            self.acknowledged.append(lesson)
            if number % _AGAIN_EVERY == 0 and self._sent(caller, body, key) != example:
                self.failures.append(f"{key}: asked again, another example came back")
            number += 1

    def _lesson(self, key: str, number: int) -> tuple[Acknowledged, Body]:
        known = int(self._rng.integers(self.n_classes))
        label = f"class {known}"
        if self.pictures and self._rng.random() < self.picture_share:
            # One number for each lesson of each pupil: no picture comes twice.
            drawn = self.pictures[known % len(self.pictures)]
            picture = different(drawn, number * 1000 + self.number)
            content = hashlib.sha256(picture).hexdigest()
            return Acknowledged(key, 0, label, content, picture=True), picture_body(picture, label)
        noise = self._rng.normal(size=self.n_features).astype(np.float32)
        row = self._centres[known] + noise
        lesson = Acknowledged(key, 0, label, row_digest(row), picture=False)
        return lesson, embedding_body(row, label)

    def _sent(self, caller: Caller, body: Body, key: str) -> int | None:
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
            if reply.status not in LATER:
                self.failures.append(f"{key}: {reply.status} {reply.content[:300]!r}")
                return None
            self.n_retried += 1
            time.sleep(_PAUSE_SECONDS)
