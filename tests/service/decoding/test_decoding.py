"""Decoders prepare images as an embedder does."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evergrow.service.decoding.decoder import DecoderLimits, DecoderProcess
from evergrow.service.decoding.polyglots import check_not_polyglot
from evergrow.service.decoding.pool import DecoderPool
from evergrow.service.decoding.protocol import (
    DecoderError,
    FrameError,
    RefusedImageError,
    read_frame,
    write_frame,
)
from evergrow.service.http.fairness import Actor
from evergrow.service.http.images import BatchEmbedder, for_each, single_threaded_network
from evergrow.vision import Embedder, OnnxModel, Preprocessing, read_image
from tests.harness.pictures import picture
from tests.vision.embedding.models import onnx_model

PREPROCESSING = Preprocessing(size=32)
KINDS = ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "AVIF", "HEIF"]
READER = Actor("reader", frozenset({"read"}))


@pytest.fixture(scope="module")
def decoders() -> Iterator[DecoderPool]:
    with DecoderPool(PREPROCESSING, n_processes=1) as pool:
        yield pool


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_network_gets_is_what_an_embedder_prepares(
    decoders: DecoderPool, kind: str
) -> None:
    content = picture(kind, size=(640, 480))
    image = read_image(content, max_side=PREPROCESSING.min_side)
    found = decoders.submit(content).result()
    np.testing.assert_array_equal(PREPROCESSING.normalize(found.pixels), PREPROCESSING(image))
    assert (found.width, found.height) == (640, 480)


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [
        ("JPEG", "image/jpeg"),
        ("PNG", "image/png"),
        ("GIF", "image/gif"),
        ("AVIF", "image/avif"),
        ("HEIF", "image/heif"),
    ],
)
def test_the_media_type_is_that_of_the_content(
    decoders: DecoderPool, kind: str, media_type: str
) -> None:
    assert decoders.submit(picture(kind)).result().media_type == media_type


@pytest.mark.parametrize("kind", ["AVIF", "HEIF"])
def test_damaged_pictures_of_phones_are_refused_and_others_follow(
    decoders: DecoderPool, kind: str
) -> None:
    content = picture(kind, size=(640, 480))
    random = np.random.default_rng(0)
    for end in (30, len(content) // 4, len(content) // 2, len(content) - 1):
        with pytest.raises(RefusedImageError):
            decoders.submit(content[:end]).result()
    for _ in range(30):
        changed = bytearray(content)
        # In the boxes, which come first.
        changed[int(random.integers(8, 300))] ^= int(random.integers(1, 256))
        # Some changes are harmless, such as those of names.
        with contextlib.suppress(RefusedImageError):
            assert decoders.submit(bytes(changed)).result().pixels.shape == (32, 32, 3)
    assert decoders.submit(content).result().width == 640


def test_the_orientation_of_a_photograph_is_respected(decoders: DecoderPool) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    found = decoders.submit(picture(size=(400, 200), exif=exif), thumbnail=True).result()
    assert (found.width, found.height) == (200, 400)
    assert found.thumbnail is not None
    assert Image.open(io.BytesIO(found.thumbnail)).size == (80, 160)


def test_a_thumbnail_is_made_only_on_request(decoders: DecoderPool) -> None:
    assert decoders.submit(picture()).result().thumbnail is None
    small = decoders.submit(picture(size=(640, 320)), thumbnail=True).result().thumbnail
    assert small is not None
    assert Image.open(io.BytesIO(small)).size == (160, 80)


def test_a_decoder_does_not_see_secrets_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVERGROW_TOKEN", "secret")
    with DecoderPool(PREPROCESSING, n_processes=1) as pool:
        pool.submit(picture()).result()
        environment = Path(f"/proc/{pool.pids[0]}/environ")
        if not environment.exists():
            pytest.skip("the system does not show the environment of a process")
        assert b"EVERGROW_TOKEN" not in environment.read_bytes()


def test_decoders_are_killed_before_the_service_when_memory_runs_out() -> None:
    decoder = DecoderProcess(PREPROCESSING, DecoderLimits())
    try:
        decoder.wait_until_ready()
        score = Path(f"/proc/{decoder.pid}/oom_score_adj")
        if not score.exists():
            pytest.skip("the system has no such order")
        assert score.read_text().strip() == "1000"
    finally:
        decoder.stop()


def test_a_decoder_that_cannot_be_started_says_so_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "too many open files", "python")

    decoder = DecoderProcess(PREPROCESSING, DecoderLimits())
    with monkeypatch.context() as short:
        short.setattr("subprocess.Popen", fail)
        with pytest.raises(DecoderError, match=r"started: too many open files$"):
            decoder.decode(picture(), thumbnail=False)
    try:
        assert decoder.decode(picture(), thumbnail=False).media_type == "image/jpeg"
    finally:
        decoder.stop()


@pytest.mark.parametrize(
    "rest",
    [
        b"\x00" * 20,
        picture(seed=3),
        b"\x00\x00\x00\x18ftypmp42" + bytes(50),
        bytes(40) + b"SEFT",
    ],
)
def test_data_that_phones_append_to_pictures_is_allowed(rest: bytes) -> None:
    check_not_polyglot(picture() + rest, "JPEG")


@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_pictures_are_not_polyglots(kind: str) -> None:
    check_not_polyglot(picture(kind), kind)


def test_a_progressive_jpeg_is_not_a_polyglot() -> None:
    check_not_polyglot(picture(size=(640, 480), progressive=True), "JPEG")


def first_row(rows: Any) -> Any:
    return rows[0]


def test_vectors_are_those_of_the_embedder(decoders: DecoderPool, tmp_path: Path) -> None:
    model = OnnxModel(onnx_model(("n", 3, 32, 32)).SerializeToString())
    embedder = Embedder(model, preprocessing=PREPROCESSING, cache=False)
    pictures = [picture(size=(640, 480), seed=seed) for seed in range(12)]
    with BatchEmbedder(single_threaded_network(embedder), n_threads=2, max_batch=4) as batches:
        prepared = [decoders.submit(content).result().pixels for content in pictures]
        futures = [batches.submit(READER, [one], for_each(first_row)) for one in prepared]
        found = np.stack([future.result() for future in futures])
    np.testing.assert_allclose(found, embedder.transform(pictures), rtol=1e-6)


def test_an_error_after_the_network_fails_one_request(decoders: DecoderPool) -> None:
    model = OnnxModel(onnx_model(("n", 3, 32, 32)).SerializeToString())
    embedder = Embedder(model, preprocessing=PREPROCESSING, cache=False)
    one = decoders.submit(picture()).result().pixels
    with BatchEmbedder(single_threaded_network(embedder)) as batches:
        wrong = batches.submit(READER, [one], for_each(lambda rows: 1 / 0))
        right = batches.submit(READER, [one, one], for_each(np.shape))
        with pytest.raises(ZeroDivisionError):
            wrong.result()
        assert right.result() == (2, 5)


def test_an_embedder_that_is_a_function_cannot_be_served() -> None:
    with pytest.raises(TypeError, match="ONNX"):
        single_threaded_network(Embedder(lambda images: np.ones((len(images), 2))))


def test_several_networks_cannot_be_served() -> None:
    model = OnnxModel(onnx_model().SerializeToString())
    with pytest.raises(TypeError, match="an embedder with one network"):
        single_threaded_network(Embedder([model, model], cache=False))


@pytest.mark.parametrize(
    "content", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x02[]", b"\x00\x00\x00\x02{}", b"\x00\x00"]
)
def test_an_invalid_frame_is_an_error(content: bytes) -> None:
    with pytest.raises(FrameError):
        read_frame(io.BytesIO(content), max_bytes=10)


def test_a_frame_is_not_read_beyond_its_limit() -> None:
    file = io.BytesIO()
    write_frame(file, {}, [b"12345678901"])
    file.seek(0)
    with pytest.raises(FrameError, match="more than 10"):
        read_frame(file, max_bytes=10)


def test_frames_arrive_as_they_were_sent() -> None:
    source, target = os.pipe()
    with open(source, "rb", buffering=0) as reading, open(target, "wb", buffering=0) as writing:
        write_frame(writing, {"a": 1}, [b"x", b""])
        assert read_frame(reading, max_bytes=10) == ({"a": 1}, [bytearray(b"x"), bytearray()])
