"""Access control by bearer tokens, checked before the body of a request is read.

The scope that a request needs depends on its method, so it also holds for routes added later:
reading needs the scope "read", anything else "teach", except for the paths listed below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from evergrow.service.http.responses import problem

Needed = Literal["read", "teach"]
SCOPES: tuple[Needed, ...] = ("read", "teach")

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


@dataclass(frozen=True)
class Actor:
    """The owner of a valid token."""

    name: str
    scopes: frozenset[str]


class TokenCheck(Protocol):
    """Finds the owner of a token, or the reason why the token is not valid."""

    def __call__(self, token: str) -> Actor | str:
        """Check one token."""


def needed_scope(method: str, path: str) -> Needed | None:
    """Return the scope that a request needs; None for public paths.

    >>> needed_scope("GET", "/healthz"), needed_scope("POST", "/v1/rename")
    (None, 'teach')
    """
    if path in PUBLIC_PATHS or path.startswith(STATIC_PREFIX):
        return None
    if method in _SAFE_METHODS or (method, path) in _ONLY_READING:
        return "read"
    return "teach"


class Access:
    """Middleware that requires a token with the needed scope.

    Parameters
    ----------
    app : ASGI application
        The protected application.
    check : callable
        Returns a :class:`TokenCheck`, or None while the service is not open.
    """

    def __init__(self, app: ASGIApp, check: Callable[[], TokenCheck | None]) -> None:
        self._app = app
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        needed = needed_scope(scope["method"], scope["path"])
        if needed is None:
            await self._app(scope, receive, send)
            return
        check = self._check()
        if check is None:
            refused = problem(HTTPStatus.SERVICE_UNAVAILABLE, "the workspace is not open yet")
            await refused(scope, receive, send)
            return
        token = _token_of(scope)
        found = check(token) if token else "a token is required: send 'Authorization: Bearer TOKEN'"
        if isinstance(found, str):
            challenge = f'{_CHALLENGE}, error="invalid_token"' if token else _CHALLENGE
            refused = problem(HTTPStatus.UNAUTHORIZED, found, {"WWW-Authenticate": challenge})
            await refused(scope, receive, send)
            return
        if needed not in found.scopes:
            refused = problem(
                HTTPStatus.FORBIDDEN,
                f"the token {found.name!r} lacks the scope {needed!r}, which this request needs",
            )
            await refused(scope, receive, send)
            return
        scope["actor"] = found
        await self._app(scope, receive, send)


def _token_of(scope: Scope) -> str | None:
    """Return the bearer token of a request; empty ones and other schemes count as none."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    # Two headers are ambiguous: a proxy might have checked the other one.
    if len(sent) != 1 or len(sent[0]) > _MAX_TOKEN_LENGTH:
        return None
    scheme, _, token = sent[0].decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == _SCHEME and token.isascii() else None
