"""Limits on the size, duration and rate of requests, enforced before any route runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evergrow.service.http.responses import ProblemError, problem, unavailable
from evergrow.service.http.settings import Settings

# A client that is still sending does not read the response yet. Up to this much of its data is
# discarded, for up to this long, before the connection is closed: closing it at once would lose
# the response.
_LINGER_BYTES = 1_000_000_000
_LINGER_SECONDS = 10.0


class BodyLimits:
    """Middleware that refuses bodies that are too long or too slow, or too many at a time.

    Parameters
    ----------
    app : ASGI application
        The protected application.
    settings : Settings
        The limits.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._bytes_at_once = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
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
        if self._bytes_at_once > self._settings.n_bytes_at_once:
            raise unavailable("too many large requests at a time; retry later")

    @property
    def settings(self) -> Settings:
        """The limits."""
        return self._settings


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


class TokenBucket:
    """A token bucket: so many requests per second on average, with bursts after a pause.

    Parameters
    ----------
    rate : float
        Requests per second.
    burst : int
        Requests at once.

    Examples
    --------
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


class RateLimit:
    """Middleware that limits the request rate of each token.

    Parameters
    ----------
    app : ASGI application
        The protected application.
    settings : Settings
        The limits.
    clock : callable
        A monotonic clock in seconds.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._settings = settings
        self._clock = clock
        # Bounded by the number of tokens: the names are those of valid tokens.
        self._buckets: dict[str, TokenBucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
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
