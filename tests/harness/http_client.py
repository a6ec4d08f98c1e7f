"""Requests over one open connection, with little overhead for the client."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

import numpy as np
import numpy.typing as npt

BOUNDARY = "a-boundary-that-no-picture-has-f3c1"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"
JSON = "application/json"

# What a client sees when the service dies: refused, reset or truncated.
LOST = (OSError, HTTPException)

Body = tuple[str, bytes]


@dataclass(frozen=True)
class Reply:
    """A response."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


def embedding_body(embedding: npt.NDArray[np.float32], label: str, fine: str | None = None) -> Body:
    """Body that teaches a vector."""
    body: dict[str, object] = {"embedding": embedding.tolist(), "label": label}
    if fine is not None:
        body["fine"] = fine
    return JSON, json.dumps(body).encode()


def embeddings_body(embeddings: npt.NDArray[np.float32]) -> Body:
    """Body that predicts vectors."""
    return JSON, json.dumps({"embeddings": embeddings.tolist()}).encode()


def picture_body(picture: bytes, label: str) -> Body:
    """Body that teaches a picture."""
    return MULTIPART, _multipart([("image", picture), ("label", label.encode())])


def pictures_body(pictures: Sequence[bytes]) -> Body:
    """Body that predicts pictures."""
    return MULTIPART, _multipart([("image", picture) for picture in pictures])


def _multipart(fields: Iterable[tuple[str, bytes]]) -> bytes:
    parts = []
    for name, content in fields:
        about = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'
        if name == "image":
            about += '; filename="picture"\r\nContent-Type: application/octet-stream'
        parts.append(about.encode() + b"\r\n\r\n" + content + b"\r\n")
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


class Caller:
    """One client with a token, for use by one thread."""

    def __init__(self, port: int, token: str | None, *, timeout: float = 60.0) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=timeout)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def request(
        self,
        method: str,
        path: str,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request; after an error of `LOST` the next one connects again."""
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = body[0]
        try:
            self._connection.request(method, path, None if body is None else body[1], sent)
            answer = self._connection.getresponse()
            return Reply(answer.status, dict(answer.headers.items()), answer.read())
        except LOST:
            self._connection.close()
            raise

    def get(self, path: str) -> Any:
        """Return the JSON of a path that must exist."""
        reply = self.request("GET", path)
        if reply.status != 200:
            raise RuntimeError(f"GET {path} gave {reply.status}: {reply.content[:500]!r}")
        return reply.json()

    def teach(self, body: Body, key: str | None = None) -> Reply:
        """Teach one example."""
        headers = None if key is None else {"Idempotency-Key": key}
        return self.request("POST", "/v1/examples", body, headers)

    def predict(self, body: Body) -> Reply:
        """Request predictions."""
        return self.request("POST", "/v1/predictions", body)

    def close(self) -> None:
        self._connection.close()


def raw_request(path: str, token: str, body: Body) -> bytes:
    """Make a complete request for :func:`raw_reply`."""
    content_type, content = body
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def raw_reply(connection: socket.socket, request: bytes) -> int:
    """Send a request, read the complete response, and return its status.

    ``http.client`` takes half a millisecond per request, which matters because the clients share
    the processors with the service.
    """
    connection.sendall(request)
    received = b""
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += _receive(connection)
    head = received[:end].lower()
    place = head.index(b"content-length:") + len(b"content-length:")
    missing = end + 4 + int(head[place:].split(b"\r\n", 1)[0]) - len(received)
    while missing > 0:
        missing -= len(_receive(connection))
    return int(head.split(b" ", 2)[1])


def _receive(connection: socket.socket) -> bytes:
    content = connection.recv(1 << 16)
    if not content:
        raise ConnectionResetError("the service closed the connection within a response")
    return content
