"""Middleware: headers, host names, limits on bodies, bearer tokens, and limits on requests.

All of it runs before a route, and tokens are checked before a body is read. Whatever is refused
counts first for its token or, without a valid one, for its address: neither can have any number of
refusals. The scope that a request needs depends on its method, so it also holds for routes added
later: reading needs the scope "read", anything else "teach", except for the paths listed below.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import math
import re
import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evergrow.foundation.formatting import format_size
from evergrow.service.http.fairness import AccessScope, Actor, Allowance, Pacer, address_group
from evergrow.service.http.responses import ProblemError, problem, unavailable
from evergrow.service.http.settings import Settings

if TYPE_CHECKING:
    from evergrow.service.http.service import Service

SCOPES: tuple[AccessScope, ...] = ("read", "teach")

STATIC_PREFIX = "/static/"
# The files of the page contain nothing of the workspace; health checks have no token.
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
PUBLIC_PATHS = HEALTH_PATHS | {"/", "/favicon.ico"}
# Label Studio appends its paths to the address of a back end.
LABEL_STUDIO_PREFIX = "/v1/integrations/label-studio"
# Has a body but changes nothing.
_ONLY_READING = frozenset(
    {
        ("POST", "/v1/predictions"),
        ("POST", "/v1/downloads"),
        ("POST", f"{LABEL_STUDIO_PREFIX}/predict"),
    }
)
# The rest of such a path is valid once, in place of a token: browsers send no header when they
# save a link to disk.
_LINK_PREFIX = "/v1/downloads/"
USED_LINK = "this link was used already or has expired: start the download again"
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
# At so many connections at a time, and so many of one token or of all clients without one; no
# faster than this, because reading takes processor time.
_MAX_LINGERING = 16
_MAX_LINGERING_EACH = 4
_LINGER_RATE = 50_000_000.0

# Bytes per second of the bodies of one token: reading more would leave too little processor time
# to other tokens. A token that sends faster is read more slowly.
_BODY_RATE = 25_000_000.0

# A body may begin slowly: the network needs time to reach its speed.
_PROGRESS_SECONDS = 5.0

# Browsers must use https for this computer's name from now on.
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
# A name or an IPv6 address in brackets, and perhaps a port.
_HOST = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::[0-9]*)?")
_LOCAL_NAMES = frozenset({"localhost", "ip6-localhost"})

# Refused tokens: so many responses per second and address, and for all addresses together.
_REFUSED_PER_SECOND = 5.0
_REFUSED_BURST = 50
_ALL_REFUSED_PER_SECOND = 100.0
_ALL_REFUSED_BURST = 500
# Responses are delayed for up to this long; with even more requests connections are closed.
_REFUSED_SECONDS = 5.0
# Requests without a token, per second and address. A page loads about 50 files.
_PUBLIC_PER_SECOND = 200.0
_PUBLIC_BURST = 400
_PUBLIC_SECONDS = 0.5
# Health checks per second and address, and for all addresses together. Beyond that each is answered
# after a pause and its connection is closed: load balancers wait for at least a second.
_HEALTH_PER_SECOND = 20.0
_HEALTH_BURST = 40
_ALL_HEALTH_PER_SECOND = 200.0
_ALL_HEALTH_BURST = 400
_HEALTH_SECONDS = 0.5
# Requests over the limits of a token are answered after a pause, which slows clients that ignore
# the limits.
_OVER_RATE_SECONDS = 0.5
_OVER_NUMBER_SECONDS = 1.0

# A client without a token, in the accounts of those with one.
_NOBODY = Actor("", frozenset())


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
        strict = scope.get("scheme") == "https" and _is_public_name(host_name(scope))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message["headers"])
                names = {name for name, _ in given}
                given.extend(one for one in SECURITY_HEADERS if one[0] not in names)
                if strict:
                    given.append(_STRICT_TRANSPORT)
                message = {**message, "headers": given}
            await send(message)

        await self._app(scope, receive, send_with_headers)


def host_name(scope: Scope) -> str | None:
    """Return the host that a request is addressed to, in lower case and without its port."""
    sent = [value for name, value in scope["headers"] if name == b"host"]
    # Clients of HTTP/1.0 send none. Of two, a proxy might have checked the other one.
    if not sent:
        return None
    host = sent[0].decode("latin-1").lower() if len(sent) == 1 else "?"
    found = _HOST.fullmatch(host)
    return host if found is None else found[1].rstrip(".")


def _is_public_name(host: str | None) -> bool:
    """Whether a host name means the same computer everywhere.

    ``localhost``, names without a dot and those in ``.local`` mean another one in the next network,
    where a browser that may only use https could not reach it.
    """
    return host is not None and "." in host and not (host.endswith(".local") or _is_address(host))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]").partition("%")[0])
    except ValueError:
        return False
    return True


class Hosts(_HttpMiddleware):
    """Middleware that refuses requests that are addressed to other host names.

    Otherwise a page of another site could reach the service through a browser, under a name of its
    own that it points to this computer (DNS rebinding). No name can be an IP address, so those are
    allowed, and health checks may have any host.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        super().__init__(app)
        self._names = names
        self._any = "*" in names

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app if self._any or self._is_allowed(scope) else self._refusal(scope)
        await app(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        host = host_name(scope)
        return (
            host is None
            or host in self._names
            or _is_address(host)
            or scope["path"] in HEALTH_PATHS
        )

    def _refusal(self, scope: Scope) -> ASGIApp:
        return problem(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"this service is not known by the host name {(host_name(scope) or '')[:253]!r}: "
            "allow it with 'evergrow serve --allow-host NAME'",
            {"Connection": "close"},
        )


def allowed_hosts(settings: Settings, bound: str | None = None) -> frozenset[str]:
    """Return the host names of a service that listens on the address ``bound``."""
    here = socket.gethostname().lower()
    names = {*_LOCAL_NAMES, here, f"{here.partition('.')[0]}.local"}
    if bound:
        names.add(bound.lower())
    return frozenset(names) | {name.lower().rstrip(".") for name in settings.allow_hosts}


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
        # Those that would send much need not read it.
        scope["without_body"] = True
        await self._app(scope, receive, send_without_body)


class BodyLength(_HttpMiddleware):
    """Middleware that refuses requests whose Content-Length is not acceptable."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app)
        self._max_bytes = settings.max_request_bytes

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._refusal(dict(scope["headers"]).get(b"content-length")) or self._app
        await app(scope, receive, send)

    def _refusal(self, stated: bytes | None) -> ASGIApp | None:
        if stated is None:
            return None
        if not stated.isdigit() or len(stated) > 18:
            return problem(HTTPStatus.BAD_REQUEST, "the Content-Length is not a number")
        if int(stated) > self._max_bytes:
            return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _too_long(self._max_bytes))
        return None


class BodyLimits(_HttpMiddleware):
    """Middleware that refuses bodies that are too long or too slow, or too many at a time.

    It comes before the check of tokens, because it also discards the rest of refused bodies.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        super().__init__(app)
        self.settings = settings
        self.in_memory = settings.body_allowance()
        self.lingering = Allowance(_MAX_LINGERING, _MAX_LINGERING_EACH, _MAX_LINGERING)
        self.pace = Pacer(_BODY_RATE, 2 * settings.max_request_bytes, math.inf)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(self, scope, receive, send)
        try:
            await self._app(scope, body.receive, body.send)
        finally:
            body.release()


class _Body:
    """The body of one request while it arrives."""

    def __init__(self, limits: BodyLimits, scope: Scope, receive: Receive, send: Send) -> None:
        self._limits = limits
        self._scope = scope
        self._receive = receive
        self._send = send
        headers = dict(scope["headers"])
        stated: bytes = headers.get(b"content-length", b"0")
        self._expected = stated != b"0" or b"transfer-encoding" in headers
        # One that is not a number is refused further in, before the body is read.
        self._stated = int(stated) if stated.isdigit() and len(stated) <= 18 else 0
        self._whole = not self._expected
        # A client that expects "100 Continue" has not sent anything yet.
        self._may_linger = b"expect" not in headers
        self._deadline: float | None = None
        # By when how much of the body must have arrived.
        self._checked_at = 0.0
        self._checked_bytes = 0
        self.n_bytes = 0
        # Memory for it, which its stated length reserves before it is read.
        self._taken = 0

    @property
    def _actor(self) -> Actor:
        # Set after this was created, when the token was found valid.
        actor: Actor = self._scope.get("actor") or _NOBODY
        return actor

    def release(self) -> None:
        """Give back the memory of the body."""
        if self._taken:
            self._limits.in_memory.give_back(self._actor, self._taken)

    async def receive(self) -> Message:
        """Receive the next part, within the limits on size and time."""
        if self._whole:
            return await self._receive()
        now = time.monotonic()
        settings = self._limits.settings
        if self._deadline is None:
            self._take(0)
            self._deadline = now + settings.read_seconds
            self._next_check(now)
        timeout = min(self._deadline, self._checked_at) - now
        try:
            async with asyncio.timeout(max(0.0, timeout)):
                message = await self._receive()
        except TimeoutError:
            self._may_linger = False
            if self._deadline <= self._checked_at:
                why = f"was not complete within {settings.read_seconds:g} seconds"
            else:
                why = f"arrived at less than {settings.min_body_rate} bytes per second"
            raise ProblemError(
                HTTPStatus.REQUEST_TIMEOUT, f"the request {why}", {"Connection": "close"}
            ) from None
        self._count(message)
        await self._pause(len(message.get("body", b"")))
        return message

    async def _pause(self, n_bytes: int) -> None:
        """Wait until the token may send more; the client cannot be blamed for that time."""
        delay = self._limits.pace.delay(self._actor.name, n_bytes)
        if delay and self._deadline is not None:
            self._deadline += delay
            self._checked_at += delay
            await asyncio.sleep(delay)

    def _next_check(self, now: float) -> None:
        """Require the next piece of the body within the next seconds."""
        self._checked_at = now + _PROGRESS_SECONDS
        n_bytes = self._limits.settings.min_body_rate * _PROGRESS_SECONDS
        self._checked_bytes = self.n_bytes + int(n_bytes)

    def _count(self, message: Message) -> None:
        if message["type"] != "http.request":
            self._whole = True
            return
        self._whole = not message.get("more_body", False)
        n_bytes = len(message.get("body", b""))
        most = self._limits.settings.max_request_bytes
        if self.n_bytes + n_bytes > most:
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _too_long(most))
        self._take(self.n_bytes + n_bytes)
        self.n_bytes += n_bytes
        if self.n_bytes >= self._checked_bytes:
            self._next_check(time.monotonic())

    def _take(self, n_bytes: int) -> None:
        """Take memory for so many bytes of the body, or for its stated length at once."""
        wanted = max(n_bytes, self._stated)
        if wanted > self._taken:
            if not self._limits.in_memory.take(self._actor, wanted - self._taken):
                raise unavailable("too many large requests at a time; retry later")
            self._taken = wanted

    async def send(self, message: Message) -> None:
        """Send a response; delay its end while the client is still sending."""
        if message["type"] == "http.response.start" and not self._whole:
            # The rest of the body would be read as fast as it comes, for nothing.
            headers = [one for one in message["headers"] if one[0].lower() != b"connection"]
            message = {**message, "headers": [*headers, (b"connection", b"close")]}
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if not is_last or self._whole or not self._may_linger:
            await self._send(message)
            return
        lingering = self._limits.lingering
        if not lingering.take(self._actor, 1):
            await self._send(message)
            return
        try:
            await self._send({**message, "more_body": True})
            await self._linger()
        finally:
            lingering.give_back(self._actor, 1)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _linger(self) -> None:
        n_bytes = 0
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                while n_bytes < _LINGER_BYTES:
                    message = await self._receive()
                    n_more = len(message.get("body", b""))
                    n_bytes += n_more
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
                    await asyncio.sleep(n_more / _LINGER_RATE)
        except TimeoutError:
            return


def _too_long(most: int) -> str:
    return f"the request is longer than the limit of {format_size(most)}"


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
    """Middleware that requires a valid token, by ``token_check`` of the service.

    Requests with refused tokens, and those without one, are slowed by address.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        super().__init__(app)
        self._service = service
        self._refused = Pacer(_REFUSED_PER_SECOND, _REFUSED_BURST, _REFUSED_SECONDS)
        self._all_refused = Pacer(_ALL_REFUSED_PER_SECOND, _ALL_REFUSED_BURST, _REFUSED_SECONDS)
        self._public = Pacer(_PUBLIC_PER_SECOND, _PUBLIC_BURST, _PUBLIC_SECONDS)
        self._health = Pacer(_HEALTH_PER_SECOND, _HEALTH_BURST, 0.0)
        self._all_health = Pacer(_ALL_HEALTH_PER_SECOND, _ALL_HEALTH_BURST, 0.0)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in HEALTH_PATHS:
            await self._serve_health(scope, receive, send)
            return
        if needed_scope(scope["method"], scope["path"]) is None:
            await self._serve_paced(self._app, scope, receive, send)
            return
        token = token_of(scope)
        try:
            found = self._find(token, scope["path"])
        except ProblemError as error:
            refused = problem(error.status, error.detail, error.headers)
            await self._serve_paced(refused, scope, receive, send)
            return
        if isinstance(found, str):
            challenge = f'{_CHALLENGE}, error="invalid_token"' if token else _CHALLENGE
            refused = problem(HTTPStatus.UNAUTHORIZED, found, {"WWW-Authenticate": challenge})
            await self._refuse_token(refused, scope, receive, send)
            return
        # Also the log of a refused request names its token.
        scope["actor"] = found
        connection = scope.get("connection")
        if connection is not None:
            connection.accept_token(found)
        await self._app(scope, receive, send)

    def _find(self, token: str | None, path: str) -> Actor | str:
        """Return the owner of a token, or why it is refused."""
        check = self._service.token_check
        if check is None:
            raise unavailable("the workspace is not open yet")
        if path.startswith(_LINK_PREFIX):
            token = self._service.downloads.token_of(path.removeprefix(_LINK_PREFIX)) or token
            if not token:
                return USED_LINK
        if not token:
            return "a token is required: send 'Authorization: Bearer TOKEN'"
        return check(token)

    async def _serve_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Every health check is answered; those of a flood wait, which takes no processor time.
        if self._health.delay(_address_of(scope)) == 0 and self._all_health.delay("") == 0:
            await self._app(scope, receive, send)
            return
        await asyncio.sleep(_HEALTH_SECONDS)
        await self._app(scope, receive, _closing(send))

    async def _serve_paced(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        delay = self._public.delay(_address_of(scope))
        if delay is None:
            detail = f"more than {_PUBLIC_PER_SECOND:g} requests per second without a token"
            app = _too_many(f"{detail}; retry later", 1.0, {"Connection": "close"})
            delay = _PUBLIC_SECONDS
        if delay:
            await asyncio.sleep(delay)
        await app(scope, receive, send)

    async def _refuse_token(
        self, refused: Response, scope: Scope, receive: Receive, send: Send
    ) -> None:
        connection = scope.get("connection")
        if connection is not None:
            connection.refuse_token()
        delay = self._refused.delay(_address_of(scope))
        if delay is not None:
            delay_of_all = self._all_refused.delay("")
            delay = None if delay_of_all is None else max(delay, delay_of_all)
        if delay is None:
            scope["reason"] = "closed: too many refused tokens from this address"
            if connection is not None:
                # So many wait for their response that one more would only use memory.
                connection.drop()
                return
            delay = _REFUSED_SECONDS
        if delay:
            await asyncio.sleep(delay)
        await refused(scope, receive, send)


def _closing(send: Send) -> Send:
    """Return a function that sends a response after which the connection is closed."""

    async def send_closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], (b"connection", b"close")]
            message = {**message, "headers": headers}
        await send(message)

    return send_closing


def _address_of(scope: Scope) -> str:
    client = scope.get("client")
    return "" if client is None else address_group(client[0])


def token_of(scope: Scope) -> str | None:
    """Return the bearer token of a request; empty ones and other schemes count as none."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    # Two headers are ambiguous: a proxy might have checked the other one.
    if len(sent) != 1 or len(sent[0]) > _MAX_TOKEN_LENGTH:
        return None
    scheme, _, token = sent[0].decode("latin-1").partition(" ")
    if not token.isascii():
        return None
    if scheme.lower() == "basic" and scope["path"].startswith(f"{LABEL_STUDIO_PREFIX}/"):
        return _password_of(token.strip())
    return token.strip() if scheme.lower() == _SCHEME else None


def _password_of(credentials: str) -> str | None:
    """Return the password of basic authentication: back ends of Label Studio have no other.

    The user may have any name.
    """
    try:
        user, colon, password = base64.b64decode(credentials, validate=True).partition(b":")
    except ValueError:
        return None
    return password.decode("ascii", "replace") if user and colon and password else None


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


class RequestLimits(_HttpMiddleware):
    """Middleware that limits the requests of each token, per second and at a time."""

    def __init__(
        self, app: ASGIApp, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(app)
        self._settings = settings
        self._clock = clock
        self._at_once = settings.request_allowance()
        # Bounded by the number of tokens: the names are those of valid tokens.
        self._buckets: dict[str, TokenBucket] = {}

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        actor = scope.get("actor")
        if actor is None:
            await self._app(scope, receive, send)
            return
        if not self._at_once.take(actor, 1):
            # Many may wait: their connections are closed if others need the place.
            connection = scope.get("connection")
            if connection is not None:
                connection.release()
            await asyncio.sleep(_OVER_NUMBER_SECONDS)
            refused = _too_many(
                "too many requests at a time with this token, or with all tokens that may not "
                "teach; wait for responses before sending more",
                1.0,
                {"Connection": "close"},
            )
            await refused(scope, receive, send)
            return
        try:
            await self._serve_in_turn(actor, scope, receive, send)
        finally:
            self._at_once.give_back(actor, 1)

    async def _serve_in_turn(
        self, actor: Actor, scope: Scope, receive: Receive, send: Send
    ) -> None:
        bucket = self._buckets.get(actor.name)
        if bucket is None:
            bucket = TokenBucket(self._settings.rate, self._settings.burst)
            self._buckets[actor.name] = bucket
        wait = bucket.take(self._clock())
        if not wait:
            await self._app(scope, receive, send)
            return
        # It counts as one of the token's requests at a time, and its body is not read.
        await asyncio.sleep(_OVER_RATE_SECONDS)
        refused = _too_many(
            f"more than {self._settings.rate:g} requests per second with one token; retry later",
            wait,
        )
        await refused(scope, receive, send)


class Scopes(_HttpMiddleware):
    """Middleware that requires the scope that a request needs, after its token was found."""

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        needed = needed_scope(scope["method"], scope["path"])
        actor: Actor = scope.get("actor") or _NOBODY
        app: ASGIApp = self._app
        if needed is not None and needed not in actor.scopes:
            app = problem(
                HTTPStatus.FORBIDDEN,
                f"the token {actor.name!r} lacks the scope {needed!r}, which this request needs",
            )
        await app(scope, receive, send)


def _too_many(detail: str, wait: float, headers: dict[str, str] | None = None) -> Response:
    retry = {"Retry-After": str(max(1, round(wait)))}
    return problem(HTTPStatus.TOO_MANY_REQUESTS, detail, {**retry, **(headers or {})})
