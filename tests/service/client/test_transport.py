"""A client over bad connections: each example is taught once, and retries are limited."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evergrow import Client, ServiceError
from tests.service.client.stub import TOKEN, Stub

LOST = ["lost before", "lost after", "lost within"]


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_response_does_not_teach_twice(client: Client, stub: Stub, fault: str) -> None:
    stub.faults = [fault, fault]
    assert client.teach([1.0], "cup").example.id == 1
    assert len(stub.taught) == 1


def test_every_call_has_its_own_key(client: Client, stub: Stub) -> None:
    client.teach([1.0], "cup")
    client.teach([1.0], "cup")
    assert len(stub.taught) == 2


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_change_is_sent_with_the_same_key(client: Client, stub: Stub, fault: str) -> None:
    stub.faults = [fault]
    client.undo()
    assert len({request.headers["Idempotency-Key"] for request in stub.seen}) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_retried_after_the_pause_it_asks_for(
    client: Client, stub: Stub, pauses: list[float], status: int
) -> None:
    stub.faults = [(status, {"detail": "busy"}, {"Retry-After": "3"})]
    client.teach([1.0], "cup")
    assert pauses == [3.0]
    assert len(stub.taught) == 1


def test_pauses_grow_exponentially(client: Client, stub: Stub, pauses: list[float]) -> None:
    stub.faults = ["lost before"] * 5
    client.teach([1.0], "cup")
    assert len(pauses) == 5
    assert all(
        0.05 * 2**attempt <= pause <= 0.1 * 2**attempt for attempt, pause in enumerate(pauses)
    )


def test_retries_are_limited(client: Client, stub: Stub) -> None:
    stub.faults = ["lost before"] * 6
    with pytest.raises(ServiceError, match="does not respond after 6 attempts") as caught:
        client.teach([1.0], "cup")
    assert caught.value.status == 0
    assert not stub.taught


def test_a_service_that_stays_busy_is_an_error_with_its_message(client: Client, stub: Stub) -> None:
    stub.faults = [(503, {"detail": "the queue is full"})] * 6
    with pytest.raises(ServiceError, match="the queue is full") as caught:
        client.status()
    assert caught.value.status == 503


def test_a_long_retry_after_is_an_error(client: Client, stub: Stub, pauses: list[float]) -> None:
    stub.faults = [(503, {"detail": "tomorrow"}, {"Retry-After": "86400"})]
    with pytest.raises(ServiceError, match="tomorrow"):
        client.status()
    assert pauses == []


def test_a_refused_example_is_not_sent_again(client: Client, stub: Stub) -> None:
    stub.faults = [(507, {"detail": "the disk is full"})]
    with pytest.raises(ServiceError) as caught:
        client.teach([1.0], "cup")
    assert (caught.value.status, caught.value.detail) == (507, "the disk is full")
    assert len(stub.seen) == 1


def test_zero_retries_raise_at_once(stub: Stub, pauses: list[float]) -> None:
    stub.faults = ["lost before"]
    with Client(stub.url, TOKEN, retries=0) as client, pytest.raises(ServiceError):
        client.status()
    assert pauses == []


def test_connections_are_reused(client: Client, stub: Stub) -> None:
    for _ in range(5):
        client.status()
    assert len(stub.connections) == 1


def test_a_connection_closed_while_idle_costs_no_pause(
    client: Client, stub: Stub, pauses: list[float]
) -> None:
    client.status()
    stub.faults = ["lost before"]
    client.teach([1.0], "cup")
    assert pauses == []
    assert len(stub.connections) == 2


@pytest.mark.usefixtures("pauses")
def test_threads_share_a_client(stub: Stub) -> None:
    stub.faults = ["lost after", "lost before", "lost within"] * 5
    # One request may meet all faults.
    with Client(stub.url, TOKEN, retries=len(stub.faults)) as client, ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: client.teach([1.0], "cup").example.id, range(100)))
    assert sorted(numbers) == list(range(1, 101))


def test_an_interrupted_export_is_completed(client: Client, stub: Stub, tmp_path: Path) -> None:
    stub.faults = ["lost within"]
    client.export(tmp_path / "model.evergrow")
    assert (tmp_path / "model.evergrow").read_bytes() == b"a model" * 100_000


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("things.evergrow", "/v1/model"),
        ("things", "/v1/model"),
        ("things.onnx", "/v1/model?format=onnx"),
        ("things.html", "/v1/model?format=html"),
        ("Things.ZIP", "/v1/pictures"),
        ("things.csv", "/v1/labels"),
        ("things.jsonl", "/v1/audit-log"),
    ],
)
def test_the_suffix_says_what_is_exported(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, path: str
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(client._transport, "send", lambda _, path, __: sent.append(path))
    client.export(tmp_path / name)
    assert sent == [path]


def test_a_failed_export_leaves_the_old_file(client: Client, stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "model").write_text("old")
    stub.faults = ["lost within"] * 6
    with pytest.raises(ServiceError):
        client.export(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_text() == "old"


def test_a_full_local_disk_is_not_retried(client: Client, stub: Stub, pauses: list[float]) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        client.export("/dev/full")
    assert pauses == []
