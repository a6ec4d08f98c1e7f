"""Limits on the size, rate and number of requests; headers of every response."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from evergrow.service.http import middleware
from evergrow.service.http.app import PageFiles, create_app
from evergrow.service.http.fairness import Actor
from evergrow.service.http.middleware import CONTENT_SECURITY_POLICY
from evergrow.service.http.requests import parse_form
from evergrow.service.http.responses import ProblemError
from evergrow.service.http.service import Service
from evergrow.service.http.settings import Settings
from tests.service.conftest import URL, A, B, Served, TestClient, make_workspace

pytestmark = pytest.mark.slow


class TestNarrow:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate=0.001, burst=3, max_request_bytes=2000, max_bytes_at_once=3000)

    def test_a_token_over_the_rate_limit_is_asked_to_wait(self, served: Served) -> None:
        statuses = [served.get("/v1/classes").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, HTTPStatus.TOO_MANY_REQUESTS]
        answer = served.get("/v1/classes")
        assert int(answer.headers["retry-after"]) > 100

    def test_rate_limits_are_per_token(self, served: Served) -> None:
        for _ in range(4):
            served.get("/v1/classes")
        assert served.get("/v1/classes", token="read").status_code == HTTPStatus.OK

    def test_health_is_not_limited(self, served: Served) -> None:
        assert {served.get("/healthz").status_code for _ in range(9)} == {HTTPStatus.OK}

    @pytest.mark.parametrize("stated", [True, False])
    def test_a_body_that_is_too_long_is_refused(self, served: Served, stated: bool) -> None:
        content: Any = bytes(5000) if stated else iter([bytes(1000)] * 5)
        headers = {"Content-Type": "application/json"}
        answer = served.ask("POST", "/v1/examples", content=content, headers=headers)
        assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        assert "2 kB" in answer.json()["detail"]


class TestOneAtATime:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(max_request_bytes=4000, max_bytes_at_once=3000)

    def test_more_bytes_than_fit_into_memory_are_refused_for_now(self, served: Served) -> None:
        headers = {"Content-Type": "application/json"}
        answer = served.ask("POST", "/v1/examples", content=bytes(3500), headers=headers)
        assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        assert "retry-after" in answer.headers
        # What was held is given back.
        assert served.teach_one("mug", A).status_code == HTTPStatus.CREATED


class TestOneRequestAtATime:
    @pytest.fixture
    def settings(self) -> Settings:
        # A quarter of these for each token.
        return Settings(max_requests=4)

    def test_more_requests_at_a_time_are_refused_for_this_token_only(self, served: Served) -> None:
        go, busy = threading.Event(), threading.Event()

        def wait() -> int:
            busy.set()
            return go.wait(30)

        served.service.workspace.status = wait  # type: ignore[method-assign,assignment]
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(served.get, "/v1/status", token="read")
            assert busy.wait(30)
            second = served.get("/v1/classes", token="read")
            other = served.get("/v1/classes")
            go.set()
            first.result()
        assert second.status_code == HTTPStatus.TOO_MANY_REQUESTS
        assert "at a time" in second.json()["detail"]
        assert second.headers["connection"] == "close"
        assert other.status_code == HTTPStatus.OK
        assert served.get("/v1/classes", token="read").status_code == HTTPStatus.OK


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("203.0.113.9", True),
        ("localhost", True),
        ("LOCALHOST.:99", True),
        (socket.gethostname(), True),
        ("things.example.org:443", True),
        ("example.org", False),
        ("things.example.org.evil.com", False),
        ("127.0.0.1.evil.com", False),
        ("[::1].evil.com", False),
        ("", False),
    ],
)
def test_only_known_host_names_are_served(folder: Path, host: str, allowed: bool) -> None:
    make_workspace(folder)
    service = Service(folder, Settings(allow_hosts=("things.example.org",)))
    client = TestClient(create_app(service), base_url=URL)
    answer = client.get("/", headers={"Host": host})
    assert answer.status_code == (HTTPStatus.OK if allowed else HTTPStatus.MISDIRECTED_REQUEST)
    if not allowed:
        assert "--allow-host" in answer.json()["detail"]
    assert client.get("/healthz", headers={"Host": host}).status_code == HTTPStatus.OK


def test_any_host_can_be_allowed_and_the_bound_one_is(folder: Path) -> None:
    make_workspace(folder)
    for settings, bound in ((Settings(allow_hosts=("*",)), None), (Settings(), "Example.org")):
        client = TestClient(create_app(Service(folder, settings), bound), base_url=URL)
        assert client.get("/", headers={"Host": "example.org"}).status_code == HTTPStatus.OK


@pytest.mark.parametrize("hosts", ["example.org", ("http://example.org",), ("a:80",), ("",)])
def test_a_wrong_host_name_is_refused(hosts: Any) -> None:
    with pytest.raises(ValueError, match="allow_hosts must be a tuple of host names"):
        Settings(allow_hosts=hosts)


def test_browsers_are_told_to_use_tls(folder: Path) -> None:
    make_workspace(folder)
    app = create_app(Service(folder), "things.example.org")

    def header(url: str) -> str | None:
        return TestClient(app, base_url=url).get("/").headers.get("strict-transport-security")

    assert header("https://things.example.org") == "max-age=31536000"
    assert header("http://things.example.org") is None
    # Would hold for all programs on this computer, and for other computers in other networks.
    local = [*middleware._LOCAL_NAMES, "things", "things.local", "127.0.0.1", "[::1]"]
    app = create_app(Service(folder, Settings(allow_hosts=("*",))))
    assert {header(f"https://{name}") for name in local} == {None}


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Delays of responses, which do not take place."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(middleware.asyncio, "sleep", sleep)
    return found


def test_refused_tokens_are_slowed_by_address(served: Served, delays: list[float]) -> None:
    for _ in range(middleware._REFUSED_BURST + 20):
        answer = served.get("/v1/classes", token="wrong")
        assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert len(delays) >= 15
    assert max(delays) > 2
    delays.clear()
    assert served.get("/v1/classes").status_code == HTTPStatus.OK
    assert not delays


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("limit", ["_HEALTH", "_ALL_HEALTH"])
def test_a_flood_of_health_checks_is_slowed_and_answered(
    served: Served,
    delays: list[float],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    limit: str,
) -> None:
    monkeypatch.setattr(middleware, f"{limit}_PER_SECOND", 0.001)
    monkeypatch.setattr(middleware, f"{limit}_BURST", 3)
    client = TestClient(create_app(served.service), base_url=URL)
    answers = [client.get(path) for _ in range(6)]
    assert {answer.status_code for answer in answers} == {HTTPStatus.OK}
    assert [answer.headers.get("connection") for answer in answers] == [None] * 3 + ["close"] * 3
    # A load balancer waits for at least a second.
    assert delays == [0.5] * 3


class TestNarrowWithDelays:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(rate=0.001, burst=3, max_request_bytes=2000)

    @pytest.mark.parametrize(
        ("method", "path", "headers", "status"),
        [
            ("POST", "/v1/undo", {}, HTTPStatus.FORBIDDEN),
            ("GET", "/v1/classes", {"Host": "example.org"}, HTTPStatus.MISDIRECTED_REQUEST),
            ("GET", "/v1/nothing", {}, HTTPStatus.NOT_FOUND),
            ("BREW", "/v1/predictions", {}, HTTPStatus.FORBIDDEN),
            (
                "POST",
                "/v1/predictions",
                {"Content-Length": "2001"},
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            ),
            ("POST", "/v1/predictions", {"Content-Length": "x"}, HTTPStatus.BAD_REQUEST),
        ],
    )
    def test_refusals_count_for_the_token_and_those_over_its_rate_are_slowed(
        self,
        served: Served,
        delays: list[float],
        method: str,
        path: str,
        headers: dict[str, str],
        status: HTTPStatus,
    ) -> None:
        def ask() -> HTTPStatus:
            return HTTPStatus(served.ask(method, path, token="read", headers=headers).status_code)

        assert [ask() for _ in range(3)] == [status] * 3
        assert not delays
        assert [ask() for _ in range(3)] == [HTTPStatus.TOO_MANY_REQUESTS] * 3
        assert delays == [middleware._OVER_RATE_SECONDS] * 3


def test_the_pause_over_the_rate_does_not_depend_on_the_rate(
    folder: Path, delays: list[float]
) -> None:
    _, read = make_workspace(folder)
    with Service(folder, Settings(rate=100.0, burst=1)) as service:
        client = TestClient(create_app(service), base_url=URL)
        sent = [client.get("/v1/classes", headers={"Authorization": f"Bearer {read}"})]
        while sent[-1].status_code == HTTPStatus.OK:
            assert len(sent) < 1000
            sent.append(client.get("/v1/classes", headers={"Authorization": f"Bearer {read}"}))
    # Until the next request would be allowed are 10 ms.
    assert delays == [0.5]


def test_a_connection_that_waits_for_a_refusal_may_be_closed(delays: list[float]) -> None:
    released: list[float] = []
    sent: list[Any] = []

    class Waiting:
        def release(self) -> None:
            # Before the pause, in which it would keep a place that others need.
            assert not delays
            released.append(1)

    async def send(message: Any) -> None:
        sent.append(message)

    actor = Actor("reader", frozenset({"read"}))
    limits = middleware.RequestLimits(None, Settings(max_requests=4))  # type: ignore[arg-type]
    assert limits._at_once.take(actor, 1)
    scope = {"type": "http", "actor": actor, "connection": Waiting()}
    asyncio.run(limits(scope, None, send))  # type: ignore[arg-type]
    assert released
    assert delays == [1.0]
    assert sent[0]["status"] == HTTPStatus.TOO_MANY_REQUESTS


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {"Host": "example.org"}, HTTPStatus.MISDIRECTED_REQUEST),
        ("/", {"Content-Length": "20000001"}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ("/", {"Content-Length": "x"}, HTTPStatus.BAD_REQUEST),
        ("/static/nothing.js", {}, HTTPStatus.NOT_FOUND),
        ("/v1/classes", {"Content-Length": "20000001"}, HTTPStatus.UNAUTHORIZED),
    ],
)
def test_refusals_without_a_token_count_for_the_address(
    served: Served,
    delays: list[float],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    headers: dict[str, str],
    status: HTTPStatus,
) -> None:
    for name in ("_PUBLIC", "_REFUSED"):
        monkeypatch.setattr(middleware, f"{name}_PER_SECOND", 0.001)
        monkeypatch.setattr(middleware, f"{name}_BURST", 3)
    client = TestClient(create_app(served.service), base_url=URL)
    answers = [client.get(path, headers=headers).status_code for _ in range(6)]
    assert answers[:3] == [status] * 3
    assert len(delays) == 3


class _Slow:
    """A body that arrives in pieces, with a clock that advances by itself."""

    def __init__(self, pieces: list[tuple[float, int]]) -> None:
        self.pieces = pieces

    async def receive(self) -> dict[str, Any]:
        if not self.pieces:
            await asyncio.sleep(60)
        seconds, n_bytes = self.pieces.pop(0)
        await asyncio.sleep(seconds)
        return {"type": "http.request", "body": bytes(n_bytes), "more_body": bool(self.pieces)}


@pytest.mark.parametrize(
    ("pieces", "refused"),
    [([(0.0, 10)] * 3, False), ([(0.02, 400)] * 10, False), ([(0.05, 1)] * 10, True), ([], True)],
    ids=["fast", "steady", "drip", "nothing"],
)
def test_a_body_must_arrive_at_a_least_rate(
    pieces: list[tuple[float, int]], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "_PROGRESS_SECONDS", 0.2)
    limits = middleware.BodyLimits(None, Settings(min_body_rate=1000))  # type: ignore[arg-type]
    scope = {"headers": [(b"content-length", b"9999")]}
    body = middleware._Body(limits, scope, _Slow([*pieces]).receive, None)  # type: ignore[arg-type]

    async def read() -> None:
        while (await body.receive()).get("more_body"):
            pass

    if not refused:
        asyncio.run(read())
        return
    with pytest.raises(ProblemError, match="less than 1000 bytes per second") as raised:
        asyncio.run(read())
    assert raised.value.status == HTTPStatus.REQUEST_TIMEOUT


def test_a_stated_length_takes_memory_before_it_is_read() -> None:
    limits = middleware.BodyLimits(None, Settings())  # type: ignore[arg-type]
    scope = {"headers": [(b"content-length", b"19999999")]}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x", "more_body": True}

    bodies = [middleware._Body(limits, scope, receive, None) for _ in range(6)]  # type: ignore[arg-type]
    for body in bodies[:5]:
        asyncio.run(body.receive())
    with pytest.raises(ProblemError, match="too many large requests"):
        asyncio.run(bodies[5].receive())
    for body in bodies:
        body.release()
    assert not limits.in_memory._used


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/classes", "/v1/nothing", "/metrics"])
def test_every_response_has_the_security_headers(served: Served, path: str) -> None:
    headers = served.get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers
    assert "access-control-allow-origin" not in headers


def test_metrics_count_requests_and_examples(served: Served) -> None:
    served.teach_one("mug", A)
    text = served.get("/metrics").text
    assert 'evergrow_requests_total{method="POST",route="/v1/examples",status="201"} 1.0' in text
    assert "evergrow_examples 1.0" in text
    assert "evergrow_taught_examples_total 1.0" in text


def test_paths_that_do_not_exist_do_not_grow_the_metrics(served: Served) -> None:
    for number in range(3):
        served.get(f"/v1/nothing{number}")
    text = served.get("/metrics").text
    assert "nothing" not in text


def test_a_service_is_not_ready_before_its_workspace_is_open(folder: Path) -> None:
    teach, read = make_workspace(folder)
    service = Service(folder)
    served = Served(service, TestClient(create_app(service), base_url=URL), teach, read)
    assert served.get("/healthz").status_code == HTTPStatus.OK
    assert served.get("/readyz").status_code == HTTPStatus.SERVICE_UNAVAILABLE
    answer = served.get("/v1/classes")
    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "retry-after" in answer.headers


def test_a_stopping_service_refuses_changes_and_still_predicts(served: Served) -> None:
    served.teach_one("mug", A)
    served.service.refuse_changes()
    assert served.teach_one("mug", B).status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert served.post("/v1/undo", {}).status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert served.get("/readyz").status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert served.post("/v1/predictions", {"embeddings": [A]}).status_code == HTTPStatus.OK


def test_two_clients_that_name_the_same_class_at_once_share_it(served: Served) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: served.teach_one("mug", [n, 0, 0, 1]), range(24)))
    assert {answer.status_code for answer in answers} == {HTTPStatus.CREATED}
    assert sum(answer.json()["class"]["new"] for answer in answers) == 1
    (mug,) = served.get("/v1/classes").json()["items"]
    assert mug["n_examples"] == 24


@pytest.mark.parametrize("n_bytes", [20_000_000, 300_000_000, 1_000_000_000])
def test_two_of_the_longest_requests_fit_at_once(n_bytes: int) -> None:
    assert Settings(max_request_bytes=n_bytes).n_bytes_at_once >= 2 * n_bytes


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "multipart/form-data; boundary=x"),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
        (b"--x\r\n\r\nno name\r\n--x--\r\n", "multipart/form-data; boundary=x"),
        (b"--y--", "multipart/form-data; boundary=x"),
        (b"--x--", "multipart/form-data"),
        (b"--x\r\nA: " + b"a" * 9999, "multipart/form-data; boundary=x"),
    ],
)
def test_an_invalid_form_is_refused(body: bytes, kind: str) -> None:
    with pytest.raises(ProblemError) as refused:
        parse_form(body, kind, max_parts=3)
    assert refused.value.status == HTTPStatus.UNPROCESSABLE_ENTITY


def test_a_form_with_too_many_parts_is_refused() -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="label"\r\n\r\na\r\n'
    with pytest.raises(ProblemError, match="more than 3 parts"):
        parse_form(part * 4 + b"--x--\r\n", "multipart/form-data; boundary=x", max_parts=3)


def test_the_name_of_a_file_in_place_of_the_file_is_told() -> None:
    form = '--x\r\nContent-Disposition: form-data; name="image"{}\r\n\r\n{}\r\n--x--\r\n'
    kind = "multipart/form-data; boundary=x"
    with pytest.raises(ProblemError, match=r"-F image=@what\.jpg"):
        parse_form(form.format("", "what.jpg").encode(), kind, max_parts=1)
    file = form.format('; filename="a.jpg"', "what.jpg").encode()
    assert parse_form(file, kind, max_parts=1) == [("image", b"what.jpg")]
    # A name may be cut off within a character.
    with pytest.raises(ProblemError, match=r"-F image=@what\.jpg"):
        parse_form(form.format("", "Schöne_Bilder_äöü.jpg").encode(), kind, max_parts=1)
    assert parse_form(form.format("", "").encode(), kind, max_parts=1) == [("image", b"")]
    # Programs may send a file without its name.
    nameless = form.format("", "P3\n1 1\n255\n0 0 0").encode()
    assert len(parse_form(nameless, kind, max_parts=1)) == 1


def test_only_files_of_known_kinds_are_served(tmp_path: Path) -> None:
    for name in ("index.html", "app.js", "notes.txt", "secret.py"):
        (tmp_path / name).write_text(name)
    page = PageFiles(tmp_path)
    assert page.names == ["app.js", "index.html"]
    request = Request({"type": "http", "headers": [], "path": "/", "query_string": b""})
    assert page.response("app.js", request).media_type.startswith("text/javascript")
    for name in ("notes.txt", "../secret.py", "/etc/passwd", ""):
        with pytest.raises(ProblemError):
            page.response(name, request)


def test_an_unchanged_page_is_not_sent_again(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("page")
    page = PageFiles(tmp_path)
    scope = {"type": "http", "headers": [], "path": "/", "query_string": b""}
    tag = page.response("index.html", Request(scope)).headers["etag"]
    again = Request({**scope, "headers": [(b"if-none-match", tag.encode())]})
    assert page.response("index.html", again).status_code == HTTPStatus.NOT_MODIFIED
