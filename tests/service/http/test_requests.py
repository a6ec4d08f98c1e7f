"""JSON that would keep the service busy is refused at once."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest

from evergrow.service.http.bodies import LabelBody, PredictBody
from evergrow.service.http.requests import MAX_NAMES_BYTES, max_embeddings_bytes, parse_json
from evergrow.service.http.responses import ProblemError
from tests.service.conftest import N_FEATURES, A, Served

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
