"""Asking what something is."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.asking import (
    content_type_of,
    embeddings_bytes,
    json_body,
    service_of,
    wrong_type,
)
from evergrow.service.http.bodies import Asked, Candidate, Embeddings, Prediction, PredictionsBody
from evergrow.service.http.forms import several_images
from evergrow.service.http.listings import JSON_TYPE, json_response
from evergrow.service.http.multipart import FORM_TYPE
from evergrow.service.http.openapi import form, refusals, takes
from evergrow.service.http.state import Service
from evergrow.workspace.records import Answer

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["asking"])

_IMAGE = {"type": "string", "format": "binary"}
_IMAGES = {"type": "array", "items": _IMAGE, "minItems": 1}
_FORM = form({"image": _IMAGES}, ["image"])


class _How(Asked):
    model_config = ConfigDict(extra="forbid", strict=False)

    top: int = Field(5, ge=1, le=100, description="How many classes to list for each.")
    model: Literal["rls", "forest"] = Field("rls", description="What answers.")


@router.post(
    "/predictions",
    response_model=PredictionsBody,
    responses=refusals(409, body=True),
    openapi_extra=takes(Embeddings, **_FORM),
)
async def predict(request: Request, how: Annotated[_How, Query()]) -> Response:
    """Say of each image or embedding what it is, how surely, and whether it is anything known."""
    service = service_of(request)
    kind = content_type_of(request)
    if kind == JSON_TYPE:
        longest = embeddings_bytes(service.workspace.n_features, service.settings.max_images)
        sent = await json_body(request, Embeddings, longest)
        rows = _matrix(sent, service)
        body = await service.read(lambda: _answered(service, rows, how))
    elif kind == FORM_TYPE and service.images is not None:
        images = await several_images(request)
        body = await service.images.vectors(
            request, images, lambda rows: _answered(service, rows, how)
        )
    else:
        allowed = (JSON_TYPE,) if service.images is None else (FORM_TYPE, JSON_TYPE)
        raise wrong_type(request, *allowed)
    return json_response(body)


def _matrix(sent: Embeddings, service: Service) -> npt.NDArray[np.float32]:
    lengths = {len(row) for row in sent.embeddings}
    if len(lengths) > 1:
        raise ValueError(f"all embeddings must have one length, got {sorted(lengths)}")
    if len(sent.embeddings) > service.settings.max_images:
        raise ValueError(
            f"at most {service.settings.max_images} embeddings at once, got {len(sent.embeddings)}"
        )
    return np.asarray(sent.embeddings, dtype=np.float32)


def _answered(service: Service, rows: npt.NDArray[np.float32], how: _How) -> PredictionsBody:
    """Ask one snapshot: all answers of a request are of the same moment."""
    snapshot = service.workspace.snapshot
    answers = snapshot.predict(rows, model=how.model, top=how.top)
    service.metrics.predicted.inc(len(answers))
    return PredictionsBody(
        predictions=[_prediction(answer) for answer in answers], event=snapshot.event
    )


def _prediction(answer: Answer) -> Prediction:
    return Prediction.model_construct(
        label=answer.label,
        probability=answer.probability,
        known=answer.known,
        novelty=answer.novelty,
        fine=answer.fine,
        fine_probability=answer.fine_probability,
        top=_candidates(answer.top),
        fine_top=_candidates(answer.fine_top),
    )


def _candidates(pairs: tuple[tuple[str, float], ...]) -> list[Candidate]:
    return [Candidate.model_construct(name=name, probability=share) for name, share in pairs]
