"""Routes that Label Studio calls: it takes the service for a machine-learning back end.

Label Studio gives webhooks one second, and sends none of them again. What it announces is applied
by a thread of the back end, so a client that stops waiting loses nothing.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from evergrow.service.http.bodies import RequestBody
from evergrow.service.http.middleware import LABEL_STUDIO_PREFIX
from evergrow.service.http.openapi import refusals
from evergrow.service.http.requests import NoQuery, read_foreign_json, service_of
from evergrow.service.http.responses import JSON_TYPE, json_response, unavailable
from evergrow.service.label_studio.api import LabelStudioError
from evergrow.service.label_studio.learner import LearnerBusyError
from evergrow.service.label_studio.messages import read_predict, read_webhook
from evergrow.service.label_studio.reconciliation import SyncResult
from evergrow.service.wire import (
    LabelStudioHealth,
    LabelStudioPredictions,
    LabelStudioSetup,
    LabelStudioSync,
    LabelStudioVersions,
    LabelStudioWebhook,
)

router = APIRouter(prefix=LABEL_STUDIO_PREFIX, tags=["label-studio"])

# Label Studio waits for one second, and for three when it sets a project up.
_WEBHOOK_SECONDS = 0.8
_SETUP_SECONDS = 2.0
_SYNC_SECONDS = 600.0
_REFUSALS = refusals(404, body=True)
_ANY_OBJECT: dict[str, Any] = {
    "requestBody": {"required": True, "content": {JSON_TYPE: {"schema": {"type": "object"}}}}
}


class _AnyQuery(RequestBody):
    """Parameters of the query, which are ignored: those of Label Studio vary with its version."""

    model_config = ConfigDict(extra="ignore")


AnyQuery = Annotated[_AnyQuery, Query()]


def _watch(done: Future[SyncResult]) -> asyncio.Future[SyncResult]:
    """Retrieve the error of a synchronisation that no request waits for; it was logged before."""
    found = asyncio.wrap_future(done)
    found.add_done_callback(lambda one: one.cancelled() or one.exception())
    return found


@router.get("/health", response_model=LabelStudioHealth, responses=refusals(404))
async def label_studio_health(request: Request, _: AnyQuery) -> Response:
    """Report that the back end is running."""
    version = service_of(request).label_studio.model_version
    return json_response(LabelStudioHealth("UP", "Evergrow", version))


@router.post(
    "/setup", response_model=LabelStudioSetup, responses=_REFUSALS, openapi_extra=_ANY_OBJECT
)
async def label_studio_setup(request: Request, _: AnyQuery) -> Response:
    """Connect a project; its configuration needs one image and one choice of classes.

    Label Studio asks before every prediction. What webhooks announced is learnt first, so that a
    correction is in the next prediction.
    """
    back_end = service_of(request).label_studio
    await read_foreign_json(request, back_end.set_up)
    announced = {_watch(one) for one in back_end.announced}
    if announced:
        await asyncio.wait(announced, timeout=_SETUP_SECONDS)
    return json_response(LabelStudioSetup(back_end.model_version))


@router.post(
    "/predict",
    response_model=LabelStudioPredictions,
    responses=_REFUSALS,
    openapi_extra=_ANY_OBJECT,
)
async def label_studio_predict(request: Request, _: AnyQuery) -> Response:
    """Predict one class per task; empty if the image is unknown or not available."""
    service = service_of(request)
    back_end = service.label_studio
    sent = await read_foreign_json(request, read_predict)
    found = await asyncio.wrap_future(back_end.predict(sent))
    service.metrics.predicted.inc(len(found))
    return json_response(LabelStudioPredictions(tuple(found), back_end.model_version))


@router.get("/versions", response_model=LabelStudioVersions, responses=refusals(404))
async def label_studio_versions(request: Request, _: AnyQuery) -> Response:
    """List the versions of the model; there is only the current one."""
    version = service_of(request).label_studio.model_version
    return json_response(LabelStudioVersions((version,)))


@router.post(
    "/webhook",
    response_model=LabelStudioWebhook,
    responses={
        **_REFUSALS,
        202: {"description": "It will be read soon.", "model": LabelStudioWebhook},
    },
    openapi_extra=_ANY_OBJECT,
)
async def label_studio_webhook(request: Request, _: AnyQuery) -> Response:
    """Learn the tasks that a webhook names; the response is sent when they are learnt."""
    back_end = service_of(request).label_studio
    hint = await read_foreign_json(request, read_webhook)
    if hint is None:
        return json_response(LabelStudioWebhook("ignored"))
    done = _watch(back_end.announce(hint))
    await asyncio.wait({done}, timeout=_WEBHOOK_SECONDS)
    if not done.done() or done.cancelled() or done.exception() is not None:
        return json_response(LabelStudioWebhook("queued"), HTTPStatus.ACCEPTED)
    return json_response(LabelStudioWebhook("done"))


@router.post("/sync", response_model=LabelStudioSync, responses=refusals(404))
async def label_studio_sync(request: Request, _: NoQuery) -> Response:
    """Read all tasks of all connected projects, and learn what is new or has changed."""
    done = _watch(service_of(request).label_studio.synchronise())
    try:
        async with asyncio.timeout(_SYNC_SECONDS):
            report = await asyncio.shield(done)
    except (LabelStudioError, LearnerBusyError) as error:
        raise unavailable(str(error)) from error
    except TimeoutError:
        raise unavailable("it takes longer than this request may; it continues") from None
    return json_response(LabelStudioSync(**{**vars(report), "problems": tuple(report.problems)}))
