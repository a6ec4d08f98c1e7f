"""Limits on the size, rate and number of requests; headers of every response."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from evergrow.service.http.app import PageFiles, create_app
from evergrow.service.http.middleware import CONTENT_SECURITY_POLICY
from evergrow.service.http.requests import parse_form
from evergrow.service.http.responses import ProblemError
from evergrow.service.http.service import Service
from evergrow.service.http.settings import Settings
from tests.service.conftest import A, B, Served, TestClient, make_workspace


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
        assert "2000 bytes" in answer.json()["detail"]


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
    served = Served(service, TestClient(create_app(service)), teach, read)
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
    part = b'--x\r\nContent-Disposition: form-data; name="image"\r\n\r\na\r\n'
    with pytest.raises(ProblemError, match="more than 3 parts"):
        parse_form(part * 4 + b"--x--\r\n", "multipart/form-data; boundary=x", max_parts=3)


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
