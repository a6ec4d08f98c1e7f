"""A pool of HTTP connections to one service, shared by threads."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from evergrow.foundation.errors import InvalidInputError, InvalidTypeError

# Further idle connections are closed; more may be in use at a time.
_MAX_IDLE = 16

Result = TypeVar("Result")


class StaleConnectionError(ConnectionError):
    """An idle connection was closed by the service; a new one may work at once."""


@dataclass(frozen=True)
class Address:
    """The address of a service."""

    secure: bool
    host: str
    port: int
    prefix: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{self.prefix}"


def parse_url(url: str) -> Address:
    """Split a URL into its parts; raise an error if it is not valid."""
    allowed = "it must look like 'http://127.0.0.1:8080' or 'https://robot.example:8443'"
    if not isinstance(url, str):
        raise InvalidTypeError(f"url must be a str, got {type(url).__name__}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInputError(f"url {url!r} cannot be used: {error}; {allowed}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable():
        raise InvalidInputError(f"url {url!r} cannot be used: {allowed}")
    if parts.username is not None or parts.query or parts.fragment or " " in url:
        raise InvalidInputError(f"url must have only a host, a port and a path; {allowed}")
    secure = parts.scheme == "https"
    return Address(secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/"))


class Connections:
    """Open connections to one service; any number of threads may use them.

    The timeout is for each step: connecting, sending, receiving. ``ca_file`` has certificates to
    trust instead of the system's, for a self-signed certificate.
    """

    def __init__(
        self, address: Address, timeout: float, ca_file: str | os.PathLike[str] | None
    ) -> None:
        self._address = address
        self._timeout = timeout
        self._context = ssl.create_default_context(cafile=ca_file) if address.secure else None
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        read: Callable[[http.client.HTTPResponse], Result],
    ) -> Result:
        """Send one request and read the response; after an error the connection is closed."""
        connection, was_idle = self._borrow()
        try:
            try:
                _send(connection, method, self._address.prefix + path, body, dict(headers))
                response = connection.getresponse()
            except ConnectionError as error:
                if was_idle:
                    raise StaleConnectionError(str(error)) from error
                raise
            result = read(response)
            # The unread rest of a response would be mistaken for the next one.
            reusable = response.isclosed() and not response.will_close
        except BaseException:
            connection.close()
            raise
        self._release(connection, reusable=reusable)
        return result

    def close(self) -> None:
        """Close idle connections; later requests open new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _borrow(self) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._idle:
                return self._idle.pop(), True
        address = self._address
        if self._context is not None:
            return http.client.HTTPSConnection(
                address.host, address.port, timeout=self._timeout, context=self._context
            ), False
        return http.client.HTTPConnection(address.host, address.port, timeout=self._timeout), False

    def _release(self, connection: http.client.HTTPConnection, *, reusable: bool) -> None:
        with self._lock:
            if reusable and len(self._idle) < _MAX_IDLE:
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
        # Outside the try block: a failure to connect must be raised.
        connection.connect()
    try:
        connection.request(method, path, body, headers)
    except (BrokenPipeError, ConnectionResetError):
        # A service that refuses a large body stops reading and has sent its response; if it has
        # not, reading the response fails as well.
        return
