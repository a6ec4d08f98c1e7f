"""The image pipeline: disconnects, timeouts and limits."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from evergrow.service.http.fairness import Actor
from evergrow.service.http.images import for_each, wait_while_connected
from evergrow.service.http.responses import ProblemError
from evergrow.service.http.settings import Settings
from tests.harness.pictures import picture
from tests.service.conftest import A, Served


def request_of(*messages: dict[str, Any], stay: bool = False) -> Request:
    """A request whose client sends these and then disconnects, or stays."""
    left = list(messages)

    async def receive() -> Any:
        if left:
            return left.pop(0)
        if stay:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "actor": Actor("reader", frozenset({"read"}))}, receive)


def test_work_is_cancelled_when_its_client_disconnects() -> None:
    work: Future[int] = Future()
    with pytest.raises(ClientDisconnect):
        asyncio.run(wait_while_connected(request_of(), work, 60))
    assert work.cancelled()


def test_work_that_takes_too_long_is_cancelled() -> None:
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


@pytest.mark.slow
def test_images_of_a_disconnected_client_are_dropped(served_images: Served) -> None:
    images: Any = served_images.service.images
    contents = [picture("PNG", (2000, 2000), seed) for seed in range(32)]
    with pytest.raises(ClientDisconnect):
        asyncio.run(images.embed(request_of(), contents, for_each(len)))
    assert images._decoders.n_waiting == 0


class TestShortQueue:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(max_waiting_images=8)

    @pytest.mark.slow
    def test_more_images_than_the_limit_are_refused(self, served_images: Served) -> None:
        images: Any = served_images.service.images
        contents = [picture("PNG", (2000, 2000), seed) for seed in range(16)]

        async def main() -> Any:
            return await asyncio.gather(
                *(images.embed(request_of(stay=True), contents, for_each(len)) for _ in range(2)),
                return_exceptions=True,
            )

        first, second = asyncio.run(main())
        assert first == 16
        assert second.status == HTTPStatus.SERVICE_UNAVAILABLE


@pytest.mark.slow
def test_repeated_requests_are_not_counted_as_taught(served_images: Served) -> None:
    asked = {"files": {"image": picture()}, "data": {"label": "mug"}}
    for _ in range(3):
        headers = {"Idempotency-Key": "k"}
        answer = served_images.ask("POST", "/v1/examples", headers=headers, **asked)
        assert answer.status_code == HTTPStatus.CREATED
    assert "evergrow_taught_examples_total 1.0" in served_images.get("/metrics").text


def test_repeated_embeddings_are_not_counted_as_taught(served: Served) -> None:
    for _ in range(3):
        served.teach_one("mug", A, headers={"Idempotency-Key": "k"})
    assert "evergrow_taught_examples_total 1.0" in served.get("/metrics").text


@pytest.mark.slow
def test_pictures_and_embeddings_of_all_blocks_are_taught_alike(served_stages: Served) -> None:
    status = served_stages.get("/v1/status").json()
    assert status["blocks"] == [
        {"name": "head", "width": 5, "used": True},
        {"name": "stage2", "width": 3, "used": False},
    ]
    assert status["n_features"] == 8
    asked = {"files": {"image": picture()}, "data": {"label": "mug"}}
    answer = served_stages.ask("POST", "/v1/examples", **asked)
    assert answer.status_code == HTTPStatus.CREATED
    assert served_stages.teach_one("pen", [0.5] * 8).status_code == HTTPStatus.CREATED
    refused = served_stages.teach_one("pen", [0.5] * 5)
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "8 numbers, got 5" in refused.json()["detail"]
    answer = served_stages.ask("POST", "/v1/predictions", files={"image": picture()})
    assert answer.json()["predictions"][0]["label"] == "mug"


@pytest.mark.slow
@pytest.mark.parametrize("left", [None, b""])
def test_a_missing_thumbnail_is_made_by_a_decoder_and_stored(
    served_images: Served, folder: Path, monkeypatch: pytest.MonkeyPatch, left: bytes | None
) -> None:
    number = teach(served_images, picture(size=(320, 200)))
    (stored,) = (folder / "thumbnails").rglob("*.jpg")
    before = stored.read_bytes()
    stored.unlink()
    if left is not None:
        stored.write_bytes(left)
    # Nothing is decoded in the process of the service.
    monkeypatch.setattr("evergrow.vision.images.decoder._open", forbidden)
    answer = served_images.get(f"/v1/examples/{number}/thumbnail", token="read")
    assert answer.status_code == HTTPStatus.OK
    assert answer.content == stored.read_bytes() == before


def test_a_stored_image_that_is_damaged_has_no_thumbnail(
    served_images: Served, folder: Path
) -> None:
    number = teach(served_images, picture(size=(320, 200)))
    (stored,) = (folder / "thumbnails").rglob("*.jpg")
    stored.unlink()
    (image,) = (path for path in (folder / "images").rglob("*") if path.is_file())
    image.write_bytes(b"not an image")
    answer = served_images.get(f"/v1/examples/{number}/thumbnail")
    assert answer.status_code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    assert not stored.exists()


def teach(served: Served, content: bytes) -> int:
    answer = served.ask(
        "POST", "/v1/examples", files={"image": ("a.jpg", content)}, data={"label": "mug"}
    )
    return int(answer.json()["example"]["id"])


def forbidden(*_: object) -> None:
    raise AssertionError("an image was decoded in the service")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["AVIF", "HEIF"])
def test_pictures_of_phones_are_taught_and_answered(served_images: Served, kind: str) -> None:
    for label, seed in (("mug", 1), ("pen", 2)):
        files = {"image": picture(kind, seed=seed)}
        answer = served_images.ask("POST", "/v1/examples", files=files, data={"label": label})
        assert answer.status_code == 201, answer.text
    answer = served_images.ask("POST", "/v1/predictions", files={"image": picture(kind, seed=1)})
    assert answer.status_code == 200, answer.text
    broken = {"image": picture(kind)[:-9]}
    answer = served_images.ask("POST", "/v1/examples", files=broken, data={"label": "mug"})
    assert answer.status_code in (400, 415, 422), answer.text
