"""Downloads of a real service that end early: nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest

from evergrow.workspace import Workspace
from tests.harness.http_client import Caller
from tests.harness.process import ServiceProcess
from tests.service.conftest import make_workspace
from tests.workspace.builders import new_example, picture

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stopped by a signal")

# More than the buffers of a connection hold.
N_BYTES = 12 << 20
PATIENCE_SECONDS = 20
PREPARE = ("application/json", b'{"file": "pictures"}')


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the service has its temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def served(folder: Path, temporary: Path) -> Iterator[tuple[ServiceProcess, str]]:
    """A service over large pictures, and its token to read."""
    # A large model too: its file has eight bytes times the square of this.
    _, token = make_workspace(folder, n_features=1200)
    embedding = np.ones(1200, np.float32)
    with Workspace.open(folder) as workspace:
        for label in ("cup", "pen"):
            large = replace(picture(label), content=os.urandom(N_BYTES))
            workspace.teach([replace(new_example(label, picture=large), embedding=embedding)])
    with ServiceProcess(folder, ["--json-logs"]) as service:
        yield service, token


def begin(service: ServiceProcess, path: str, token: str | None) -> socket.socket:
    """Start a download and read its beginning."""
    connection = socket.create_connection(("127.0.0.1", service.port))
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += "" if token is None else f"Authorization: Bearer {token}\r\n"
    connection.sendall(f"{head}\r\n".encode())
    assert connection.recv(64).startswith(b"HTTP/1.1 200")
    return connection


def kill(connection: socket.socket) -> None:
    """Close a connection as a computer that lost its power."""
    reset = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    connection.close()


def wait_until_empty(folder: Path) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while left := list(folder.glob("evergrow-export-*")):
        assert time.monotonic() < end, left
        time.sleep(0.02)


@pytest.mark.slow
def test_killed_clients_leave_neither_files_nor_limits(
    served: tuple[ServiceProcess, str], temporary: Path
) -> None:
    service, token = served
    with closing(Caller(service.port, token)) as caller:
        for _ in range(3):
            connections = [begin(service, f"/v1/{file}", token) for file in ("model", "pictures")]
            connections.append(begin(service, "/v1/model", token))
            assert any(temporary.glob("evergrow-export-*"))
            assert caller.request("GET", "/v1/pictures").status == HTTPStatus.TOO_MANY_REQUESTS
            for connection in connections:
                kill(connection)
            wait_until_empty(temporary)
        assert len(caller.request("GET", "/v1/pictures").content) > 2 * N_BYTES
    service.stop()
    assert "Traceback" not in service.log.read_text()


@pytest.mark.slow
def test_a_lost_picture_ends_a_download_and_the_log_says_why(
    served: tuple[ServiceProcess, str], folder: Path
) -> None:
    service, token = served
    connection = begin(service, "/v1/pictures", token)
    # More than the headers: the first picture is open now.
    n_bytes = len(connection.recv(100_000, socket.MSG_WAITALL))
    for path in (folder / "images").rglob("*"):
        if path.is_file():
            path.unlink()
    with connection, contextlib.suppress(OSError):
        while part := connection.recv(1 << 16):
            n_bytes += len(part)
    assert N_BYTES < n_bytes < 2 * N_BYTES
    service.stop()
    log = service.log.read_text()
    assert "a download was broken off: pictures were erased" in log
    assert "Traceback" not in log


@pytest.mark.slow
def test_a_service_that_stops_removes_the_files_of_slow_clients(
    folder: Path, temporary: Path, served: tuple[ServiceProcess, str]
) -> None:
    service, token = served
    service.stop()
    with ServiceProcess(folder, limits={"stop_seconds": 0.5}) as hasty:
        with begin(hasty, "/v1/model", token), begin(hasty, "/v1/pictures", token):
            hasty.stop()
        assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_link_works_once_over_a_connection_of_its_own(
    served: tuple[ServiceProcess, str],
) -> None:
    service, token = served
    with closing(Caller(service.port, token)) as caller:
        link = caller.request("POST", "/v1/downloads", PREPARE).json()
    for expected in (HTTPStatus.OK, HTTPStatus.UNAUTHORIZED):
        connection = HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE_SECONDS)
        with closing(connection):
            connection.request("GET", f"/v1/downloads/{link['ticket']}")
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status == expected
            assert (len(content) == link["n_bytes"]) == (expected == HTTPStatus.OK)
