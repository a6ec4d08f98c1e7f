"""A service as a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

_SCRIPT = """
import json, sys
from evergrow.service import serve
options = json.loads(sys.argv[2])
serve(sys.argv[1], port=0, announce=lambda url: print(url, flush=True), **options)
"""
_SECONDS = 60


class ServiceProcess:
    """Started on entering, killed on leaving if it is still there."""

    def __init__(self, folder: Path, token: str, **options: Any) -> None:
        self._command = [sys.executable, "-c", _SCRIPT, str(folder), json.dumps(options)]
        self.folder = folder
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.port = 0
        self.is_tls = "certfile" in options

    def __enter__(self) -> Self:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        url = self.process.stdout.readline().strip()  # type: ignore[union-attr]
        if not url:
            _, said = self.process.communicate(timeout=_SECONDS)
            raise RuntimeError(said)
        self.port = int(url.rstrip("/").rpartition(":")[2])
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=_SECONDS)

    def connection(self) -> http.client.HTTPConnection:
        if not self.is_tls:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=_SECONDS, context=context
        )

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of one request."""
        connection = self.connection()
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, self.headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def stop(self) -> tuple[int, str, float]:
        """Ask it to stop; its exit code, its log, and how long it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=_SECONDS)
        return self.process.returncode, said, time.monotonic() - began
