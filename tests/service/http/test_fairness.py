"""Shares of tokens and addresses: amounts, rates and queued work."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from evergrow.service.http import fairness
from evergrow.service.http.fairness import Actor, FairQueue, FairThreads, Pacer
from evergrow.service.http.images import BatchEmbedder, for_each
from evergrow.service.http.settings import Settings
from tests.service.conftest import A, Served

READER = Actor("reader", frozenset({"read"}))
OTHER = Actor("other", frozenset({"read"}))
TEACHER = Actor("teacher", frozenset({"read", "teach"}))


def test_one_token_holds_a_quarter_of_the_memory() -> None:
    memory = Settings().body_allowance()
    assert memory.take(READER, 100_000_000)
    assert not memory.take(READER, 1)
    memory.give_back(READER, 1)
    assert memory.take(READER, 1)


def test_tokens_that_only_read_leave_memory_and_requests_to_those_that_teach() -> None:
    for allowance, share in (
        (Settings().body_allowance(), 100_000_000),
        (Settings().request_allowance(), 64),
    ):
        readers = [Actor(f"reader {n}", frozenset({"read"})) for n in range(9)]
        assert any(not allowance.take(one, share) for one in readers)
        assert allowance.take(TEACHER, share)


def test_nothing_is_remembered_of_tokens_that_gave_everything_back() -> None:
    memory = Settings().body_allowance()
    memory.take(READER, 5)
    memory.give_back(READER, 5)
    assert not memory._used_by
    assert memory._used == memory._used_by_readers == 0


def test_a_pacer_delays_more_and_more_and_recovers() -> None:
    now = 0.0
    pacer = Pacer(rate=10, burst=2, max_delay=1.0, clock=lambda: now)
    delays = [pacer.delay("a") for _ in range(20)]
    assert delays[:4] == pytest.approx([0, 0, 0.1, 0.2])
    assert delays[-1] is None
    assert delays.count(None) == 8
    now = 10.0
    assert pacer.delay("a") == 0


def test_a_pacer_remembers_a_limited_number_of_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "_MAX_ADDRESSES", 3)
    pacer = Pacer(rate=1, burst=1, max_delay=1.0, clock=lambda: 0.0)
    for address in "abcde":
        pacer.delay(address)
    assert len(pacer._due) == 3


def test_queued_work_of_one_owner_does_not_delay_another() -> None:
    queue: FairQueue[int] = FairQueue()
    for n in range(1000):
        queue.put("flood", n, 1.0)
    assert queue.pop() == ("flood", 0)
    queue.put("other", 7, 1.0)
    assert ("other", 7) in [queue.pop(), queue.pop()]


def test_teaching_gets_four_fifths() -> None:
    queue: FairQueue[int] = FairQueue()
    for n in range(100):
        queue.put("reader", n, 1.0 / READER.weight)
        queue.put("teacher", n, 1.0 / TEACHER.weight)
    owners = [found[0] for found in (queue.pop() for _ in range(100)) if found is not None]
    assert 78 <= owners.count("teacher") <= 82


def test_readers_take_turns_and_report_errors() -> None:
    go, order = threading.Event(), []
    with FairThreads(1, "test") as threads:
        first = threads.submit(READER, lambda: go.wait(30))
        flood = [threads.submit(READER, lambda: order.append("flood")) for _ in range(20)]
        other = threads.submit(TEACHER, lambda: order.append("other"))
        wrong = threads.submit(OTHER, lambda: 1 / 0)
        go.set()
        assert first.result(30)
        other.result(30)
        with pytest.raises(ZeroDivisionError):
            wrong.result(30)
        flood[-1].result(30)
    assert order.index("other") <= 1
    with pytest.raises(RuntimeError, match="stopping"):
        threads.submit(READER, int)


class Unchanged:
    """Preprocessing that changes nothing."""

    @staticmethod
    def normalize(image: Any) -> Any:
        return image


class Network:
    """Notes the sizes of batches; each run waits until it may go on."""

    preprocessing = Unchanged

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.batches: list[list[int]] = []
        self.began = threading.Semaphore(0)

    def run(self, images: list[Any]) -> Any:
        self.batches.append([int(image[0]) for image in images])
        self.began.release()
        assert self.go.acquire(timeout=30)
        return np.array([[image[0]] for image in images], np.float32)


def images(*numbers: int) -> list[Any]:
    return [np.array([number], np.uint8) for number in numbers]


def first_column(rows: Any) -> Any:
    return rows[:, 0]


def test_a_request_of_many_images_is_embedded_in_batches() -> None:
    network: Any = Network()
    network.go.release(100)
    with BatchEmbedder(network, max_batch=4) as embedder:
        rows = embedder.submit(READER, images(*range(32)), for_each(first_column)).result(30)
    assert rows.tolist() == list(range(32))
    assert max(len(batch) for batch in network.batches) <= 4


def test_an_image_of_another_token_is_next() -> None:
    network: Any = Network()
    with BatchEmbedder(network, max_batch=4) as embedder:
        many = embedder.submit(READER, images(*range(1, 33)), for_each(len))
        assert network.began.acquire(timeout=30)
        one = embedder.submit(TEACHER, images(77), for_each(len))
        network.go.release(100)
        assert one.result(30) == 1
        assert many.result(30) == 32
    assert [77] in network.batches[1:3]


def test_a_token_leaves_a_thread_to_one_that_teaches() -> None:
    network: Any = Network()
    with BatchEmbedder(network, n_threads=2, max_batch=4) as embedder:
        embedder.expect(TEACHER)
        many = embedder.submit(READER, images(*range(1, 9)), for_each(len))
        assert network.began.acquire(timeout=30)
        assert not network.began.acquire(timeout=0.2)
        one = embedder.submit(TEACHER, images(77), for_each(len))
        assert network.began.acquire(timeout=30)
        assert network.batches == [[1], [77]]
        network.go.release(100)
        assert (one.result(30), many.result(30)) == (1, 8)


@pytest.mark.parametrize(
    ("on_gpu", "n_threads", "sizes"), [(True, 2, (32, 32)), (False, 16, (4, 1))]
)
def test_a_graphics_card_gets_few_threads_and_large_batches(
    on_gpu: bool, n_threads: int, sizes: tuple[int, int]
) -> None:
    network: Any = Network()
    network.on_gpu = on_gpu
    embedder: Any = BatchEmbedder.for_device(network, n_processors=16)
    assert embedder._n_threads == n_threads
    assert (embedder._max_batch, embedder._max_shared_batch) == sizes


def test_tokens_take_turns_within_a_large_batch() -> None:
    network: Any = Network()
    with BatchEmbedder(network, max_batch=32, max_shared_batch=32) as embedder:
        first = embedder.submit(READER, images(1), for_each(len))
        assert network.began.acquire(timeout=30)
        many = embedder.submit(READER, images(*range(2, 42)), for_each(len))
        one = embedder.submit(TEACHER, images(77), for_each(len))
        network.go.release(100)
        assert [found.result(30) for found in (first, many, one)] == [1, 40, 1]
    assert [len(batch) for batch in network.batches] == [1, 32, 9]
    assert 77 in network.batches[1][:2]


def test_requests_that_end_with_a_batch_are_finished_together() -> None:
    network: Any = Network()
    calls = []

    def total(requests: Any) -> list[float]:
        calls.append(len(requests))
        return [float(rows.sum()) for rows in requests]

    def fail(requests: Any) -> list[float]:
        raise ValueError(len(requests))

    with BatchEmbedder(network, max_batch=8) as embedder:
        first = embedder.submit(READER, images(1), total)
        assert network.began.acquire(timeout=30)
        rest = [embedder.submit(READER, images(*some), total) for some in ([2, 3], [4], [5])]
        failed = [embedder.submit(READER, images(0), fail) for _ in range(2)]
        network.go.release(100)
        assert [one.result(30) for one in (first, *rest)] == [1, 5, 4, 5]
        for one in failed:
            with pytest.raises(ValueError, match="2"):
                one.result(30)
    assert calls == [1, 3]


def test_predictions_of_others_do_not_solve_the_model_after_every_change(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.service, "_new_models", Pacer(0.001, 3, 0.0))

    def taught_and_seen(number: int, token: str) -> tuple[int, int]:
        taught = served.teach_one("mug", [number, 0, 0, 1]).json()["event"]
        body = {"embeddings": [A]}
        return taught, served.post("/v1/predictions", body, token=token).json()["event"]

    # Occasional changes are seen at once.
    for number in range(4):
        taught, seen = taught_and_seen(number, "read")
        assert seen == taught
    last = seen
    assert {taught_and_seen(number, "read")[1] for number in range(4, 9)} == {last}
    # The token that teaches sees its own changes.
    taught, seen = taught_and_seen(9, "teach")
    assert seen == taught > last
    monkeypatch.setattr(served.service, "_new_models", Pacer(2.0, 3, 0.0))
    taught, seen = taught_and_seen(10, "read")
    assert seen == taught
