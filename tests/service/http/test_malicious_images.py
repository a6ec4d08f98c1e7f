"""Malicious files are refused with the reason, and the service is not affected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import psutil
import pytest

from evergrow.service.decoding.decoder import DecoderLimits
from evergrow.service.decoding.pool import DecoderPool
from evergrow.service.decoding.protocol import STATUS_OF_REFUSAL, RefusedImageError
from evergrow.vision import Preprocessing, ReadLimits
from tests.harness.malicious_files import png_that_claims, refused_files
from tests.harness.pictures import picture
from tests.service.conftest import Served

_MILLION = 1_000_000
CORPUS = refused_files()


def teach(served: Served, content: bytes, label: str = "mug") -> Any:
    return served.ask(
        "POST", "/v1/examples", files={"image": ("a.jpg", content)}, data={"label": label}
    )


@pytest.fixture(scope="module")
def decoders() -> Iterator[DecoderPool]:
    with DecoderPool(Preprocessing(size=8), n_processes=1) as pool:
        yield pool


@pytest.mark.parametrize("name", CORPUS)
def test_a_malicious_file_is_refused_with_the_reason(decoders: DecoderPool, name: str) -> None:
    content, statuses, word = CORPUS[name]
    with pytest.raises(RefusedImageError) as refused:
        decoders.submit(content, thumbnail=True).result()
    assert STATUS_OF_REFUSAL[refused.value.kind] in statuses, str(refused.value)
    assert word in refused.value.reason
    # The same decoder, or its replacement, decodes the next image.
    assert decoders.submit(picture()).result().width == 64


def test_the_service_survives_all_malicious_files(served_images: Served) -> None:
    teach(served_images, picture())
    process = psutil.Process()
    before = _memory(process)
    for name, (content, statuses, _) in CORPUS.items():
        answer = teach(served_images, content)
        assert answer.status_code in statuses, (name, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"]
    assert teach(served_images, picture(seed=1)).status_code == HTTPStatus.CREATED
    (mug,) = served_images.get("/v1/classes").json()["items"]
    assert mug["n_examples"] == 2
    assert _memory(process) < before + 200 * _MILLION


def _memory(process: psutil.Process) -> int:
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


def test_a_request_of_200_mb_is_refused_before_it_is_read(served_images: Served) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(200):
            yield bytes(_MILLION)

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = served_images.ask("POST", "/v1/predictions", content=endless(), headers=headers)
    assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert "20 MB" in answer.json()["detail"]


def test_one_bad_image_among_several_is_named(served_images: Served) -> None:
    teach(served_images, picture())
    files = [("image", picture()), ("image", b"no image")]
    answer = served_images.ask("POST", "/v1/predictions", files=files)
    assert answer.status_code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    assert "image 2" in answer.json()["detail"]


@pytest.mark.slow
def test_an_image_that_takes_too_long_is_refused_and_its_decoder_replaced() -> None:
    limits = DecoderLimits(ReadLimits(max_pixels=50 * _MILLION), seconds=0.2)
    with DecoderPool(Preprocessing(size=8), n_processes=1, limits=limits) as pool:
        pool.submit(picture()).result()
        (first,) = pool.pids
        slow = png_that_claims(7000, 7000, bytes(7000 * 21001))
        with pytest.raises(RefusedImageError, match=r"longer than 0\.2 seconds"):
            pool.submit(slow, thumbnail=True).result()
        assert pool.submit(picture()).result().width == 64
        assert pool.pids != [first]


@pytest.mark.slow
def test_an_image_that_needs_too_much_memory_is_refused() -> None:
    limits = DecoderLimits(memory_bytes=400 * _MILLION)
    with DecoderPool(Preprocessing(size=8), n_processes=1, limits=limits) as pool:
        large = png_that_claims(7000, 7000, bytes(7000 * 21001))
        with pytest.raises(RefusedImageError, match="memory"):
            pool.submit(large).result()
        assert pool.submit(picture()).result().width == 64


def test_a_crashed_decoder_fails_one_image() -> None:
    with DecoderPool(Preprocessing(size=8), n_processes=1) as pool:
        pool.submit(picture()).result()
        (first,) = pool.pids
        os.kill(first, 9)
        with pytest.raises(RefusedImageError, match="crashed the decoder"):
            pool.submit(picture()).result()
        assert pool.submit(picture()).result().width == 64
        assert pool.pids != [first]
