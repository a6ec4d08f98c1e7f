"""Run the server until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import ipaddress
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from evergrow.foundation.errors import InvalidInputError
from evergrow.service.client.connections import parse_url
from evergrow.service.http.app import create_app
from evergrow.service.http.connection_pool import ConnectionPool
from evergrow.service.http.connections import (
    BACKLOG,
    Connection,
    EventLoop,
    Listener,
    Triage,
    connection_limit,
)
from evergrow.service.http.monitoring import BurstLog, Metrics, log_to_stderr
from evergrow.service.http.routes.health import health_response
from evergrow.service.http.service import Service
from evergrow.service.http.settings import Settings
from evergrow.workspace.store.layout import Layout, read_manifest
from evergrow.workspace.tokens import new_token

_KEEP_ALIVE_SECONDS = 30
_SWITCH_SECONDS = 0.0005
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Names and values of the C library's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# Above the arrays of a batch of images, below the largest requests.
_MMAP_BYTES = 8 << 20
_REUSED_BYTES = 64 << 20

_log = logging.getLogger("evergrow.service")


def serve(
    folder: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    certfile: str | os.PathLike[str] | None = None,
    keyfile: str | os.PathLike[str] | None = None,
    insecure: bool = False,
    json_logs: bool = False,
    log_requests: bool = False,
    session: bool = False,
    settings: Settings | None = None,
    announce: Callable[[str], None] | None = None,
    **limits: Any,
) -> None:
    """Serve a workspace over HTTP until SIGINT or SIGTERM, then finish the queued changes.

    Parameters
    ----------
    folder : path
        The folder of the workspace.
    host : str, default="127.0.0.1"
        Address to listen on. With the default, only this computer can connect.
    port : int, default=8080
        Port to listen on. 0 chooses a free one.
    certfile : path, default=None
        Certificate for TLS in PEM format. Browsers allow the camera only over TLS or on localhost.
    keyfile : path, default=None
        Private key of the certificate in PEM format.
    insecure : bool, default=False
        Whether other computers may connect without TLS. Use it only behind a proxy that encrypts,
        because tokens and pictures could otherwise be read on the network.
    json_logs : bool, default=False
        Whether the log is written as JSON lines.
    log_requests : bool, default=False
        Whether every request is logged, or only those that were refused.
    session : bool, default=False
        Whether the announced address contains a token, which may teach until the service ends. Only
        warnings and errors are logged then, unless `log_requests` is True.
    settings : Settings, default=None
        Limits of the service. None uses the defaults.
    announce : callable, default=None
        Called with the address when the service is ready.
    **limits : dict
        Single values of :class:`~evergrow.service.http.settings.Settings`, such as ``rate``,
        ``max_request_bytes`` and ``decoders``. None is the default.

    Raises
    ------
    evergrow.WorkspaceError
        If the folder is not a workspace, is damaged, or is in use by another process.
    evergrow.InvalidInputError
        If it is not safe to listen on this address.
    OSError
        If it is not possible to listen on this address.
    """
    settings = settings or Settings(
        **{name: value for name, value in limits.items() if value is not None}
    )
    _check_tls(certfile, keyfile)
    check_address(host, with_tls=certfile is not None, insecure=insecure)
    check_label_studio(settings.label_studio, insecure=insecure)
    # A folder that is not a workspace is refused before anything is logged.
    read_manifest(Layout(folder))
    pool = ConnectionPool(
        connection_limit(settings.max_connections),
        per_address=settings.max_connections_per_address,
    )
    # Each of these requests has a connection; others must have a place as well.
    settings = replace(
        settings, max_requests=min(settings.max_requests, max(1, pool.max_connections // 2))
    )
    listener = Listener(host, port, pool)
    reuse_freed_memory()
    # A change takes the interpreter's lock many times. With Python's default of 5 ms it would wait
    # as long each time while another thread computes.
    sys.setswitchinterval(_SWITCH_SECONDS)
    token = new_token("teach") if session else None
    service = Service(folder, settings, token)
    pool.on_closed = _count_closed(service.metrics)
    listener.triage = Triage(functools.partial(health_response, service), service.has_token)
    service.metrics.add_gauge("connections", "Open connections.", lambda: float(len(pool)))
    config = uvicorn.Config(
        create_app(service, host),
        http=functools.partial(Connection, pool=pool),  # type: ignore[arg-type]
        backlog=BACKLOG,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.stop_seconds) + 1,
        ssl_certfile=certfile,
        ssl_keyfile=keyfile,
    )
    if certfile is not None:
        config.load()
        if config.ssl is not None:
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    url = _url(host, listener, with_tls=certfile is not None)
    # A person at a terminal wants to see the address and what went wrong.
    level = logging.WARNING if session and not log_requests else logging.INFO
    with log_to_stderr(json_lines=json_logs, requests=log_requests, level=level):
        _log_limits(pool, settings)
        _run(Server(config, service), service, listener, lambda: _announce(url, token, announce))


def _count_closed(metrics: Metrics) -> Callable[[str, str], None]:
    bursts = BurstLog(_log)

    def count(address: str, reason: str) -> None:
        metrics.closed_connections.labels(reason).inc()
        facts = {"client": address, "reason": reason}
        bursts.add((address, reason), "connection closed to make room", facts)

    return count


def _log_limits(pool: ConnectionPool, settings: Settings) -> None:
    facts = {
        "connections": pool.max_connections,
        "connections_per_address": pool.per_address,
        "requests_at_once": settings.max_requests,
        "bytes_at_once": settings.n_bytes_at_once,
    }
    _log.info("limits", extra={"facts": facts})
    if pool.max_connections < settings.max_connections:
        _log.warning(
            "only %d of %d connections fit into the limit on open files: raise it with 'ulimit -n'",
            pool.max_connections,
            settings.max_connections,
        )


def check_address(host: str, *, with_tls: bool, insecure: bool) -> None:
    """Raise an error if tokens would cross the network without encryption.

    >>> check_address("0.0.0.0", with_tls=False, insecure=False)
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.InvalidInputError: '0.0.0.0' can be reached from other computers...
    """
    if with_tls or insecure or _is_loopback(host):
        return
    raise InvalidInputError(
        f"{host!r} can be reached from other computers, and tokens would cross the network "
        "unencrypted: use --certfile and --keyfile, or --insecure behind a proxy that encrypts"
    )


def check_label_studio(url: str, *, insecure: bool) -> None:
    """Raise an error if the token of Label Studio would cross the network without encryption."""
    if not url or insecure:
        return
    address = parse_url(url)
    if not address.secure and not _is_loopback(address.host):
        raise InvalidInputError(
            f"Label Studio at {address} is another computer, and its token would cross the network "
            "unencrypted: use https, or --insecure in a network that nobody else can read"
        )


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidInputError(f"the host {host!r} is unknown: {error}") from error
    addresses = {str(entry[4][0]).partition("%")[0] for entry in found}
    return all(ipaddress.ip_address(address).is_loopback for address in addresses)


def _check_tls(certfile: Any, keyfile: Any) -> None:
    if (certfile is None) != (keyfile is None):
        raise InvalidInputError("certfile and keyfile must be used together")
    for path in (certfile, keyfile):
        if path is not None and not Path(path).is_file():
            raise FileNotFoundError(f"no such file: {str(path)!r}")
    if certfile is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certfile, keyfile)
        except ssl.SSLError as error:
            raise InvalidInputError(f"certificate and key cannot be used: {error}") from error


def _url(host: str, listener: socket.socket, *, with_tls: bool) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http{'s' if with_tls else ''}://{name}:{listener.getsockname()[1]}/"


def reuse_freed_memory() -> bool:
    """Tell the C library to reuse small pieces of freed memory; return whether it could.

    Returning the arrays of each batch to the system and requesting them again takes time. Large
    pieces, and everything beyond a limit, are still returned.
    """
    if sys.platform != "linux":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        # Another C library than glibc.
        return False
    options = {_M_MMAP_THRESHOLD: _MMAP_BYTES, _M_TRIM_THRESHOLD: _REUSED_BYTES}
    return all(set_option(option, n_bytes) == 1 for option, n_bytes in options.items())


def _announce(url: str, token: str | None, announce: Callable[[str], None] | None) -> None:
    _log.info("serving", extra={"facts": {"url": url}})
    if announce is not None:
        # Browsers do not send the fragment of an address, and the page removes it.
        announce(url if token is None else f"{url}#token={token}")


class Server(uvicorn.Server):
    """uvicorn's server, which refuses changes at shutdown and leaves the exit to the caller."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it is stopped, with the event loop that enforces our limits."""
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            runner.run(self.serve(sockets=sockets))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown."""
        self._service.refuse_changes()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the stop signals; the process continues afterwards, to save and close."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _run(
    server: Server, service: Service, listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Answer health checks at once, open the workspace in the background, close it at the end."""

    def open_service() -> None:
        try:
            service.open()
        # Raised below, in the main thread.
        except BaseException:  # noqa: BLE001
            server.should_exit = True
        else:
            on_ready()

    opener = threading.Thread(target=open_service, name="opening", daemon=True)
    opener.start()
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
        opener.join()
        service.close()
    if service.failure is not None:
        raise service.failure
    _log.info("stopped")
