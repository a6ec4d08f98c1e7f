"""Tokens on every route, read from the route table so that none is missed."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from evergrow.service.http.app import create_app
from evergrow.service.http.middleware import PUBLIC_PATHS, STATIC_PREFIX, needed_scope
from evergrow.service.http.service import Service
from evergrow.service.http.settings import Settings
from evergrow.workspace.store.layout import Layout
from evergrow.workspace.tokens import new_token
from tests.service.conftest import (
    URL,
    Served,
    TestClient,
    expired_token,
    make_workspace,
    revoked_token,
)

TEACHING = {
    ("DELETE", "/v1/examples/{example}"),
    ("PATCH", "/v1/examples/{example}"),
    ("POST", "/v1/integrations/label-studio/setup"),
    ("POST", "/v1/integrations/label-studio/sync"),
    ("POST", "/v1/integrations/label-studio/webhook"),
    ("POST", "/v1/examples"),
    ("POST", "/v1/forget"),
    ("POST", "/v1/merge"),
    ("POST", "/v1/relabel"),
    ("POST", "/v1/remove"),
    ("POST", "/v1/rename"),
    ("POST", "/v1/split"),
    ("POST", "/v1/undo"),
    ("POST", "/v1/unsplit"),
}


def operations(served: Served) -> list[tuple[str, str]]:
    found = []
    for route in served.client.app.routes:  # type: ignore[attr-defined]
        assert isinstance(route, Route), f"{route} is not a plain route: its tokens are not checked"
        found.extend((method, route.path) for method in route.methods or ())
    return sorted(found)


def protected(served: Served) -> list[tuple[str, str]]:
    return [
        (method, path)
        for method, path in operations(served)
        if path not in PUBLIC_PATHS and not path.startswith(STATIC_PREFIX)
    ]


def ask(served: Served, operation: tuple[str, str], token: str | None) -> Any:
    method, path = operation
    return served.ask(method, path.replace("{example}", "1"), token=token)


def test_all_but_health_and_the_page_is_protected(served: Served) -> None:
    public = {path for _, path in operations(served)} - {path for _, path in protected(served)}
    assert public == {"/", "/healthz", "/readyz", f"{STATIC_PREFIX}{{name:path}}"}


@pytest.mark.parametrize("kind", ["missing", "wrong", "expired", "revoked"])
def test_no_route_accepts_an_invalid_token(served: Served, kind: str) -> None:
    folder = served.service.folder
    token = {
        "missing": lambda: None,
        "wrong": lambda: served.teach[:-1] + ("a" if served.teach[-1] != "a" else "b"),
        "expired": lambda: expired_token(folder),
        "revoked": lambda: revoked_token(folder),
    }[kind]()
    for operation in protected(served):
        answer = ask(served, operation, token)
        assert answer.status_code == HTTPStatus.UNAUTHORIZED, operation
        assert answer.headers["www-authenticate"].startswith("Bearer"), operation
        assert answer.headers["content-type"] == "application/problem+json", operation


def test_a_token_to_read_changes_nothing(served: Served) -> None:
    refused = {
        operation
        for operation in protected(served)
        if ask(served, operation, "read").status_code == HTTPStatus.FORBIDDEN
    }
    assert refused == TEACHING


def test_a_token_to_teach_opens_every_route(served: Served) -> None:
    refused = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
    for operation in protected(served):
        assert ask(served, operation, "teach").status_code not in refused, operation


def test_public_paths_need_no_token(served: Served) -> None:
    assert served.get("/healthz", token=None).json() == {"status": "alive"}
    assert served.get("/readyz", token=None).json() == {"status": "ready"}


def test_a_future_route_is_protected() -> None:
    assert needed_scope("POST", "/v1/new") == "teach"
    assert needed_scope("PUT", "/anything") == "teach"
    assert needed_scope("GET", "/v1/new") == "read"
    assert needed_scope("GET", "/healthz/more") == "read"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic abc", "Bearer \xff", "x" * 9999]
)
def test_invalid_authorization_headers_are_ignored(served: Served, header: str) -> None:
    headers = {"Authorization": header.encode("latin-1")}
    answer = served.client.get("/v1/classes", headers=headers)
    assert answer.status_code == HTTPStatus.UNAUTHORIZED


def test_two_tokens_are_ignored(served: Served) -> None:
    headers = [("Authorization", f"Bearer {served.read}"), ("Authorization", "Bearer x")]
    assert served.client.get("/v1/classes", headers=headers).status_code == HTTPStatus.UNAUTHORIZED


def test_a_token_revoked_while_the_service_runs_is_refused_at_once(served: Served) -> None:
    from evergrow.workspace.tokens import Tokens

    assert served.get("/v1/classes", token="read").status_code == HTTPStatus.OK
    Tokens(served.service.folder).revoke("reader")
    answer = served.get("/v1/classes", token="read")
    assert answer.status_code == HTTPStatus.UNAUTHORIZED
    assert "revoked" in answer.json()["detail"]


def test_tokens_are_not_those_of_a_folder_that_replaced_another_while_they_were_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, service = served.service.folder, served.service
    assert service.has_token(served.read)
    prove, moved = service.workspace.prove, []

    def replace_folder() -> None:
        prove()
        if not moved:
            moved.append(folder.rename(folder.with_name("old")))
            tokens.append(make_workspace(folder)[0])

    tokens: list[str] = []
    monkeypatch.setattr(service.workspace, "prove", replace_folder)
    # Right after the first proof that the folder is the one that was opened.
    assert not service.has_token(served.read)
    assert moved
    assert not service.has_token(tokens[0])


@pytest.mark.parametrize("put_another", [False, True])
def test_a_folder_that_was_moved_or_replaced_is_not_served(
    served: Served, put_another: bool
) -> None:
    served.teach_one("secret")
    folder = served.service.folder
    old = folder.rename(folder.with_name("old"))
    tokens = {"old": served.read, "wrong": "x"}
    if put_another:
        tokens["new"], _ = make_workspace(folder)
    for kind, token in tokens.items():
        answer = served.get("/v1/classes", token=token)
        assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE, kind
        assert "moved, removed or replaced" in answer.json()["detail"]
        assert str(folder) not in answer.text
        assert not served.service.has_token(token)
    ready = served.get("/readyz", token=None)
    assert ready.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "moved, removed or replaced" in ready.json()["detail"]
    assert str(folder) not in ready.text
    assert served.get("/healthz", token=None).status_code == HTTPStatus.OK
    # Nothing was changed, so the service goes on once the folder is back.
    if put_another:
        folder.rename(folder.with_name("other"))
    old.rename(folder)
    assert served.get("/readyz", token=None).status_code == HTTPStatus.OK
    assert served.get("/v1/classes", token="read").status_code == HTTPStatus.OK


def test_expired_tokens_of_another_folder_are_not_marked(served: Served) -> None:
    folder = served.service.folder
    folder.rename(folder.with_name("old"))
    make_workspace(folder)
    expired_token(folder)
    before = Layout(folder).tokens.read_bytes()
    served.get("/v1/classes")
    assert Layout(folder).tokens.read_bytes() == before


def test_tokens_are_in_no_response_and_no_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        bodies = [served.get(path).text for path in ("/v1/status", "/metrics", "/openapi.json")]
        bodies.append(served.get("/v1/classes", token="xyzzy").text)
    output = "".join([*bodies, *(f"{record.__dict__}" for record in caplog.records)])
    assert served.teach not in output
    assert "xyzzy" not in output


def test_the_token_of_a_session_may_teach_while_the_service_runs(
    folder: Path, settings: Settings
) -> None:
    make_workspace(folder)
    token = new_token("teach")
    for session, status in ((token, HTTPStatus.CREATED), (None, HTTPStatus.UNAUTHORIZED)):
        with Service(folder, settings, session) as service:
            client = TestClient(create_app(service), URL, raise_server_exceptions=False)
            served = Served(service, client, token, token)
            assert served.teach_one("mug").status_code == status
            # Not only ASCII.
            odd = client.get("/v1/status", headers={"Authorization": "Bearer é".encode()})
            assert odd.status_code == HTTPStatus.UNAUTHORIZED
            first = service.workspace.events(newest_first=False).items[0]
            assert first.actor == "session"
    assert token not in Layout(folder).tokens.read_text()
