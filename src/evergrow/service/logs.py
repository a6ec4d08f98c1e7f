"""What the service writes to its log: one line per request and per thing that went wrong.

Neither tokens nor anything of images or bodies is ever written: a line says who, what and how long.
"""

from __future__ import annotations

import itertools
import json
import logging
import secrets
import sys
import time
from datetime import UTC, datetime
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evergrow.naming import printable
from evergrow.service.metrics import Metrics
from evergrow.service.problems import fault

__all__ = ["JsonLines", "Observing", "set_up_logs"]

_requests = logging.getLogger("evergrow.service.requests")
# Asked every few seconds by whoever watches; a line each would hide the others.
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
_CLIENT_GONE = 499


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Word one record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "facts", {}))
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


class _PlainLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", None)
        text = super().format(record)
        if not facts:
            return text
        return f"{text} {' '.join(f'{name}={value}' for name, value in facts.items())}"


def set_up_logs(*, json_lines: bool) -> None:
    """Send the log of the service and of its server to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    plain = _PlainLines("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if json_lines else plain)
    for name in ("evergrow.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)


class Observing:
    """Measures and logs every request, and answers for what nobody else answered.

    Parameters
    ----------
    app : ASGI application
        All of the service.
    metrics : Metrics
        Where requests are counted.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        # Numbers of requests differ from those before the last start.
        self._start = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        number = f"{self._start}-{next(self._numbers)}"
        status, n_bytes = _CLIENT_GONE, 0

        async def send_counted(message: Message) -> None:
            nonlocal status, n_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (b"x-request-id", number.encode())]
                message = {**message, "headers": headers}
            else:
                n_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        # Whatever it is, the client gets an answer and the log the reason.
        except Exception as error:
            if isinstance(error, ClientDisconnect):
                return
            response = fault(error)
            if status != _CLIENT_GONE:
                raise
            await response(scope, receive, send_counted)
        finally:
            self._note(scope, status, time.perf_counter() - began, n_bytes, number)

    def _note(self, scope: Scope, status: int, seconds: float, n_bytes: int, number: str) -> None:
        route = getattr(scope.get("route"), "path", "none")
        # Methods are free text: one that nobody serves must not grow a table.
        method = scope["method"] if route != "none" else "other"
        self._metrics.observe(method, route, status, seconds)
        if scope["path"] in _QUIET or not _requests.isEnabledFor(logging.INFO):
            return
        actor = scope.get("actor")
        client = scope.get("client")
        facts = {
            "method": printable(scope["method"]),
            "path": printable(scope["path"]),
            "status": status,
            "ms": round(seconds * 1e3, 2),
            "bytes": n_bytes,
            "actor": None if actor is None else actor.name,
            "client": None if client is None else client[0],
            "request": number,
        }
        _requests.info("request", extra={"facts": facts})
