"""Middleware: headers, limits on bodies, access by bearer tokens, and rate limits.

All of it runs before a route, and tokens are checked before a body is read. The scope that a
request needs depends on its method, so it also holds for routes added later: reading needs the
scope "read", anything else "teach", except for the paths listed below.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evergrow.service.http.responses import ProblemError, problem, unavailable
from evergrow.service.http.settings import Settings

if TYPE_CHECKING:
    from evergrow.service.http.service import Service

AccessScope = Literal["read", "teach"]
SCOPES: tuple[AccessScope, ...] = ("read", "teach")

STATIC_PREFIX = "/static/"
# The files of the page contain nothing of the workspace; health checks have no token.
PUBLIC_PATHS = frozenset({"/", "/healthz", "/readyz", "/favicon.ico"})
# Has a body but changes nothing.
_ONLY_READING = frozenset({("POST", "/v1/predictions")})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_SCHEME = "bearer"
# No token is longer, so longer ones are not hashed.
_MAX_TOKEN_LENGTH = 512
_CHALLENGE = 'Bearer realm="evergrow"'

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "media-src blob:",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in (
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("permissions-policy", "camera=(self), microphone=(), geolocation=()"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        # What tokens protect must not stay in caches.
        ("cache-control", "no-store"),
    )
)
# A client that is still sending does not read the response yet. Up to this much of its data is
# discarded, for up to this long, before the connection is closed: closing it at once would lose
# the response.
_LINGER_BYTES = 1_000_000_000
_LINGER_SECONDS = 10.0


class _HttpMiddleware:
    """Middleware for requests; other messages of the server pass through."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        serve = self._serve if scope["type"] == "http" else self._app
        await serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError


class SecurityHeaders(_HttpMiddleware):
    """Middleware that adds headers which restrict browsers; headers of the response win."""

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message["headers"])
                names = {name for name, _ in given}
                given.extend(one for one in SECURITY_HEADERS if one[0] not in names)
                message = {**message, "headers": given}
            await send(message)

        await self._app(scope, receive, send_with_headers)


class HeadRequests(_HttpMiddleware):
    """Middleware that answers HEAD like GET, without the body."""

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        scope["method"] = "GET"
        await self._app(scope, receive, send_without_body)


class BodyLimits(_HttpMiddleware):
    """Middleware that refuses bodies that are too long or too slow, or too many at a time."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app)
        self.settings = settings
        self._max_bytes_at_once = settings.n_bytes_at_once
        self._bytes_at_once = 0

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(self, scope, receive, send)
        try:
            refused = body.refusal_by_header()
            app = self._app if refused is None else refused
            await app(scope, body.receive, body.send)
        finally:
            self._bytes_at_once -= body.n_bytes

    def take(self, n_bytes: int) -> None:
        """Count bytes held in memory; raise a ``ProblemError`` if they are too many."""
        self._bytes_at_once += n_bytes
        if self._bytes_at_once > self._max_bytes_at_once:
            raise unavailable("too many large requests at a time; retry later")


class _Body:
    """The body of one request while it arrives."""

    def __init__(self, limits: BodyLimits, scope: Scope, receive: Receive, send: Send) -> None:
        self._limits = limits
        self._receive = receive
        self._send = send
        headers = dict(scope["headers"])
        self._stated: bytes | None = headers.get(b"content-length")
        self._expected = (self._stated or b"0") != b"0" or b"transfer-encoding" in headers
        self._whole = not self._expected
        # A client that expects "100 Continue" has not sent anything yet.
        self._may_linger = b"expect" not in headers
        self._deadline: float | None = None
        self.n_bytes = 0

    def refusal_by_header(self) -> ASGIApp | None:
        """Return the refusal of a body whose Content-Length is not acceptable, or None."""
        stated, most = self._stated, self._limits.settings.max_request_bytes
        if stated is None:
            return None
        if not stated.isdigit() or len(stated) > 18:
            return problem(HTTPStatus.BAD_REQUEST, "the Content-Length is not a number")
        if int(stated) > most:
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _too_long(most))
        return None

    async def receive(self) -> Message:
        """Receive the next part, within the limits on size and time."""
        if self._whole:
            return await self._receive()
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._limits.settings.read_seconds
        try:
            async with asyncio.timeout(max(0.0, self._deadline - now)):
                message = await self._receive()
        except TimeoutError:
            seconds = self._limits.settings.read_seconds
            self._may_linger = False
            raise ProblemError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the request was not complete within {seconds:g} seconds",
                {"Connection": "close"},
            ) from None
        self._count(message)
        return message

    def _count(self, message: Message) -> None:
        if message["type"] != "http.request":
            self._whole = True
            return
        self._whole = not message.get("more_body", False)
        n_bytes = len(message.get("body", b""))
        most = self._limits.settings.max_request_bytes
        if self.n_bytes + n_bytes > most:
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _too_long(most))
        self.n_bytes += n_bytes
        self._limits.take(n_bytes)

    async def send(self, message: Message) -> None:
        """Send a response; delay its end while the client is still sending."""
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if not is_last or self._whole or not self._may_linger:
            await self._send(message)
            return
        await self._send({**message, "more_body": True})
        await self._linger()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _linger(self) -> None:
        n_bytes = 0
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                while n_bytes < _LINGER_BYTES:
                    message = await self._receive()
                    n_bytes += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return


def _too_long(most: int) -> str:
    return f"the request is longer than the limit of {most} bytes"


@dataclass(frozen=True)
class Actor:
    """The owner of a valid token."""

    name: str
    scopes: frozenset[str]


def needed_scope(method: str, path: str) -> AccessScope | None:
    """Return the scope that a request needs; None for public paths.

    >>> needed_scope("GET", "/healthz"), needed_scope("POST", "/v1/rename")
    (None, 'teach')
    """
    if path in PUBLIC_PATHS or path.startswith(STATIC_PREFIX):
        return None
    if method in _SAFE_METHODS or (method, path) in _ONLY_READING:
        return "read"
    return "teach"


class Access(_HttpMiddleware):
    """Middleware that requires a token with the needed scope, by ``token_check`` of the service."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        super().__init__(app)
        self._service = service

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        needed = needed_scope(scope["method"], scope["path"])
        refused = None if needed is None else self._refusal(scope, needed)
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope, needed: AccessScope) -> Response | None:
        """Why a request is refused; None if it is not, with its actor in the scope."""
        check = self._service.token_check
        if check is None:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "the workspace is not open yet")
        token = _token_of(scope)
        found = check(token) if token else "a token is required: send 'Authorization: Bearer TOKEN'"
        if isinstance(found, str):
            challenge = f'{_CHALLENGE}, error="invalid_token"' if token else _CHALLENGE
            return problem(HTTPStatus.UNAUTHORIZED, found, {"WWW-Authenticate": challenge})
        if needed not in found.scopes:
            return problem(
                HTTPStatus.FORBIDDEN,
                f"the token {found.name!r} lacks the scope {needed!r}, which this request needs",
            )
        scope["actor"] = found
        return None


def _token_of(scope: Scope) -> str | None:
    """Return the bearer token of a request; empty ones and other schemes count as none."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    # Two headers are ambiguous: a proxy might have checked the other one.
    if len(sent) != 1 or len(sent[0]) > _MAX_TOKEN_LENGTH:
        return None
    scheme, _, token = sent[0].decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == _SCHEME and token.isascii() else None


class TokenBucket:
    """A token bucket: so many requests per second on average, with bursts after a pause.

    >>> bucket = TokenBucket(rate=2, burst=1)
    >>> bucket.take(now=0.0), bucket.take(now=0.0), bucket.take(now=0.5)
    (0.0, 0.5, 0.0)
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._left = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> float:
        """Take one request; return 0, or the seconds until one is available."""
        if self._at is not None:
            self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate


class RateLimit(_HttpMiddleware):
    """Middleware that limits the request rate of each token."""

    def __init__(
        self, app: ASGIApp, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(app)
        self._settings = settings
        self._clock = clock
        # Bounded by the number of tokens: the names are those of valid tokens.
        self._buckets: dict[str, TokenBucket] = {}

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        actor = scope.get("actor")
        if actor is None:
            await self._app(scope, receive, send)
            return
        bucket = self._buckets.get(actor.name)
        if bucket is None:
            bucket = TokenBucket(self._settings.rate, self._settings.burst)
            self._buckets[actor.name] = bucket
        wait = bucket.take(self._clock())
        if not wait:
            await self._app(scope, receive, send)
            return
        refused = problem(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"more than {self._settings.rate:g} requests per second with one token; retry later",
            {"Retry-After": str(max(1, round(wait)))},
        )
        await refused(scope, receive, send)
