"""The route that predicts classes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.bodies import PredictBody, RequestBody
from evergrow.service.http.fairness import Actor
from evergrow.service.http.openapi import form_schema, refusals, request_body
from evergrow.service.http.requests import (
    FORM_TYPE,
    content_type_of,
    max_embeddings_bytes,
    read_image_form,
    read_json,
    service_of,
    wrong_content_type,
)
from evergrow.service.http.responses import JSON_TYPE, invalid_request, json_response
from evergrow.service.http.service import Service
from evergrow.service.wire import Candidate, Prediction, Predictions
from evergrow.workspace.records import Answer

router = APIRouter(prefix="/v1", tags=["predictions"])

_IMAGE = {"type": "string", "format": "binary"}
_IMAGES = {"type": "array", "items": _IMAGE, "minItems": 1}
_FORM = form_schema({"image": _IMAGES}, ["image"])


class _PredictQuery(RequestBody):
    model_config = ConfigDict(extra="forbid", strict=False)

    top: int = Field(5, ge=1, le=100, description="Number of classes per image.")
    model: Literal["rls", "forest"] = Field("rls", description="Least squares or the forest.")


@router.post(
    "/predictions",
    response_model=Predictions,
    responses=refusals(409, body=True),
    openapi_extra=request_body(PredictBody, **_FORM),
)
async def predict(request: Request, query: Annotated[_PredictQuery, Query()]) -> Response:
    """Predict the class of each image or embedding, or that it is unknown."""
    service = service_of(request)
    actor: Actor = request.scope["actor"]
    predict_rows = _Predict(service, actor, query.model, query.top)
    kind = content_type_of(request)
    if kind == JSON_TYPE:
        max_bytes = max_embeddings_bytes(service.workspace.n_features, service.settings.max_images)
        sent = await read_json(request, PredictBody, max_bytes)
        rows = _to_matrix(sent, service)
        (found,) = await service.read(actor, lambda: predict_rows([rows]))
    elif kind == FORM_TYPE and service.images is not None:
        await service.images.check_open(actor)
        images = await read_image_form(request)
        found = await service.images.embed(request, images, predict_rows)
    else:
        allowed = (JSON_TYPE,) if service.images is None else (FORM_TYPE, JSON_TYPE)
        raise wrong_content_type(request, *allowed)
    return json_response(found)


def _to_matrix(sent: PredictBody, service: Service) -> npt.NDArray[np.float32]:
    lengths = {len(row) for row in sent.embeddings}
    if len(lengths) > 1:
        raise invalid_request(f"all embeddings must have one length, got {sorted(lengths)}")
    if len(sent.embeddings) > service.settings.max_images:
        raise invalid_request(
            f"at most {service.settings.max_images} embeddings per request are allowed, "
            f"got {len(sent.embeddings)}"
        )
    return np.asarray(sent.embeddings, dtype=np.float32)


@dataclass(frozen=True)
class _Predict:
    """Predicts embeddings for a token; equal for requests that can be answered together."""

    service: Service
    actor: Actor
    model: Literal["rls", "forest"]
    top: int

    def __call__(self, requests: Sequence[npt.NDArray[np.float32]]) -> list[Predictions]:
        """Predict the rows of several requests with one snapshot, as of the same moment."""
        snapshot = self.service.snapshot_for(self.actor)
        rows = requests[0] if len(requests) == 1 else np.concatenate(requests)
        answers = snapshot.predict(rows, model=self.model, top=self.top)
        self.service.metrics.predicted.inc(len(answers))
        found = iter(map(_to_prediction, answers))
        return [
            Predictions(tuple(itertools.islice(found, len(rows))), snapshot.event)
            for rows in requests
        ]


def _to_prediction(answer: Answer) -> Prediction:
    return Prediction(
        label=answer.label,
        probability=answer.probability,
        known=answer.known,
        novelty=answer.novelty,
        fine=answer.fine,
        fine_probability=answer.fine_probability,
        top=tuple(Candidate(*pair) for pair in answer.top),
        fine_top=tuple(Candidate(*pair) for pair in answer.fine_top),
    )
