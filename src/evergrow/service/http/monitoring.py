"""Monitoring: one log line per request and per failure, and metrics for Prometheus.

Tokens, images and bodies are never logged: a line has the actor, the request and its duration.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import secrets
import sys
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evergrow.foundation.formatting import printable
from evergrow.service.http.responses import internal_error
from evergrow.workspace.records import Status

_log = logging.getLogger("evergrow.service")
_requests = logging.getLogger("evergrow.service.requests")
# Requested every few seconds by monitoring; a line each would hide the others.
_UNLOGGED = frozenset({"/healthz", "/readyz", "/metrics"})
_CLIENT_DISCONNECTED = 499
_FIRST_REFUSAL = 400
# Clients choose these texts: longer ones are cut.
_MAX_PATH = 200
_MAX_METHOD = 20
_MAX_REASON = 500
_BURST_SECONDS = 60.0
# More clients, tokens and reasons are counted together.
_MAX_BURSTS = 1000


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
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


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", None)
        text = super().format(record)
        if not facts:
            return text
        return f"{text} {' '.join(f'{name}={value}' for name, value in facts.items())}"


@contextlib.contextmanager
def log_to_stderr(*, json_lines: bool, requests: bool, level: int = logging.INFO) -> Iterator[None]:
    """Log to standard error, together with warnings and uncaught exceptions.

    Refused requests are logged with the level INFO, all others only if ``requests`` is True.

    Without this, Python would write warnings and uncaught exceptions there in its own format, so
    that not every line would be JSON.
    """
    handler = logging.StreamHandler(sys.stderr)
    plain = _PlainFormatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if json_lines else plain)
    root = logging.getLogger()
    ours = [logging.getLogger(name) for name in ("evergrow.service", "uvicorn")]
    server, repeated = logging.getLogger("uvicorn.error"), _RepeatedWarnings()
    with contextlib.ExitStack() as before:
        server.addFilter(repeated)
        before.callback(server.removeFilter, repeated)
        for logger in (root, *ours, _requests):
            before.callback(_set, logger, list(logger.handlers), logger.level, logger.propagate)
        root.handlers = [handler]
        for logger in ours:
            _set(logger, [], level, propagate=True)
        _set(_requests, [], logging.DEBUG if requests else level, propagate=True)
        for place, name, hook in (
            (threading, "excepthook", _log_thread_exception),
            (sys, "unraisablehook", _log_unraisable),
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


def _log_thread_exception(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is None or isinstance(failed.exc_value, SystemExit):
        return
    name = "(unknown)" if failed.thread is None else failed.thread.name
    _log.critical("a thread crashed: %s", name, exc_info=failed.exc_value)


def _log_unraisable(failed: Any) -> None:
    message = failed.err_msg or "an exception was ignored in"
    _log.error("%s: %r", message, failed.object, exc_info=failed.exc_value)


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    *_: Any,
) -> None:
    _log.warning("%s: %s (%s:%d)", category.__name__, message, filename, lineno)


@dataclass
class _Burst:
    message: str
    facts: dict[str, Any]
    since: float
    n_more: int = 0


class BurstLog:
    """Logs the first of many equal events, and a minute later how many more there were."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._bursts: OrderedDict[Hashable, _Burst] = OrderedDict()

    def add(self, key: Hashable, message: str, facts: dict[str, Any]) -> None:
        """Log an event, or count it if one with the same key was logged in the last minute."""
        now = self._clock()
        self._end_bursts(now)
        if key not in self._bursts and len(self._bursts) >= _MAX_BURSTS:
            key, facts = None, {"status": facts.get("status"), "client": "many"}
        known = self._bursts.get(key)
        if known is not None:
            known.n_more += 1
            return
        self._bursts[key] = _Burst(message, facts, now)
        self._logger.info(message, extra={"facts": facts})
        # The last burst must be reported also if nothing else happens.
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().call_later(_BURST_SECONDS, self._end_due)

    def _end_due(self) -> None:
        self._end_bursts(self._clock())

    def _end_bursts(self, now: float) -> None:
        # In the order in which they began.
        while self._bursts:
            key, first = next(iter(self._bursts.items()))
            if now - first.since < _BURST_SECONDS:
                return
            del self._bursts[key]
            if first.n_more:
                facts = {**first.facts, "more": first.n_more, "seconds": round(now - first.since)}
                self._logger.info("%s, repeatedly", first.message, extra={"facts": facts})


class _RepeatedWarnings(logging.Filter):
    """Counts equal warnings of the server: any client can cause one with each connection."""

    def __init__(self) -> None:
        super().__init__()
        self._bursts = BurstLog(_log)

    def filter(self, record: logging.LogRecord) -> bool:
        """Count a warning; let anything else pass."""
        if record.levelno != logging.WARNING:
            return True
        self._bursts.add(record.getMessage(), record.getMessage(), {})
        return False


class RequestLog:
    """Middleware that logs and measures every request, and responds to uncaught exceptions."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        # Request ids differ from those before the last restart.
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._repeated = BurstLog(_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = f"{self._run}-{next(self._numbers)}"
        # Read now: HEAD is turned into GET further in.
        method = scope["method"]
        status, n_bytes = _CLIENT_DISCONNECTED, 0

        async def send_counted(message: Message) -> None:
            nonlocal status, n_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
            else:
                n_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        # Any other exception is a bug: the log gets the traceback, the client a 500.
        except Exception as error:
            if isinstance(error, ClientDisconnect):
                return
            response = internal_error(error)
            if status != _CLIENT_DISCONNECTED:
                raise
            await response(scope, receive, send_counted)
        finally:
            self._log(scope, method, status, time.perf_counter() - began, n_bytes, request_id)

    def _log(
        self,
        scope: Scope,
        method: str,
        status: int,
        seconds: float,
        n_bytes: int,
        request_id: str,
    ) -> None:
        route = scope.get("route")
        # Methods are arbitrary text: unknown ones must not add labels without limit.
        counted = method if method in _methods(route) else "other"
        self._metrics.observe(counted, getattr(route, "path", "none"), status, seconds)
        if scope["path"] in _UNLOGGED or not _requests.isEnabledFor(logging.INFO):
            return
        actor = scope.get("actor")
        client = scope.get("client")
        facts = {
            "method": _cut(method, _MAX_METHOD),
            "path": _cut(scope["path"], _MAX_PATH),
            "status": status,
            "ms": round(seconds * 1e3, 2),
            "bytes": n_bytes,
            "actor": None if actor is None else actor.name,
            "client": None if client is None else client[0],
            "request": request_id,
        }
        if "reason" in scope:
            facts["reason"] = _cut(scope["reason"], _MAX_REASON)
        is_refused = status >= _FIRST_REFUSAL
        if actor is not None and not is_refused:
            _requests.debug("request", extra={"facts": facts})
            return
        if not is_refused and not _requests.isEnabledFor(logging.DEBUG):
            return
        # Of refusals, and of requests without a token, only the first has a line of its own.
        self._repeated.add((facts["client"], facts["actor"], status), "request", facts)


def _cut(text: str, most: int) -> str:
    """Return printable text, without the end of a long one."""
    return printable(text if len(text) <= most else f"{text[:most]}…")


def _methods(route: Any) -> set[str]:
    """Methods of a route."""
    found = set(getattr(route, "methods", None) or ())
    return found | {"HEAD"} if "GET" in found else found


# From a cached listing to an image at the end of a long queue.
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_BATCHES = (1, 2, 4, 8, 16, 32, 64)


class _WorkspaceCollector(Collector):
    def __init__(self, read: Callable[[], Status]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Return nothing: values are read only when metrics are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        status = self._read()
        values = {
            "examples": ("Examples.", status.n_examples),
            "classes": ("Classes.", status.n_classes),
            "event": ("Number of the newest change.", status.event),
            "workspace_bytes": ("Size of the workspace on disk.", status.n_bytes),
        }
        for name, (description, value) in values.items():
            yield GaugeMetricFamily(f"evergrow_{name}", description, value=value)


class Metrics:
    """All metrics of one service, in a registry of its own."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._requests = Counter(
            "evergrow_requests",
            "Requests by method, route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "evergrow_request_seconds",
            "Time from the headers of a request to the end of its response.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.refused_images = Counter(
            "evergrow_refused_images",
            "Refused images, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self.taught = Counter(
            "evergrow_taught_examples", "Examples taught since the start.", registry=self.registry
        )
        self.predicted = Counter(
            "evergrow_predictions", "Predictions since the start.", registry=self.registry
        )
        self.closed_connections = Counter(
            "evergrow_closed_connections",
            "Connections that were closed to make room for others, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self.written_together = Histogram(
            "evergrow_written_together",
            "Changes that shared one transaction.",
            buckets=_BATCHES,
            registry=self.registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def add_gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Add a value that is read whenever metrics are collected."""
        Gauge(f"evergrow_{name}", description, registry=self.registry).set_function(read)

    def add_workspace(self, read: Callable[[], Status]) -> None:
        """Add the size of a workspace; its status is read once per collection."""
        self.registry.register(_WorkspaceCollector(read))

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)
