"""Requests and responses of the client: authentication, retries, refusals, JSON."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import ssl
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPResponse, IncompleteRead
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from evergrow.foundation.errors import InvalidInputError, ServiceError
from evergrow.foundation.extras import __version__
from evergrow.service.client.connections import Connections, StaleConnectionError
from evergrow.service.client.requests import Body

Result = TypeVar("Result")
Record = TypeVar("Record")

# A name of this module, so that tests need not wait.
pause = time.sleep

# The service is starting or overloaded; the same request may succeed soon.
_RETRIED_STATUSES = (429, 502, 503, 504)
_FIRST_SECONDS = 0.1
_MAX_SECONDS = 10.0
# If the service asks for a longer pause than this, the error is raised instead.
_MAX_RETRY_AFTER = 60.0
# OpenSSL's codes of certificates whose issuer is unknown.
_UNKNOWN_ISSUER = (18, 19, 20)
# No JSON response is nearly as large; a model file is not read this way.
_MAX_RESPONSE_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 18
_MAX_DETAIL = 500
# What a header may carry after "Bearer ".
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class BusyError(Exception):
    """The service asks to retry: too many requests, or not ready."""

    def __init__(self, error: ServiceError, after: float | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after


class LocalError(Exception):
    """Something failed on the client's side; ``reason`` is raised unchanged."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class Retries:
    """Repeats a failed request a limited number of times; the URL is for error messages.

    Use it only for requests that may safely arrive twice.
    """

    most: int
    url: str

    def run(self, send: Callable[[], Result]) -> Result:
        """Send, and retry with backoff; raise a :class:`ServiceError` after the last attempt."""
        for attempt in range(self.most + 1):
            is_last = attempt == self.most
            try:
                return self._send_on_live_connection(send)
            except BusyError as busy:
                if is_last or (busy.after or 0) > _MAX_RETRY_AFTER:
                    raise busy.error from None
                pause(busy.after if busy.after is not None else _backoff_seconds(attempt))
            except LocalError as local:
                raise local.reason from None
            except ssl.SSLCertVerificationError as error:
                raise ServiceError(0, self._untrusted_message(error)) from error
            except (OSError, http.client.HTTPException) as error:
                if is_last:
                    raise ServiceError(0, self._unreachable_message(error, attempt)) from error
                pause(_backoff_seconds(attempt))
        raise AssertionError("the last attempt returns or raises")

    def _send_on_live_connection(self, send: Callable[[], Result]) -> Result:
        # Services close idle connections, which says nothing about a new one. There may be several
        # idle connections.
        while True:
            try:
                return send()
            except StaleConnectionError:
                continue

    def _unreachable_message(self, error: Exception, attempt: int) -> str:
        tried = "" if attempt == 0 else f" after {attempt + 1} attempts"
        reason = str(error) or type(error).__name__
        return f"{self.url} does not respond{tried}: {reason}"

    def _untrusted_message(self, error: ssl.SSLCertVerificationError) -> str:
        hint = ""
        if error.verify_code in _UNKNOWN_ISSUER:
            hint = "; pass ca_file=… to trust a self-signed certificate"
        reason = error.verify_message.rstrip(".")
        return f"the certificate of {self.url} is not trusted: {reason}{hint}"


def _backoff_seconds(attempt: int) -> float:
    # Random, so that clients that lost a service together do not all return at the same moment.
    longest = min(_MAX_SECONDS, _FIRST_SECONDS * 2.0**attempt)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311


def parse_retry_after(header: str | None) -> float | None:
    """Seconds from now that a Retry-After header asks for; None if it is missing or invalid.

    Examples
    --------
    >>> from evergrow.service.client.transport import parse_retry_after
    >>> dates = "2", "Mon, 01 Jan 2001 00:00:00 GMT", "soon"
    >>> [parse_retry_after(date) for date in dates]
    [2.0, 0.0, None]
    """
    if header is None:
        return None
    if header.strip().isascii() and header.strip().isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None


def resolve_token(token: str | None) -> str:
    """Return the token, or the one in the environment; raise an error if there is none."""
    found = os.environ.get("EVERGROW_TOKEN", "").strip() if token is None else token
    if not found:
        raise InvalidInputError("a token is needed: pass token=… or set EVERGROW_TOKEN")
    if not _TOKEN.fullmatch(found):
        # The token is a secret: the message does not repeat it.
        raise InvalidInputError(
            "token must be one token, without spaces or line breaks, as 'evergrow init' or "
            "'evergrow token add' printed it"
        )
    return found


class Transport:
    """Sends requests with a token, and retries them."""

    def __init__(self, connections: Connections, retries: Retries, token: str) -> None:
        self._connections = connections
        self._retries = retries
        self._headers = {
            "Authorization": f"Bearer {token}",
            "User-Agent": f"evergrow/{__version__}",
        }

    def send_json(
        self, method: str, path: str, body: Body | None = None, *, key: str | None = None
    ) -> Any:
        """Send a request and return the JSON value of the response."""
        return self.send(method, path, _read_json, body, key=key)

    def send(
        self,
        method: str,
        path: str,
        read: Callable[[HTTPResponse], Result],
        body: Body | None = None,
        *,
        key: str | None = None,
    ) -> Result:
        """Send a request; ``read`` gets the response, again after a lost connection."""
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = body.media_type
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None if body is None else body.content

        def read_or_raise(response: HTTPResponse) -> Result:
            if not 200 <= response.status < 300:
                _raise_refusal(response)
            return read(response)

        return self._retries.run(
            lambda: self._connections.request(method, path, content, headers, read_or_raise)
        )


def read_chunks(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the body in chunks; raise an ``IncompleteRead`` if it is cut off."""
    while chunk := response.read(_CHUNK_BYTES):
        yield chunk
    # The standard library does not report a short body when a number of bytes is requested.
    if response.length:
        raise IncompleteRead(b"", response.length)


def _read_body(response: HTTPResponse) -> bytes:
    content = bytearray()
    for chunk in read_chunks(response):
        content += chunk
        if len(content) > _MAX_RESPONSE_BYTES:
            raise ServiceError(response.status, "the response is too large")
    return bytes(content)


def _read_json(response: HTTPResponse) -> Any:
    try:
        return json.loads(_read_body(response))
    except (ValueError, RecursionError) as error:
        raise ServiceError(response.status, "the response is not JSON") from error


def _raise_refusal(response: HTTPResponse) -> None:
    error = ServiceError(response.status, _refusal_detail(response, _read_body(response)))
    if response.status in _RETRIED_STATUSES:
        raise BusyError(error, parse_retry_after(response.headers.get("Retry-After")))
    raise error


def _refusal_detail(response: HTTPResponse, content: bytes) -> str:
    if 300 <= response.status < 400:
        # A redirect could send the token to another host.
        return f"redirected to {response.headers.get('Location')!r}, which is not followed"
    try:
        problem = json.loads(content)
    except (ValueError, RecursionError):
        problem = None
    if isinstance(problem, Mapping):
        for name in ("detail", "title"):
            if isinstance(problem.get(name), str) and problem[name]:
                return str(problem[name])[:_MAX_DETAIL]
    return response.reason or "refused without a reason"


def parse_record(kind: type[Record], body: object) -> Record:
    """Convert a JSON value to a record of :mod:`evergrow.service.wire`.

    Unknown fields are ignored, so that the client works with services that send more. Fields that
    are missing have their default.

    Examples
    --------
    >>> from evergrow.service.client.transport import parse_record
    >>> from evergrow.workspace.records import Accuracy
    >>> parse_record(Accuracy, {"rate": 1, "low": 0.6, "high": 1.0, "n": 4, "later": True})
    Accuracy(rate=1.0, low=0.6, high=1.0, n=4)
    """
    return cast(Record, _parse(kind, body, kind.__name__))


def _parse(kind: Any, body: object, where: str) -> Any:
    if is_dataclass(kind):
        return _parse_fields(cast(type, kind), body, where)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        if body is None and types.NoneType in inner:
            return None
        return _parse(next(one for one in inner if one is not types.NoneType), body, where)
    if origin is tuple:
        if not isinstance(body, Sequence) or isinstance(body, str):
            raise _unexpected(where)
        return tuple(_parse(inner[0], one, where) for one in body)
    if origin is Literal:
        # A service may send further values.
        kind = type(inner[0])
    if kind is float and isinstance(body, int) and not isinstance(body, bool):
        return float(body)
    # A bool is an int in Python, but not in JSON.
    if not isinstance(body, kind) or (isinstance(body, bool) and kind is not bool):
        raise _unexpected(where)
    return body


def _parse_fields(kind: type, body: object, where: str) -> Any:
    if not isinstance(body, Mapping):
        raise _unexpected(where)
    hints = _field_types(kind)
    found = {}
    for field in fields(cast(Any, kind)):
        # Some names in JSON are keywords in Python.
        name = field.metadata.get("alias", field.name)
        if name not in body:
            if field.default is not MISSING:
                continue
            raise _unexpected(f"{where}.{name}")
        found[field.name] = _parse(hints[field.name], body[name], f"{where}.{name}")
    return kind(**found)


@cache
def _field_types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _unexpected(where: str) -> ServiceError:
    return ServiceError(0, f"the response is not from an Evergrow service: {where} is not valid")
