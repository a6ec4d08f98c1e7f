"""Refusals become 4xx responses; anything else is a bug, which is logged and answered with 500."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest

from evergrow.foundation.errors import InvalidInputError, WorkspaceError
from evergrow.service.decoding.protocol import DecoderError, RefusedImageError
from evergrow.service.http.images import ImagePipeline
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
from tests.service.conftest import A, Served

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
