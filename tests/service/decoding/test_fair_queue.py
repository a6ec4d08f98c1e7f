"""Queued images: their order, their number, and images of cancelled requests."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from evergrow.service.decoding.decoder import DecoderLimits, DecoderProcess
from evergrow.service.decoding.pool import (
    DecodeJob,
    DecodeRequest,
    DecoderPool,
    FairQueue,
    TooManyImagesError,
)
from evergrow.service.decoding.protocol import DecoderError, PreparedImage, RefusedImageError
from evergrow.service.http.fairness import Actor
from evergrow.service.http.images import BatchEmbedder, for_each
from evergrow.vision import Preprocessing
from tests.harness.malicious_files import png_that_claims
from tests.harness.pictures import picture

PREPROCESSING = Preprocessing(size=8)
READER = Actor("reader", frozenset({"read"}))


def request(owner: str, *names: str) -> DecodeRequest:
    return DecodeRequest(owner, [name.encode() for name in names], thumbnail=False)


def taken(queue: FairQueue, seconds: float = 1.0) -> str:
    """The next image, which takes so long."""
    job = queue.take()
    assert job is not None
    queue.charge(job.request, seconds)
    return job.content.decode()


def test_owners_are_served_fairly_however_many_images_one_has() -> None:
    queue = FairQueue(99)
    queue.put(request("a", "a1", "a2", "a3", "a4"))
    queue.put(request("b", "b1", "b2"))
    assert [taken(queue) for _ in range(6)] == ["a1", "b1", "a2", "b2", "a3", "a4"]


def test_large_images_of_one_owner_count_as_many_small_ones_of_another() -> None:
    queue = FairQueue(99)
    queue.put(request("large", "A", "B"))
    queue.put(request("small", "a", "b", "c", "d", "e"))
    order = []
    for _ in range(7):
        job = queue.take()
        assert job is not None
        queue.charge(job.request, 3.5 if job.request.owner == "large" else 1.0)
        order.append(job.content.decode())
    assert order == ["A", "a", "b", "c", "d", "B", "e"]


def test_an_idle_owner_does_not_save_up_time() -> None:
    queue = FairQueue(99)
    queue.put(request("busy", *"abcdefgh"))
    for _ in range(4):
        taken(queue)
    queue.put(request("new", *"123"))
    assert [taken(queue) for _ in range(5)] == ["1", "e", "2", "f", "3"]


def test_one_owner_may_not_queue_too_many_images_but_others_may() -> None:
    queue = FairQueue(4)
    queue.put(request("a", *"123"))
    with pytest.raises(TooManyImagesError, match="3 images"):
        queue.put(request("a", *"45"))
    queue.put(request("b", *"12345678"))
    assert len(queue) == 11


def test_dropped_images_free_their_place_in_the_queue() -> None:
    queue = FairQueue(4)
    first = request("a", *"123")
    queue.put(first)
    assert taken(queue) == "1"
    assert [job.content for job in queue.drop(first)] == [b"2", b"3"]
    queue.put(request("a", *"4567"))
    assert taken(queue) == "4"
    assert queue.drop(first) == []


def test_an_owner_of_slow_images_leaves_a_decoder_to_others() -> None:
    queue = FairQueue(99, n_decoders=3)
    queue.put(request("slow", *"abcdef"))
    assert taken(queue, seconds=5.0) == "a"
    running = [queue.take() for _ in range(2)]
    # Nobody else is there, and still the third decoder waits.
    waits = threading.Thread(target=lambda: running.append(queue.take()))
    waits.start()
    queue.put(request("quick", "1"))
    waits.join()
    assert [job.content for job in running if job] == [b"b", b"c", b"1"]
    queue.charge(running[0].request, 5.0)  # type: ignore[union-attr]
    assert taken(queue) == "d"


class Held(DecoderProcess):
    """Decodes when an event is set."""

    go = threading.Event()

    def start(self) -> None:
        """Nothing to start."""

    def wait_until_ready(self) -> None:
        """It is."""

    def decode(self, content: bytes, *, thumbnail: bool) -> PreparedImage:
        self.go.wait()
        return PreparedImage(np.zeros((8, 8, 3), np.uint8), "image/png", 8, 8, None)

    def terminate(self) -> None:
        self.go.set()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> type[Held]:
    monkeypatch.setattr("evergrow.service.decoding.pool.DecoderProcess", Held)
    Held.go = threading.Event()
    return Held


def test_queued_images_of_a_finished_request_are_not_decoded(held: type[Held]) -> None:
    with DecoderPool(PREPROCESSING, n_processes=1) as pool:
        begun = pool.submit(b"first", owner="a")
        rest = pool.submit_all([b"x"] * 30, owner="a")
        pool.cancel(rest)
        assert pool.n_waiting <= 1
        held.go.set()
        assert begun.result().width == 8
        assert all(one.cancelled() for one in rest.results)


def test_images_of_one_request_have_a_total_timeout(held: type[Held]) -> None:
    limits = DecoderLimits(seconds_together=0.0)
    held.go.set()
    with DecoderPool(PREPROCESSING, n_processes=1, limits=limits) as pool:
        first, second = pool.submit_all([b"1", b"2"]).results
        assert first.result().width == 8
        with pytest.raises(RefusedImageError, match="send fewer"):
            second.result()
        assert pool.submit(b"3").result().width == 8


def test_stopping_does_not_wait_for_queued_images(held: type[Held]) -> None:
    with DecoderPool(PREPROCESSING, n_processes=1) as pool:
        rest = pool.submit_all([b"x"] * 500).results[1:]
    assert all(isinstance(one.exception(), DecoderError) for one in rest)


@pytest.mark.slow
def test_stopping_ends_the_image_that_is_being_decoded() -> None:
    slow = png_that_claims(7000, 7000, bytes(7000 * 21001))
    with DecoderPool(PREPROCESSING, n_processes=1) as pool:
        pool.submit(picture()).result()
        results = pool.submit_all([slow] * 20).results
        began = time.monotonic()
    assert time.monotonic() - began < 8
    assert isinstance(results[-1].exception(), DecoderError)


class Network:
    """Counts its images, and waits for an event."""

    preprocessing = PREPROCESSING

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Event()
        self.n_images: list[int] = []

    def run(self, images: list[Any]) -> Any:
        self.begun.set()
        assert self.go.wait(30)
        self.n_images.append(len(images))
        if len(images) == 3:
            raise ValueError("three")
        return np.zeros((len(images), 2), np.float32)


def test_cancelled_work_is_not_computed_and_the_thread_goes_on() -> None:
    network: Any = Network()
    image = np.zeros((8, 8, 3), np.uint8)
    with BatchEmbedder(network) as embedder:
        first = embedder.submit(READER, [image], for_each(len))
        assert network.begun.wait(30)
        cancelled = [embedder.submit(READER, [image] * n, for_each(len)) for n in (2, 4)]
        failing: Future[int] = embedder.submit(READER, [image] * 3, for_each(len))
        assert all(one.cancel() for one in cancelled)
        # A running computation cannot be cancelled.
        assert not first.cancel()
        network.go.set()
        assert first.result() == 1
        with pytest.raises(ValueError, match="three"):
            failing.result()
        assert embedder.submit(READER, [image], for_each(len)).result() == 1
    assert network.n_images == [1, 3, 1]


def test_a_closed_queue_is_empty() -> None:
    queue = FairQueue(9)
    queue.put(request("a", *"123"))
    left = queue.close()
    assert [type(job) for job in left] == [DecodeJob] * 3
    assert queue.take() is None
    with pytest.raises(RuntimeError, match="stopping"):
        queue.put(request("a", "4"))
