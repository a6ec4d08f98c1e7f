"""Teaching: an image or an embedding, and what it is."""

from __future__ import annotations

import asyncio
import hashlib
from http import HTTPStatus
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.asking import (
    Key,
    NoQuery,
    content_type_of,
    embeddings_bytes,
    json_body,
    service_of,
    signed,
    wrong_type,
)
from evergrow.service.http.bodies import EmbeddingLesson, TaughtBody, TaughtClass
from evergrow.service.http.forms import image_lesson
from evergrow.service.http.listings import JSON_TYPE, json_response
from evergrow.service.http.multipart import FORM_TYPE
from evergrow.service.http.openapi import form, refusals, takes
from evergrow.service.http.state import Service
from evergrow.workspace.names import NAME_PATTERN, normalise_name
from evergrow.workspace.records import Change, NewExample, TeachResult

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["teaching"])

_NAME = {"type": "string", "pattern": NAME_PATTERN}
_FORM = form(
    {"image": {"type": "string", "format": "binary"}, "label": _NAME, "fine": _NAME},
    ["image", "label"],
)
_KNOWN: dict[int | str, Any] = {
    200: {
        "description": "The class had this picture, which is not learnt twice; a finer name that it"
        " lacked was taken.",
        "model": TaughtBody,
    }
}


@router.post(
    "/examples",
    status_code=201,
    response_model=TaughtBody,
    responses={**refusals(409, 507, body=True), **_KNOWN},
    openapi_extra=takes(EmbeddingLesson, **_FORM),
)
async def teach(request: Request, _: NoQuery, key: Key = None) -> Response:
    """Teach one example; it is on disk when this answers."""
    service = service_of(request)
    # Before anything is read: who cannot be served should not have to send all of it.
    service.writer.check_open()
    kind = content_type_of(request)
    if kind == JSON_TYPE:
        taught = await _by_embedding(request, service, key)
    elif kind == FORM_TYPE and service.images is not None:
        taught = await _by_image(request, service, key)
    else:
        allowed = (JSON_TYPE,) if service.images is None else (FORM_TYPE, JSON_TYPE)
        raise wrong_type(request, *allowed)
    if not (taught.duplicate or taught.replayed):
        service.metrics.taught.inc()
    status = HTTPStatus.OK if taught.duplicate else HTTPStatus.CREATED
    headers = {"Location": f"/v1/examples/{taught.example.id}"}
    return json_response(_body(taught), status, headers)


async def _by_embedding(request: Request, service: Service, key: str | None) -> TeachResult:
    longest = embeddings_bytes(service.workspace.n_features)
    sent = await json_body(request, EmbeddingLesson, longest)
    embedding = np.asarray(sent.embedding, dtype=np.float32)
    label, fine = _names(sent.label, sent.fine)
    who = signed(request, key, label, fine, content=embedding.tobytes())
    lesson = NewExample(embedding, label, fine, request=who)
    return await asyncio.wrap_future(service.writer.teach(lesson))


async def _by_image(request: Request, service: Service, key: str | None) -> TeachResult:
    content, sent_label, sent_fine = await image_lesson(request)
    label, fine = _names(sent_label, sent_fine)
    who = signed(request, key, label, fine, hashlib.sha256(content).hexdigest())
    known = await _known(service, who)
    if known is not None:
        return known
    images: Any = service.images
    embedding, picture = await images.lesson(request, content)
    lesson = NewExample(embedding, label, fine, picture=picture, request=who)
    return await asyncio.wrap_future(service.writer.teach(lesson))


async def _known(service: Service, who: Any) -> TeachResult | None:
    """The answer that this request got before: its image need not be looked at again."""
    if who.key is None:
        return None
    workspace = service.workspace
    found: TeachResult | Change | None = await service.read(lambda: workspace.stored_answer(who))
    return found if isinstance(found, TeachResult) else None


def _names(label: str, fine: str | None) -> tuple[str, str | None]:
    return normalise_name(label), None if fine is None else normalise_name(fine, "fine")


def _body(taught: TeachResult) -> TaughtBody:
    known = TaughtClass(
        name=taught.example.label, n_examples=taught.n_examples, new=taught.new_class
    )
    return TaughtBody.model_validate(
        {
            "example": taught.example,
            "class": known,
            "event": taught.event,
            "duplicate": taught.duplicate,
            "known_fine": taught.known_fine,
        }
    )
