"""Who may do what: bearer tokens, checked before anything of a request is read.

What needs which scope is decided here, by method, for routes that exist and for those still to
come: reading needs a token to read, anything else a token to teach, unless it is listed below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from evergrow.service.http.problems import problem

__all__ = [
    "PUBLIC_PATHS",
    "SCOPES",
    "STATIC_PREFIX",
    "Access",
    "Actor",
    "TokenCheck",
    "needed_scope",
]

Needed = Literal["read", "teach"]
SCOPES: tuple[Needed, ...] = ("read", "teach")

STATIC_PREFIX = "/static/"
# The files of the page say nothing about the workspace; health is asked by those without a token.
PUBLIC_PATHS = frozenset({"/", "/healthz", "/readyz", "/favicon.ico"})
# Asks with a body, changes nothing.
_ONLY_READING = frozenset({("POST", "/v1/predictions")})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_SCHEME = "bearer"
# Longer ones are no tokens; hashing them would be work for nothing.
_MAX_TOKEN_LENGTH = 512
_CHALLENGE = 'Bearer realm="evergrow"'


@dataclass(frozen=True)
class Actor:
    """Whoever sent a token that is valid now."""

    name: str
    scopes: frozenset[str]


class TokenCheck(Protocol):
    """Tells whose token it is, or why it is not valid."""

    def __call__(self, token: str) -> Actor | str:
        """Check one token."""


def needed_scope(method: str, path: str) -> Needed | None:
    """The scope that a request needs; None for what is public.

    >>> needed_scope("GET", "/healthz"), needed_scope("POST", "/v1/rename")
    (None, 'teach')
    """
    if path in PUBLIC_PATHS or path.startswith(STATIC_PREFIX):
        return None
    if method in _SAFE_METHODS or (method, path) in _ONLY_READING:
        return "read"
    return "teach"


class Access:
    """Lets requests through whose token has the scope that they need.

    Parameters
    ----------
    app : ASGI application
        What is protected.
    check : callable
        From the service, which may not have its tokens yet: gives a :class:`TokenCheck` or None.
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
        found = check(token) if token else "a token is needed: send 'Authorization: Bearer TOKEN'"
        if isinstance(found, str):
            challenge = f'{_CHALLENGE}, error="invalid_token"' if token else _CHALLENGE
            refused = problem(HTTPStatus.UNAUTHORIZED, found, {"WWW-Authenticate": challenge})
            await refused(scope, receive, send)
            return
        if needed not in found.scopes:
            refused = problem(
                HTTPStatus.FORBIDDEN,
                f"the token {found.name!r} may not do this: a token that may {needed} is needed",
            )
            await refused(scope, receive, send)
            return
        scope["actor"] = found
        await self._app(scope, receive, send)


def _token_of(scope: Scope) -> str | None:
    """The token that was sent; empty ones and other schemes count as none."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    # Two of them: nobody can tell which one another program would have taken.
    if len(sent) != 1 or len(sent[0]) > _MAX_TOKEN_LENGTH:
        return None
    scheme, _, token = sent[0].decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == _SCHEME and token.isascii() else None
