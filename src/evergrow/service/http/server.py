"""Serving a workspace until someone stops it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from evergrow.service.http.app import create_app
from evergrow.service.http.connections import Connection
from evergrow.service.http.listening import EventLoop, Listening, connection_limit
from evergrow.service.http.logs import logs_on_stderr
from evergrow.service.http.memory import keep_freed_memory
from evergrow.service.http.settings import Settings
from evergrow.service.http.state import Service

__all__ = ["Server", "check_address", "serve"]

_KEEP_ALIVE_SECONDS = 30
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

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
    settings: Settings | None = None,
    announce: Callable[[str], None] | None = None,
    **limits: Any,
) -> None:
    """Serve a workspace over HTTP until SIGINT or SIGTERM, then finish what was taken.

    Parameters
    ----------
    folder : path
        The workspace.
    host : str, default="127.0.0.1"
        Address to listen at. Other computers reach another one than the default.
    port : int, default=8080
        Port; 0 for any that is free.
    certfile, keyfile : path, default=None
        Certificate and key for TLS, PEM. Browsers allow a camera over TLS and on localhost only.
    insecure : bool, default=False
        Listen for other computers without TLS, as behind a proxy that has it. Tokens and pictures
        can be read on the way otherwise, so it is refused.
    json_logs : bool, default=False
        Write the log as JSON lines.
    settings : Settings, default=None
        Limits.
    announce : callable, default=None
        Told the address when requests can be served.
    **limits : dict
        Single values of :class:`~evergrow.service.http.settings.Settings`, such as ``rate``,
        ``max_request_bytes`` and ``decoders``; None for the usual one.

    Raises
    ------
    evergrow.WorkspaceError
        If the folder is no workspace, is damaged, or another process has it.
    ValueError, OSError
        If it is not possible, or not safe, to listen there.
    """
    settings = settings or Settings(
        **{name: value for name, value in limits.items() if value is not None}
    )
    _check_tls(certfile, keyfile)
    check_address(host, with_tls=certfile is not None, insecure=insecure)
    listening = Listening(host, port, most=connection_limit())
    keep_freed_memory()
    service = Service(folder, settings)
    config = uvicorn.Config(
        create_app(service),
        http=Connection,
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
    url = _url(host, listening, with_tls=certfile is not None)
    with logs_on_stderr(json_lines=json_logs):
        _run(Server(config, service), service, listening, lambda: _say(url, announce))


def check_address(host: str, *, with_tls: bool, insecure: bool) -> None:
    """Raise a ``ValueError`` if tokens would cross a network that anybody can read.

    >>> check_address("0.0.0.0", with_tls=False, insecure=False)
    Traceback (most recent call last):
    ...
    ValueError: '0.0.0.0' can be reached by other computers, and tokens would cross the network ...
    """
    if with_tls or insecure or _is_loopback(host):
        return
    raise ValueError(
        f"{host!r} can be reached by other computers, and tokens would cross the network in the "
        "clear: give --certfile and --keyfile, or --insecure behind a proxy that encrypts"
    )


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"the host {host!r} is not known: {error}") from error
    addresses = {str(entry[4][0]).partition("%")[0] for entry in found}
    return all(ipaddress.ip_address(address).is_loopback for address in addresses)


def _check_tls(certfile: Any, keyfile: Any) -> None:
    if (certfile is None) != (keyfile is None):
        raise ValueError("certfile and keyfile must be given together")
    for path in (certfile, keyfile):
        if path is not None and not Path(path).is_file():
            raise FileNotFoundError(f"there is no file {str(path)!r}")
    if certfile is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certfile, keyfile)
        except ssl.SSLError as error:
            raise ValueError(f"certificate and key cannot be used: {error}") from error


def _url(host: str, listening: socket.socket, *, with_tls: bool) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http{'s' if with_tls else ''}://{name}:{listening.getsockname()[1]}/"


def _say(url: str, announce: Callable[[str], None] | None) -> None:
    _log.info("serving", extra={"facts": {"url": url}})
    if announce is not None:
        announce(url)


class Server(uvicorn.Server):
    """uvicorn, told apart from it: stopping begins with no further changes, and ends with us."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until someone stops it, with the loop that our limits are made for."""
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            runner.run(self.serve(sockets=sockets))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self._service.refuse_changes()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals that stop; the process goes on after them, to save and close."""
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
    server: Server, service: Service, listening: socket.socket, opened: Callable[[], None]
) -> None:
    """Answer about health at once, open the workspace meanwhile, close it at the end."""

    def opening() -> None:
        try:
            service.open()
        # Told by whoever started the service.
        except BaseException:  # noqa: BLE001
            server.should_exit = True
        else:
            opened()

    opener = threading.Thread(target=opening, name="opening", daemon=True)
    opener.start()
    try:
        server.run(sockets=[listening])
    finally:
        listening.close()
        opener.join()
        service.close()
    if service.failure is not None:
        raise service.failure
    _log.info("stopped")
