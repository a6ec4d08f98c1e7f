"""A service that loses connections, is busy and sends invalid responses on purpose."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from evergrow.service import wire
from evergrow.workspace import records

TOKEN = "eg_teach_stub"


@dataclass
class Stub:
    """What the service remembers, and the faults it will make, one per request."""

    url: str = ""
    faults: list[Any] = field(default_factory=list)
    taught: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    most_images: int = 32
    page: int = 2
    guard: threading.Lock = field(default_factory=threading.Lock)

    def next_fault(self) -> Any:
        with self.guard:
            return self.faults.pop(0) if self.faults else None


@dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def parts(self) -> list[tuple[str, bytes]]:
        """Names and contents of a multipart form."""
        kind = self.headers["Content-Type"]
        message = BytesParser(policy=HTTP).parsebytes(
            f"Content-Type: {kind}\r\n\r\n".encode() + self.body
        )
        return [
            (part.get_param("name", header="content-disposition"), part.get_payload(decode=True))
            for part in message.iter_parts()
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stub: Stub

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def _serve(self) -> None:
        stub = self.stub
        stub.connections.add(self.client_address)
        fault = stub.next_fault()
        if fault == "lost before":
            self._lose()
            return
        length = int(self.headers.get("Content-Length") or 0)
        parts = urlsplit(self.path)
        body = self.rfile.read(length)
        request = Request(self.command, parts.path, parse_qs(parts.query), self.headers, body)
        stub.seen.append(request)
        if isinstance(fault, tuple):
            self._answer(*fault)
            return
        status, answer = _answered(stub, request)
        if fault == "lost after":
            self._lose()
            return
        if fault == "lost within":
            self.send_response(status)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b'{"half')
            self._lose()
            return
        self._answer(status, answer)

    # The names are those that the standard library looks for.
    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

    def _lose(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _answered(stub: Stub, request: Request) -> tuple[int, Any]:
    if request.headers["Authorization"] != f"Bearer {TOKEN}":
        return 401, {"title": "Unauthorized", "status": 401, "detail": "the token is not known"}
    if request.path == "/v1/examples" and request.method == "POST":
        return _taught(stub, request)
    if request.path == "/v1/predictions":
        return _predicted(stub, request)
    if request.path in ("/v1/classes", "/v1/examples"):
        return _listed(stub, request)
    return _looked_up(stub, request)


def _looked_up(stub: Stub, request: Request) -> tuple[int, Any]:
    if request.path == "/v1/status":
        # A service may send more.
        return 200, {**asdict(STATUS), "max_images": stub.most_images, "later": []}
    if request.path in _FIXED:
        return 200, _FIXED[request.path]
    return 200, {"event": 7, "kind": request.path[4:], "summary": "Done.", "n_examples": 2}


STATUS = wire.Status(
    id="w",
    name="things",
    event=3,
    n_examples=2,
    n_classes=1,
    n_features=None,
    blocks=(wire.Block("head", 4, used=True),),
    takes_images=True,
    forest=False,
    forest_lacks=None,
    false_alarms=0.05,
    measured_false_alarms=None,
    accuracy=None,
    assessed_event=None,
    snapshot_event=None,
    n_bytes=1,
    scopes=("read", "teach"),
    max_images=1,
    max_request_bytes=20_000_000,
)


def make_example(number: int, label: str) -> records.Example:
    unknown = dict.fromkeys(
        ("fine", "fine_kind", "fine_probability", "image", "media_type", "width", "height")
    )
    return records.Example(id=number, event=number, label=label, at="", actor="", **unknown)


def make_class(number: int, label: str) -> records.ClassEntry:
    return records.ClassEntry(
        id=number,
        name=label,
        n_examples=1,
        n_pictures=0,
        split=False,
        fine=(),
        sign="new",
        accuracy=None,
        confused_with=None,
        confused_share=None,
        n_unknown=None,
    )


_FIXED = {
    "/v1/integrations/label-studio/sync": {
        "n_tasks": 9,
        "n_taught": 2,
        "n_moved": 1,
        "n_removed": 0,
        "problems": ["task 3: no image"],
    },
    "/v1/model": b"a model" * 100_000,
    "/v1/review": {
        "items": [
            {
                "example": asdict(make_example(1, "cup")),
                "suggestion": "mug",
                "probability": 0.6,
                "reason": "guess",
            }
        ]
    },
}


def _taught(stub: Stub, request: Request) -> tuple[int, Any]:
    named = request.json if b"embedding" in request.body else dict(request.parts)
    label = named["label"] if isinstance(named["label"], str) else named["label"].decode()
    with stub.guard:
        known = stub.taught.get(request.headers["Idempotency-Key"])
        if known is not None:
            return 201, known
        number = len(stub.taught) + 1
        of_class = {"name": label, "n_examples": number, "new": number == 1}
        answer = {
            "example": asdict(make_example(number, label)),
            "event": number,
            "duplicate": False,
            "class": of_class,
            "known_fine": None,
        }
        stub.taught[request.headers["Idempotency-Key"]] = answer
        return 201, answer


def _predicted(stub: Stub, request: Request) -> tuple[int, Any]:
    if request.headers["Content-Type"] == "application/json":
        labels = [str(row[0]) for row in request.json["embeddings"]]
    else:
        labels = [content.decode("latin-1")[:20] for _, content in request.parts]
    if len(labels) > stub.most_images:
        return 413, {"detail": "too many images"}
    return 200, {
        "predictions": [
            {
                "label": label,
                "probability": 1,
                "known": True,
                "novelty": None,
                "fine": None,
                "fine_probability": None,
                "top": [{"name": label, "probability": 1.0}],
                "fine_top": [],
            }
            for label in labels
        ],
        "event": 1,
    }


def _listed(stub: Stub, request: Request) -> tuple[int, Any]:
    labels = [answer["example"]["label"] for answer in stub.taught.values()]
    first = int(request.query.get("after", ["0"])[0])
    chosen = list(enumerate(labels, 1))[first : first + stub.page]
    make = make_class if request.path == "/v1/classes" else make_example
    items = [asdict(make(number, label)) for number, label in chosen]
    after = first + stub.page
    return 200, {"items": items, "next": str(after) if after < len(labels) else None}


@contextlib.contextmanager
def running(wrap: Any = None) -> Iterator[Stub]:
    """Run a stub in threads; ``wrap`` turns its socket into another, such as one of TLS."""
    stub = Stub()
    handler = type("Handler", (_Handler,), {"stub": stub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if wrap is not None:
        server.socket = wrap(server.socket)
    # Connections that clients keep open must not keep the tests from ending.
    server.daemon_threads = True
    server.block_on_close = False
    stub.url = f"http{'s' if wrap else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
