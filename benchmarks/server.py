"""A service in its own process, with a workspace of vectors, and clients of it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import psutil

from benchmarks.processes import processor_seconds
from evergrow.workspace import NewExample, Workspace
from evergrow.workspace.tokens import Tokens

N_CLASSES = 100
# For a start or a stop; a longer one hangs.
_PATIENCE_SECONDS = 120.0
_AT_ONCE = 1000
_BOUNDARY = "a-boundary-that-no-picture-has-f3c1"


def new_workspace(folder: Path) -> str:
    """Create a workspace that accepts images; return a token that may teach."""
    with Workspace.create(folder, features="efficientnet-lite0"):
        pass
    return Tokens(folder).add("teacher", "teach")


def vectors(n: int, n_features: int, seed: int) -> tuple[npt.NDArray[np.float32], list[str]]:
    """Vectors around class means, and their labels; the classes alternate."""
    means = np.random.default_rng(5).normal(size=(N_CLASSES, n_features))
    known = np.arange(n) % N_CLASSES
    noise = np.random.default_rng([7, seed]).normal(size=(n, n_features))
    return (means[known] + noise).astype(np.float32), [f"class {i}" for i in known]


def fill_workspace(folder: Path, n_examples: int) -> int:
    """Teach vectors until there are so many examples; return their length."""
    with Workspace.open(folder) as workspace:
        embedder = workspace.embedder
        assert embedder is not None
        n_features = int(embedder.fit().n_features_out_)
        while (n_known := workspace.status().n_examples) < n_examples:
            X, labels = vectors(min(_AT_ONCE, n_examples - n_known), n_features, seed=n_known)
            workspace.teach([NewExample(row, label) for row, label in zip(X, labels, strict=True)])
        workspace.assess()
        workspace.save_snapshot()
    return n_features


class RunningService:
    """``evergrow serve FOLDER`` while a block runs."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        options = ["--port", str(self.port), "--rate", "100000"]
        self._command = [sys.executable, "-m", "evergrow", "serve", str(folder), *options]
        self._log = folder.with_name(f"{folder.name}.log")

    def __enter__(self) -> Self:
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        end = time.perf_counter() + _PATIENCE_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.perf_counter() > end:
                self.stop()
                raise RuntimeError(f"not ready: {self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process, if it still runs, and wait for it."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """End the process at once, as a power failure would."""
        self._process.kill()
        self._process.wait()

    def processor_seconds(self) -> float:
        """Processor time that the service and its children have used."""
        return processor_seconds(psutil.Process(self._process.pid))

    def _is_ready(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


def multipart(picture: bytes, label: str | None = None) -> tuple[str, bytes]:
    """Content type and body of a request with a picture, and perhaps its label."""
    about = f"--{_BOUNDARY}\r\nContent-Disposition: form-data; name="
    head = f'{about}"image"; filename="picture"\r\nContent-Type: application/octet-stream\r\n\r\n'
    parts = [head.encode(), picture, b"\r\n"]
    if label is not None:
        parts.append(f'{about}"label"\r\n\r\n{label}\r\n'.encode())
    parts.append(f"--{_BOUNDARY}--\r\n".encode())
    return f"multipart/form-data; boundary={_BOUNDARY}", b"".join(parts)


class Connection:
    """An open connection that sends one request after the other, at little cost for the client.

    ``http.client`` takes half a millisecond per request, which matters because the clients share
    the processors with the service.
    """

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._token = token

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def post(self, path: str, content_type: str, content: bytes) -> int:
        """Send a request, read the complete response, and return its status."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + content)
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._receive()
        place = received[:end].lower().index(b"content-length:") + len(b"content-length:")
        missing = end + 4 + int(received[place:end].split(b"\r\n", 1)[0]) - len(received)
        while missing > 0:
            missing -= len(self._receive())
        return int(received.split(b" ", 2)[1])

    def _receive(self) -> bytes:
        received = self._socket.recv(65536)
        if not received:
            raise ConnectionError("the service closed the connection")
        return received
