"""Connections to one service, kept open between requests and shared by threads."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

__all__ = ["Address", "Connections", "StaleConnectionError", "address_of"]

# Idle ones beyond this many are closed; more may be in use at a time.
_MOST_IDLE = 16

Result = TypeVar("Result")


class StaleConnectionError(ConnectionError):
    """A connection kept from before was closed meanwhile; a fresh one may work at once."""


@dataclass(frozen=True)
class Address:
    """Where a service is."""

    secure: bool
    host: str
    port: int
    prefix: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.prefix}"


def address_of(url: str) -> Address:
    """Take a URL apart; raise a ``ValueError`` that says what one looks like."""
    allowed = "it must be like 'http://127.0.0.1:8080' or 'https://robot.example:8443'"
    if not isinstance(url, str):
        raise TypeError(f"url must be a str, got {type(url).__name__}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"url {url!r} cannot be used: {error}; {allowed}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable():
        raise ValueError(f"url {url!r} cannot be used: {allowed}")
    if parts.username is not None or parts.query or parts.fragment or " " in url:
        raise ValueError(
            f"url must name a host and perhaps a port and a path, nothing else; {allowed}"
        )
    secure = parts.scheme == "https"
    return Address(secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/"))


class Connections:
    """Open connections to one service; any number of threads may use them.

    Parameters
    ----------
    address : Address
        The service.
    timeout : float
        Seconds to wait for the service at each step: connecting, sending, receiving.
    ca_file : path or None
        Certificates to trust instead of the system's, for a service that signed its own.
    """

    def __init__(
        self, address: Address, timeout: float, ca_file: str | os.PathLike[str] | None
    ) -> None:
        self._address = address
        self._timeout = timeout
        self._context = ssl.create_default_context(cafile=ca_file) if address.secure else None
        self._idle: list[http.client.HTTPConnection] = []
        self._guard = threading.Lock()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        read: Callable[[http.client.HTTPResponse], Result],
    ) -> Result:
        """Send one request and read the answer; an error of the connection closes it."""
        connection, kept = self._take()
        try:
            try:
                _send(connection, method, self._address.prefix + path, body, dict(headers))
                answer = connection.getresponse()
            except ConnectionError as error:
                if kept:
                    raise StaleConnectionError(str(error)) from error
                raise
            result = read(answer)
            # What was not read to the end would be taken for the next answer.
            reusable = answer.isclosed() and not answer.will_close
        except BaseException:
            connection.close()
            raise
        self._give_back(connection, reusable=reusable)
        return result

    def close(self) -> None:
        """Close what is open; later requests open connections again."""
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._guard:
            if self._idle:
                return self._idle.pop(), True
        address = self._address
        if self._context is not None:
            return http.client.HTTPSConnection(
                address.host, address.port, timeout=self._timeout, context=self._context
            ), False
        return http.client.HTTPConnection(address.host, address.port, timeout=self._timeout), False

    def _give_back(self, connection: http.client.HTTPConnection, *, reusable: bool) -> None:
        with self._guard:
            if reusable and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _send(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
) -> None:
    if connection.sock is None:
        # Failing to connect is no early answer.
        connection.connect()
    try:
        connection.request(method, path, body, headers)
    except (BrokenPipeError, ConnectionResetError):
        # A service that refuses a large body stops reading and has said why; if it has not, asking
        # for its answer fails as well.
        return
