"""What the service writes to its log: one line per request and per thing that went wrong.

Neither tokens nor anything of images or bodies is ever written: a line says who, what and how long.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import secrets
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evergrow.foundation.naming import printable
from evergrow.service.http.metrics import Metrics
from evergrow.service.http.problems import fault

__all__ = ["JsonLines", "Observing", "logs_on_stderr"]

_log = logging.getLogger("evergrow.service")
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


@contextlib.contextmanager
def logs_on_stderr(*, json_lines: bool) -> Iterator[None]:
    """Send all logs of this process to standard error, and what would go there by itself too.

    Warnings and exceptions that nobody catches are written as logs, so that every line of JSON
    lines is one.

    Parameters
    ----------
    json_lines : bool
        Whether to write JSON lines.
    """
    handler = logging.StreamHandler(sys.stderr)
    plain = _PlainLines("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if json_lines else plain)
    root = logging.getLogger()
    ours = [logging.getLogger(name) for name in ("evergrow.service", "uvicorn")]
    with contextlib.ExitStack() as before:
        for logger in (root, *ours):
            before.callback(_set, logger, list(logger.handlers), logger.level, logger.propagate)
        root.handlers = [handler]
        for logger in ours:
            _set(logger, [], logging.INFO, propagate=True)
        for place, name, hook in (
            (threading, "excepthook", _log_of_thread),
            (sys, "unraisablehook", _log_of_nobody),
            (warnings, "showwarning", _log_warning),
        ):
            before.callback(setattr, place, name, getattr(place, name))
            setattr(place, name, hook)
        yield


def _set(
    logger: logging.Logger, handlers: list[logging.Handler], level: int, propagate: bool
) -> None:
    logger.handlers = handlers
    logger.setLevel(level)
    logger.propagate = propagate


def _log_of_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is None or isinstance(failed.exc_value, SystemExit):
        return
    name = "of unknown name" if failed.thread is None else failed.thread.name
    _log.critical("a thread ended: %s", name, exc_info=failed.exc_value)


def _log_of_nobody(failed: Any) -> None:
    what = failed.err_msg or "an exception was ignored in"
    _log.error("%s: %r", what, failed.object, exc_info=failed.exc_value)


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    *_: Any,
) -> None:
    _log.warning("%s: %s (%s:%d)", category.__name__, message, filename, lineno)


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
        # As it came: HEAD is GET to whoever answers it.
        method = scope["method"]
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
            self._note(scope, method, status, time.perf_counter() - began, n_bytes, number)

    def _note(
        self,
        scope: Scope,
        method: str,
        status: int,
        seconds: float,
        n_bytes: int,
        number: str,
    ) -> None:
        route = scope.get("route")
        # Methods are free text: one that nobody serves must not grow a table.
        counted = method if method in _methods(route) else "other"
        self._metrics.observe(counted, getattr(route, "path", "none"), status, seconds)
        if scope["path"] in _QUIET or not _requests.isEnabledFor(logging.INFO):
            return
        actor = scope.get("actor")
        client = scope.get("client")
        facts = {
            "method": printable(method),
            "path": printable(scope["path"]),
            "status": status,
            "ms": round(seconds * 1e3, 2),
            "bytes": n_bytes,
            "actor": None if actor is None else actor.name,
            "client": None if client is None else client[0],
            "request": number,
        }
        _requests.info("request", extra={"facts": facts})


def _methods(route: Any) -> set[str]:
    """Methods that a route answers."""
    found = set(getattr(route, "methods", None) or ())
    return found | {"HEAD"} if "GET" in found else found
