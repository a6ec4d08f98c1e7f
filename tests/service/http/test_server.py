"""The service as a process: starting, stopping, refusing to start."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from evergrow import Client
from evergrow.cli import main
from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.service import serve
from evergrow.service.http.server import check_address, check_label_studio
from evergrow.service.http.service import Service
from evergrow.workspace import Workspace, WorkspaceLockedError
from tests.harness.http_client import LOST, Caller, embedding_body, raw_request
from tests.harness.process import ServiceProcess, free_port
from tests.service.conftest import make_workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="stopped by a signal"),
]


def test_a_stopped_service_keeps_everything_it_acknowledged(folder: Path) -> None:
    token, _ = make_workspace(folder)
    acknowledged: list[int] = []
    rng = np.random.default_rng(0)

    def teach(seed: int) -> None:
        with closing(Caller(service.port, token)) as caller:
            while True:
                try:
                    reply = caller.teach(embedding_body(rng.normal(size=4), f"class {seed}"))
                except LOST:
                    return
                if reply.status == HTTPStatus.CREATED:
                    acknowledged.append(reply.json()["example"]["id"])
                    enough.set()
                elif reply.status == HTTPStatus.SERVICE_UNAVAILABLE:
                    return

    enough = threading.Event()
    with ServiceProcess(folder, ["--json-logs"]) as service:
        threads = [threading.Thread(target=teach, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        enough.wait()
        seconds = service.stop()
        for thread in threads:
            thread.join()
    log = service.log.read_text()
    assert seconds < 10, log
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line["actor"] for line in lines if line["message"] == "request"} == {"teacher"}
    assert token not in log
    with Workspace.open(folder) as workspace:
        # Nothing is left to replay.
        status = workspace.status()
        assert status.snapshot_event == status.event
        for number in acknowledged:
            workspace.example(number)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceProcess, str]]:
    """A process with narrow limits, and a token."""
    folder = tmp_path_factory.mktemp("served") / "things"
    token, _ = make_workspace(folder)
    limits = {"read_seconds": 0.2}
    with ServiceProcess(folder, ["--max-request-mb", "0.01"], limits=limits) as service:
        yield service, token


def test_a_workspace_is_served_once(running: tuple[ServiceProcess, str]) -> None:
    service, _ = running
    with pytest.raises(WorkspaceLockedError, match=str(service.pid)):
        Service(service.folder).open()
    assert service.ready()


def test_tls(folder: Path, tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    files = ["-keyout", str(key), "-out", str(certificate)]
    host = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([openssl, *make.split(), *host, *files], check=True, capture_output=True)
    token, _ = make_workspace(folder)
    service = ServiceProcess(folder, ["--certfile", str(certificate), "--keyfile", str(key)])
    service.start()
    try:
        url = f"https://localhost:{service.port}"
        with Client(url, token, ca_file=certificate, retries=20) as client:
            assert client.classes() == []
        with socket.create_connection(("127.0.0.1", service.port)) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert not plain.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        service.kill()


def test_a_body_with_a_too_large_content_length_is_refused_while_the_client_sends(
    running: tuple[ServiceProcess, str],
) -> None:
    service, token = running
    with closing(Caller(service.port, token)) as caller:
        reply = caller.predict(("application/json", bytes(20_000_000)))
    assert reply.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert b"10 kB" in reply.content


def test_a_slow_body_is_refused(running: tuple[ServiceProcess, str]) -> None:
    service, token = running
    request = raw_request("/v1/predictions", token, ("application/json", bytes(100)))
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as slow:
        slow.sendall(request[:-99])
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_folder_that_is_not_a_workspace_is_refused_before_it_logs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(WorkspaceError):
        serve(tmp_path, port=0)
    assert capfd.readouterr().err == ""


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


def test_the_token_of_label_studio_is_not_sent_unencrypted_to_another_computer() -> None:
    with pytest.raises(InvalidInputError, match="use https"):
        check_label_studio("http://192.0.2.7:8080", insecure=False)
    check_label_studio("http://192.0.2.7:8080", insecure=True)
    for url in ("", "http://127.0.0.1:8081", "https://studio.example.org"):
        check_label_studio(url, insecure=False)


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


def test_a_terminal_shows_an_address_that_opens_the_page(folder: Path) -> None:
    pty = pytest.importorskip("pty")
    make_workspace(folder)
    ours, theirs = pty.openpty()
    port = free_port()
    command = [sys.executable, "-m", "evergrow", "serve", str(folder), "--port", str(port)]
    with subprocess.Popen(command, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while b"Ctrl-C" not in shown:
            shown += os.read(ours, 4096)
        text = shown.decode()
        (token,) = re.findall(rf"open http://127.0.0.1:{port}/#token=(\S+) ", text)
        # The log names the address without the token.
        assert text.count(token) == 1
        with closing(Caller(port, token)) as caller:
            assert caller.teach(embedding_body(np.ones(4), "mug")).status == HTTPStatus.CREATED
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        os.set_blocking(ours, False)
        # A request that succeeds has no line.
        rest = os.read(ours, 65536).decode()
        assert rest.strip().endswith("stopped; everything that was taught is saved.")
        assert "/v1/examples" not in rest
    os.close(ours)
