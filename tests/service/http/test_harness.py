"""The harness counts what it reports."""

from __future__ import annotations

import io
import json
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.harness.crashes import compare
from tests.harness.full_disk import FullDisk
from tests.harness.http_client import embedding_body, raw_reply, raw_request
from tests.harness.malicious_files import Refusal
from tests.harness.pictures import different, photograph, photographs
from tests.harness.process import small_disk
from tests.harness.teaching_clients import Acknowledged, row_digest


def acknowledged(example: int, content: str) -> Acknowledged:
    return Acknowledged(f"key {example}", example, "a", content, picture=False)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({1: ("a", "x"), 2: ("a", "y")}, (0, 0, 0)),
        ({1: ("a", "x")}, (1, 0, 0)),
        ({1: ("a", "x"), 2: ("b", "y")}, (1, 0, 0)),
        ({1: ("a", "x"), 2: ("a", "y"), 3: ("a", "y")}, (0, 1, 0)),
        ({1: ("a", "x"), 2: ("a", "y"), 3: ("a", "z")}, (0, 0, 1)),
    ],
    ids=["complete", "lost", "another class", "duplicate", "unknown"],
)
def test_lost_duplicate_and_unknown_examples_are_counted(
    found: dict[int, tuple[str, str]], expected: tuple[int, int, int]
) -> None:
    assert compare([acknowledged(1, "x"), acknowledged(2, "y")], found) == expected


def test_different_files_show_the_same_picture() -> None:
    drawn = photograph(0, width=40, height=30)
    first, second = different(drawn, 1), different(drawn, 2)
    assert first != second
    pixels = [np.asarray(Image.open(io.BytesIO(one))) for one in (drawn, first, second)]
    np.testing.assert_array_equal(pixels[0], pixels[1])
    np.testing.assert_array_equal(pixels[0], pixels[2])


def test_no_photograph_comes_twice() -> None:
    assert len({*photographs(50, n_drawn=2), *photographs(50, n_drawn=2, first=50)}) == 100


def test_a_vector_survives_json() -> None:
    row = np.random.default_rng(0).normal(size=7).astype(np.float32)
    _, content = embedding_body(row, "a")
    assert row_digest(np.array(json.loads(content)["embedding"], np.float32)) == row_digest(row)


def test_a_raw_response_in_pieces_is_read_completely() -> None:
    near, far = socket.socketpair()
    answer = b"HTTP/1.1 201 Created\r\nContent-Length: 11\r\nServer: x\r\n\r\nhello world"

    def serve() -> None:
        far.recv(1 << 16)
        for start in range(0, len(answer), 7):
            far.sendall(answer[start : start + 7])

    thread = threading.Thread(target=serve)
    thread.start()
    with near, far:
        assert raw_reply(near, raw_request("/", "token", ("text/plain", b"x"))) == 201
        thread.join()
        near.setblocking(False)
        with pytest.raises(BlockingIOError):
            near.recv(1)


@pytest.mark.parametrize("status", [0, 200, 500])
def test_only_a_4xx_with_a_reason_counts_as_refused(status: int) -> None:
    assert not Refusal("x", status, "why", 0.0).refused
    assert not Refusal("x", 422, "", 0.0).refused
    assert Refusal("x", 422, "why", 0.0).refused


def test_a_full_disk_leaves_the_requested_space(tmp_path: Path) -> None:
    try:
        with small_disk(tmp_path / "disk", 1 << 20) as disk:
            FullDisk(disk).leave(8192)
            (disk / "fits").write_bytes(bytes(8192))
            with pytest.raises(OSError, match="No space"):
                (disk / "more").write_bytes(b"x")
    except PermissionError as error:
        pytest.skip(str(error))
