"""The service as a process: starting, stopping, refusing to start."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from evergrow.cli import main
from evergrow.foundation.errors import WorkspaceError
from evergrow.service import serve
from evergrow.service.http.server import check_address
from evergrow.service.http.service import Service
from evergrow.workspace import Workspace, WorkspaceLockedError
from tests.service.conftest import make_workspace
from tests.service.processes import ServiceProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stopped by a signal")


def test_a_stopped_service_keeps_everything_it_acknowledged(folder: Path) -> None:
    token, _ = make_workspace(folder)
    acknowledged: list[int] = []
    rng = np.random.default_rng(0)

    def teach(seed: int) -> None:
        while True:
            body = {"embedding": rng.normal(size=4).tolist(), "label": f"class {seed}"}
            try:
                status, answer = service.ask("POST", "/v1/examples", body)
            except OSError:
                return
            if status == HTTPStatus.CREATED:
                acknowledged.append(answer["example"]["id"])
                enough.set()
            elif status == HTTPStatus.SERVICE_UNAVAILABLE:
                return

    enough = threading.Event()
    with ServiceProcess(folder, token, json_logs=True) as service:
        threads = [threading.Thread(target=teach, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        enough.wait()
        code, said, seconds = service.stop()
        for thread in threads:
            thread.join()
    assert (code, seconds < 10) == (0, True), said
    lines = [json.loads(line) for line in said.splitlines()]
    assert {line["actor"] for line in lines if line["message"] == "request"} == {"teacher"}
    assert token not in said
    with Workspace.open(folder) as workspace:
        # Nothing is left to replay.
        status = workspace.status()
        assert status.snapshot_event == status.event
        for number in acknowledged:
            workspace.example(number)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A process with narrow limits."""
    folder = tmp_path_factory.mktemp("served") / "things"
    token, _ = make_workspace(folder)
    with ServiceProcess(folder, token, max_request_bytes=10_000, read_seconds=0.2) as service:
        yield service


def test_a_workspace_is_served_once(running: ServiceProcess) -> None:
    with pytest.raises(WorkspaceLockedError, match=str(running.process.pid)):
        Service(running.folder).open()
    assert running.ask("GET", "/readyz")[0] == HTTPStatus.OK


def test_tls(folder: Path, tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *make.split(), *files], check=True, capture_output=True)
    token, _ = make_workspace(folder)
    options = {"certfile": str(certificate), "keyfile": str(key)}
    with ServiceProcess(folder, token, **options) as service:
        assert service.ask("GET", "/v1/classes")[0] == HTTPStatus.OK
        with socket.create_connection(("127.0.0.1", service.port)) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert not plain.recv(100).startswith(b"HTTP/1.1 200")


def test_a_body_with_a_too_large_content_length_is_refused_while_the_client_sends(
    running: ServiceProcess,
) -> None:
    connection = running.connection()
    connection.request("POST", "/v1/predictions", bytes(20_000_000), running.headers)
    answer = connection.getresponse()
    assert answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert b"10000 bytes" in answer.read()
    connection.close()


def test_a_slow_body_is_refused(running: ServiceProcess) -> None:
    head = ["POST /v1/predictions HTTP/1.1", "Host: a", "Content-Length: 100"]
    head += [f"{name}: {value}" for name, value in running.headers.items()]
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as slow:
        slow.sendall("\r\n".join([*head, "", "{"]).encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_folder_that_is_not_a_workspace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError):
        serve(tmp_path, port=0)


def test_a_port_in_use_is_named(folder: Path) -> None:
    make_workspace(folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port}"):
            serve(folder, port=port)


def test_half_a_certificate_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="together"):
        serve(folder, certfile="certificate.pem")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_computers_are_served_with_tls_only(host: str) -> None:
    with pytest.raises(ValueError, match="unencrypted"):
        check_address(host, with_tls=False, insecure=False)
    check_address(host, with_tls=True, insecure=False)
    check_address(host, with_tls=False, insecure=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_computer_is_served_without_tls(host: str) -> None:
    check_address(host, with_tls=False, insecure=False)


@pytest.mark.parametrize("size", ["0", "0.001", "1001"])
def test_the_openapi_document_has_the_limits_of_requests(folder: Path, size: str) -> None:
    found = CliRunner().invoke(main, ["serve", str(folder), "--max-request-mb", size])
    assert "0.01<=x<=1000" in found.output


def test_a_wrong_limit_is_named(folder: Path) -> None:
    with pytest.raises(ValueError, match="rate must be"):
        serve(folder, rate=-1)
