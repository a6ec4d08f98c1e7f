"""Clients that leave, ask for too much at once or for the same twice, and what it costs others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from evergrow.service.http.access import Actor
from evergrow.service.http.exports import Exports
from evergrow.service.http.images import wait_while_connected
from evergrow.service.http.responses import ProblemError
from evergrow.service.http.settings import Settings
from evergrow.service.http.writer import Writer
from tests.service.conftest import A, Served
from tests.service.http.test_limits import SlowWorkspace, lesson
from tests.service.pictures import picture


def request_of(*messages: dict[str, Any], stay: bool = False) -> Request:
    """A request whose client sends these and then leaves, or stays."""
    left = list(messages)

    async def receive() -> Any:
        if left:
            return left.pop(0)
        if stay:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "actor": Actor("reader", frozenset({"read"}))}, receive)


def test_work_is_cancelled_when_its_client_leaves() -> None:
    work: Future[int] = Future()
    with pytest.raises(ClientDisconnect):
        asyncio.run(wait_while_connected(request_of(), work, 60))
    assert work.cancelled()


def test_work_that_does_not_get_its_turn_is_asked_for_again_later() -> None:
    work: Future[int] = Future()
    with pytest.raises(ProblemError, match="processed within") as refused:
        asyncio.run(wait_while_connected(request_of(stay=True), work, 0.01))
    assert refused.value.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert work.cancelled()


def test_the_result_of_work_reaches_a_client_that_waits() -> None:
    work: Future[int] = Future()

    async def main() -> int:
        asyncio.get_running_loop().call_soon(work.set_result, 5)
        return await wait_while_connected(request_of(stay=True), work, 60)

    assert asyncio.run(main()) == 5


def test_images_of_a_client_that_left_do_not_wait_any_more(served_images: Served) -> None:
    images: Any = served_images.service.images
    contents = [picture("PNG", (2000, 2000), seed) for seed in range(32)]
    with pytest.raises(ClientDisconnect):
        asyncio.run(images.embed(request_of(), contents, len))
    assert images._decoders.n_waiting == 0


class TestFewWait:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(max_waiting_images=8)

    def test_more_images_than_may_wait_are_asked_to_come_later(self, served_images: Served) -> None:
        images: Any = served_images.service.images
        contents = [picture("PNG", (2000, 2000), seed) for seed in range(16)]

        async def main() -> Any:
            return await asyncio.gather(
                *(images.embed(request_of(stay=True), contents, len) for _ in range(2)),
                return_exceptions=True,
            )

        first, second = asyncio.run(main())
        assert first == 16
        assert second.status == HTTPStatus.SERVICE_UNAVAILABLE


def test_a_lesson_that_was_cancelled_does_not_end_the_writer() -> None:
    space = SlowWorkspace()
    with Writer(space, max_queue=9, on_written=lambda n: None) as writer:  # type: ignore[arg-type]
        first = writer.teach(lesson("first"))
        rest = [writer.teach(lesson(label)) for label in ("a", "b", "c")]
        assert rest[1].cancel()
        space.go.set()
        assert [first.result(), rest[0].result(), rest[2].result()] == ["first", "a", "c"]
        assert writer.teach(lesson("d")).result() == "d"
    assert ["b"] not in space.calls


def test_a_service_whose_writer_has_ended_is_not_ready(served: Served) -> None:
    served.service.writer._queue.put(None)
    served.service.writer._thread.join()
    answer = served.get("/readyz")
    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "restart the service" in answer.json()["detail"]
    assert served.teach_one("mug", A).status_code == HTTPStatus.SERVICE_UNAVAILABLE


def test_answers_that_are_given_again_are_not_counted_as_taught(served_images: Served) -> None:
    asked = {"files": {"image": picture()}, "data": {"label": "mug"}}
    for _ in range(3):
        headers = {"Idempotency-Key": "k"}
        answer = served_images.ask("POST", "/v1/examples", headers=headers, **asked)
        assert answer.status_code == HTTPStatus.CREATED
    assert "evergrow_taught_examples_total 1.0" in served_images.get("/metrics").text


def test_embeddings_that_are_sent_again_are_not_counted_as_taught(served: Served) -> None:
    for _ in range(3):
        served.teach_one("mug", A, headers={"Idempotency-Key": "k"})
    assert "evergrow_taught_examples_total 1.0" in served.get("/metrics").text


class Model:
    """Something to export that changes when it is told to."""

    def __init__(self) -> None:
        self.state, self.n_written = 0, 0
        self.folders: list[Path] = []

    def write(self, path: Path) -> None:
        self.n_written += 1
        self.folders.append(path.parent)
        path.write_text(str(self.state))


def test_requests_for_the_same_model_share_a_file_that_is_then_removed() -> None:
    model = Model()

    async def main(exports: Exports) -> None:
        first, second = await asyncio.gather(exports.borrow(), exports.borrow())
        assert first is second
        exports.release(first)
        assert [piece async for piece in exports.read_chunks(second)] == [b"0"]
        exports.release(second)
        assert not model.folders[0].exists()

    with Exports(model.write, lambda: model.state) as exports:
        asyncio.run(main(exports))
    assert model.n_written == 1


def test_a_model_that_changed_is_another_file_and_there_are_few() -> None:
    model = Model()

    async def main(exports: Exports) -> None:
        for model.state in range(4):
            await exports.borrow()
        model.state = 4
        with pytest.raises(ProblemError, match="still being downloaded"):
            await exports.borrow()

    with Exports(model.write, lambda: model.state) as exports:
        asyncio.run(main(exports))
    # Those that nobody gave back are removed at the end.
    assert not any(folder.exists() for folder in model.folders)


def test_who_stops_waiting_for_a_model_leaves_it_to_others() -> None:
    model, go = Model(), threading.Event()

    def write(path: Path) -> None:
        go.wait()
        model.write(path)

    async def main(exports: Exports) -> None:
        leaving, staying = (asyncio.ensure_future(exports.borrow()) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        go.set()
        export = await staying
        assert (export.n_users, export.n_bytes) == (1, 1)

    with Exports(write, lambda: 0) as exports:
        asyncio.run(main(exports))


def test_a_client_that_leaves_before_the_first_byte_leaves_no_file(served: Served) -> None:
    served.teach_one("mug", A)
    exports = served.service.exports

    async def never(message: Any) -> None:
        raise OSError("gone")

    app: Any = served.client.app
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/v1/model",
        "raw_path": b"/v1/model",
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {served.read}".encode())],
    }
    asyncio.run(app(scope, request_of().receive, never))
    assert not exports._exports
