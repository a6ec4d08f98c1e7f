"""Waiting for work of other threads, as long as somebody waits for the answer."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from evergrow.service.http.problems import ProblemError

__all__ = ["while_connected"]

Result = TypeVar("Result")


async def while_connected(request: Request, work: Future[Result], seconds: float) -> Result:
    """The result of work for a request whose body was read; cancelled if nobody wants it any more.

    Parameters
    ----------
    request : Request
        Who waits. Work that its client no longer waits for would hold up that of others.
    work : Future
        Work of another thread.
    seconds : float
        How long it may take.

    Raises
    ------
    ClientDisconnect
        If the client left.
    ProblemError
        If it took too long.
    """
    result = asyncio.wrap_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        either: set[asyncio.Future[Any]] = {result, gone}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        if gone.done():
            raise ClientDisconnect
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"the images did not get their turn within {seconds:g} seconds",
        )
    finally:
        gone.cancel()
        result.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
