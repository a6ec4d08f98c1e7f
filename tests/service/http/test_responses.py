"""Refusals become 4xx responses, bugs 500; JSON that keeps a service busy is refused."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.service.decoding.protocol import DecoderError, RefusedImageError
from evergrow.service.http.bodies import LabelBody, PredictBody
from evergrow.service.http.images import ImagePipeline
from evergrow.service.http.requests import MAX_NAMES_BYTES, max_embeddings_bytes, parse_json
from evergrow.service.http.responses import ProblemError, refusal_response
from evergrow.workspace import Workspace
from evergrow.workspace.records import (
    ConflictError,
    KeyReusedError,
    NoSuchClassError,
    NoSuchExampleError,
    WorkspaceFullError,
)
from tests.harness.pictures import picture
from tests.service.conftest import N_FEATURES, A, Served

BUGS = [ValueError, TypeError, KeyError, RuntimeError, AssertionError]
SECRET = "password=1234 in /srv/evergrow/things"


def failing(error: type[Exception]) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error(SECRET)

    return fail


def assert_internal_error(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert answer.headers["content-type"] == "application/problem+json"
    assert SECRET not in answer.text
    assert "Error" not in answer.json()["detail"]
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert SECRET in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("error", BUGS)
@pytest.mark.parametrize(
    ("method", "name", "ask"),
    [
        ("reading", "classes", lambda served: served.get("/v1/classes")),
        ("changing", "rename", lambda served: served.post("/v1/rename", RENAME)),
        ("teaching", "teach", lambda served: served.teach_one("mug", A)),
    ],
)
def test_a_bug_is_an_internal_error_without_internals(
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[Exception],
    method: str,
    name: str,
    ask: Callable[[Served], Any],
) -> None:
    monkeypatch.setattr(Workspace, name, failing(error))
    assert_internal_error(ask(served), caplog)


RENAME = {"label": "mug", "to": "cup"}


def test_a_bug_while_predicting_is_an_internal_error(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served.teach_one("mug", A)
    monkeypatch.setattr(type(served.service.workspace.snapshot), "predict", failing(ValueError))
    assert_internal_error(served.post("/v1/predictions", {"embeddings": [A]}), caplog)


def test_a_bug_in_the_image_pipeline_is_an_internal_error(
    served_images: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ImagePipeline, "embed_example", failing(ValueError))
    answer = served_images.ask(
        "POST", "/v1/examples", files={"image": picture()}, data={"label": "mug"}
    )
    assert_internal_error(answer, caplog)


def test_the_service_works_after_a_bug(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "teach", failing(ValueError))
        assert served.teach_one("mug", A).status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert served.teach_one("mug", A).status_code == HTTPStatus.CREATED


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ProblemError(418, "no"), 418),
        (InvalidInputError("no"), 422),
        (WorkspaceError("no"), 422),
        (NoSuchClassError("no"), 404),
        (NoSuchExampleError("no"), 404),
        (ConflictError("no"), 409),
        (KeyReusedError("no"), 409),
        (WorkspaceFullError("no"), 507),
        (DecoderError("no"), 503),
        (RefusedImageError("format", "no"), 415),
        (RefusedImageError("size", "no"), 413),
        (RefusedImageError("damaged", "no"), 422),
    ],
)
def test_each_refusal_has_its_status(error: Exception, status: int) -> None:
    response = refusal_response(error)
    assert response is not None
    assert response.status_code == status
    assert b"no" in response.body


@pytest.mark.parametrize("error", BUGS)
def test_a_bug_is_not_a_refusal(error: type[Exception]) -> None:
    assert refusal_response(error(SECRET)) is None


# As long as a body of embeddings may be with the usual network.
LENGTH = max_embeddings_bytes(1280, 32)


def post(served: Served, path: str, content: bytes) -> Any:
    headers = {"Content-Type": "application/json"}
    return served.ask("POST", path, content=content, headers=headers)


def members(length: int) -> bytes:
    return b"{" + b",".join(b'"k%d":1' % n for n in range(length // 10)) + b"}"


@pytest.mark.parametrize(
    "body",
    [
        members(LENGTH),
        b'{"embeddings":[' + b",".join([b"[]"] * (LENGTH // 3)) + b"]}",
        b"[" * LENGTH,
        b'{"a":' * (LENGTH // 5),
    ],
    ids=["members", "lists", "depth of lists", "depth of objects"],
)
def test_excessive_structure_is_refused_before_parsing(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evergrow.service.http.requests.from_json", None)
    with pytest.raises(ProblemError, match="too many lists"):
        parse_json(body, PredictBody)


@pytest.mark.parametrize("wrong", ["1e7", '"a"', "null", "true", "[]"])
def test_only_the_first_wrong_number_is_reported(wrong: str) -> None:
    body = f'{{"embeddings":[[{",".join([wrong] * 1000)}]]}}'
    with pytest.raises(ProblemError) as refused:
        parse_json(body.encode(), PredictBody)
    assert refused.value.detail.startswith("embeddings.0.0: ")
    assert ";" not in refused.value.detail


def test_only_a_few_unknown_members_are_listed() -> None:
    with pytest.raises(ProblemError) as refused:
        parse_json(members(10_000), LabelBody)
    assert refused.value.detail == "k0: unknown; k1: unknown; k2: unknown"


@pytest.mark.parametrize("length", [4301, 100_000])
def test_numbers_of_thousands_of_digits_are_refused(length: int) -> None:
    with pytest.raises(ProblemError):
        parse_json(b'{"embeddings":[[' + b"9" * length + b"]]}", PredictBody)


@pytest.mark.parametrize("path", ["/v1/forget", "/v1/rename", "/v1/undo", "/v1/split"])
def test_bodies_of_changes_are_short(served: Served, path: str) -> None:
    answer = post(served, path, b'{"label":"' + b"a" * MAX_NAMES_BYTES + b'"}')
    assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert str(MAX_NAMES_BYTES) in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/predictions", "/v1/examples"])
def test_bodies_of_embeddings_are_limited_by_their_length(served: Served, path: str) -> None:
    served.teach_one("mug", A)
    answer = post(served, path, b'{"embeddings":[[' + b"1," * 40_000 + b"1]]}")
    assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def test_as_many_embeddings_as_allowed_fit_with_the_longest_numbers(served: Served) -> None:
    served.teach_one("mug", A)
    row = [-1.2345678901234567e-300] * N_FEATURES
    body = json.dumps({"embeddings": [row] * 32}, indent=2).encode()
    assert len(body) < max_embeddings_bytes(N_FEATURES, 32) - MAX_NAMES_BYTES
    assert post(served, "/v1/predictions", body).status_code == HTTPStatus.OK
