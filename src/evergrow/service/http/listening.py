"""Where connections come in: how many at once, and how long they may take to agree on a key."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
import weakref
from typing import Any

__all__ = ["EventLoop", "Listening", "connection_limit"]

_BACKLOG = 512
_HANDSHAKE_SECONDS = 15.0
_MOST_CONNECTIONS = 1000
# Files that the service wants to be able to have open: all connections, and plenty beside them.
_WANTED_FILES = 65_536
# The other half is for the workspace, the decoders and whatever libraries open.
_SHARE_OF_FILES = 0.5
# All that select() can watch on Windows.
_SOCKETS_ON_WINDOWS = 512


class Listening(socket.socket):
    """A socket that listens, and closes connections beyond a number as they come.

    Connections count from the moment they are accepted: those that never finish their handshake
    are seen by nobody else.

    Parameters
    ----------
    host, port : str and int
        Where to listen.
    most : int
        Connections at once.
    """

    def __init__(self, host: str, port: int, *, most: int) -> None:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # The protocol by name: only where asyncio sees it is nothing held back to go with more, and
        # else the end of an answer would come 40 ms after its beginning.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._most = most
        self._open: weakref.WeakSet[_Accepted] = weakref.WeakSet()
        self._has_failed = False
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind((host, port))
            self.listen(_BACKLOG)
            self.set_inheritable(False)
        except OSError as error:
            self.close()
            raise OSError(
                error.errno, f"cannot listen at {host} port {port}: {error.strerror}"
            ) from error

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; as if there were none when it is one too many."""
        try:
            plain, address = super().accept()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            # asyncio waits a second after a failure, but tries as often as its backlog is long
            # before, and logs each of them: the first is enough.
            self._has_failed = not self._has_failed
            if self._has_failed:
                raise
            raise BlockingIOError(*error.args) from error
        if len(self._open) >= self._most:
            plain.close()
            raise BlockingIOError("there are too many connections")
        accepted = _Accepted(plain, self._open)
        return accepted, address


class _Accepted(socket.socket):
    """A connection that counts until it is closed."""

    def __init__(self, plain: socket.socket, among: weakref.WeakSet[_Accepted]) -> None:
        super().__init__(plain.family, plain.type, plain.proto, plain.detach())
        self._among = among
        among.add(self)

    def close(self) -> None:
        self._among.discard(self)
        super().close()


class EventLoop(asyncio.SelectorEventLoop):
    """asyncio's loop that accepts by the socket's own method and waits less long for handshakes."""

    async def create_server(self, *arguments: Any, **options: Any) -> asyncio.Server:
        """Serve, with a limit on the time that a handshake may take."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", _HANDSHAKE_SECONDS)
        return await super().create_server(*arguments, **options)


def connection_limit() -> int:
    """Connections at once; before that, as many files may be open as the system allows."""
    return max(1, min(_MOST_CONNECTIONS, int(_files() * _SHARE_OF_FILES)))


if sys.platform == "win32":

    def _files() -> int:
        """Sockets that can be watched."""
        return _SOCKETS_ON_WINDOWS

else:
    import resource

    def _files() -> int:
        """Files that may be open at once, after asking for more where they are few."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
        if soft == resource.RLIM_INFINITY or soft >= most:
            return _WANTED_FILES if soft == resource.RLIM_INFINITY else soft
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        except (OSError, ValueError):
            # Some systems allow less than they say.
            return soft
        return most
