"""One request after another: the token, answers and refusals, and sending again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPResponse, IncompleteRead
from typing import Any, TypeVar

from evergrow.foundation.errors import ServiceError
from evergrow.foundation.version import __version__
from evergrow.service.client.connecting import Connections
from evergrow.service.client.requesting import Body
from evergrow.service.client.retrying import BusyError, Retries, seconds_of

__all__ = ["Sender", "checked_token", "chunks_of"]

Result = TypeVar("Result")

# The service works or has too much to do right now; the same request may pass in a moment.
_COME_AGAIN = (429, 502, 503, 504)
# No listing or answer is nearly as large; a model is not read this way.
_MOST_ANSWER_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 18
_MOST_DETAIL = 500
# What a header may carry after "Bearer ".
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def checked_token(token: str | None) -> str:
    """The token, or that of the environment; a ``ValueError`` if there is none."""
    found = os.environ.get("EVERGROW_TOKEN", "").strip() if token is None else token
    if not found:
        raise ValueError("a token is needed: give token=… or set EVERGROW_TOKEN")
    if not _TOKEN.fullmatch(found):
        # It is a secret: the message does not repeat it.
        raise ValueError("token must be what 'evergrow init' or 'evergrow token add' printed")
    return found


class Sender:
    """Sends requests with a token, and again where that may help.

    Parameters
    ----------
    connections : Connections
        To the service.
    retries : Retries
        How often to send again.
    token : str
        Goes with every request.
    """

    def __init__(self, connections: Connections, retries: Retries, token: str) -> None:
        self._connections = connections
        self._retries = retries
        self._headers = {
            "Authorization": f"Bearer {token}",
            "User-Agent": f"evergrow/{__version__}",
        }

    def json(
        self, method: str, path: str, body: Body | None = None, *, key: str | None = None
    ) -> Any:
        """What a request is answered with, as a JSON value."""
        return self.read(method, path, _json_of, body, key=key)

    def read(
        self,
        method: str,
        path: str,
        take: Callable[[HTTPResponse], Result],
        body: Body | None = None,
        *,
        key: str | None = None,
    ) -> Result:
        """What ``take`` makes of the answer; it may be called again after a lost connection."""
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = body.media_type
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None if body is None else body.content

        def answered(answer: HTTPResponse) -> Result:
            return take(answer) if 200 <= answer.status < 300 else _refused(answer)

        return self._retries.run(
            lambda: self._connections.ask(method, path, content, headers, answered)
        )


def chunks_of(answer: HTTPResponse) -> Iterator[bytes]:
    """The body piece by piece; an ``IncompleteRead`` if it broke off."""
    while chunk := answer.read(_CHUNK_BYTES):
        yield chunk
    # Asked for some bytes the standard library does not complain that fewer came than promised.
    if answer.length:
        raise IncompleteRead(b"", answer.length)


def _content_of(answer: HTTPResponse) -> bytes:
    content = bytearray()
    for chunk in chunks_of(answer):
        content += chunk
        if len(content) > _MOST_ANSWER_BYTES:
            raise ServiceError(answer.status, "the answer is too large to be one of a service")
    return bytes(content)


def _json_of(answer: HTTPResponse) -> Any:
    try:
        return json.loads(_content_of(answer))
    except (ValueError, RecursionError) as error:
        raise ServiceError(answer.status, "the answer is no JSON of an Evergrow service") from error


def _refused(answer: HTTPResponse) -> Any:
    error = ServiceError(answer.status, _detail(answer, _content_of(answer)))
    if answer.status in _COME_AGAIN:
        raise BusyError(error, seconds_of(answer.headers.get("Retry-After")))
    raise error


def _detail(answer: HTTPResponse, content: bytes) -> str:
    if 300 <= answer.status < 400:
        # Whoever answers could else send the token anywhere.
        return f"redirected to {answer.headers.get('Location')!r}, which is not followed"
    try:
        problem = json.loads(content)
    except (ValueError, RecursionError):
        problem = None
    if isinstance(problem, Mapping):
        for name in ("detail", "title"):
            if isinstance(problem.get(name), str) and problem[name]:
                return str(problem[name])[:_MOST_DETAIL]
    return answer.reason or "refused without a reason"
