"""Which connections stay open when there are too many.

A new connection always finds a place, except while all places are used by requests with valid
tokens: the connection that made no progress for the longest time is closed for it, those without a
valid token first, and of these the ones that had a response or sent a refused token; those that
teach last. So clients that hold connections open cannot lock others out, and health checks are
answered at any time. The connections of one address that showed no token, and the idle ones of one
token, are limited as well: beyond that they close each other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

from evergrow.service.http.fairness import Actor, address_group

# The first ranks are closed first: connections without a valid token that had a response or whose
# token was refused ("answered"), those that had none yet, and those with a token that may read and
# teach.
Rank = Literal["answered", "new", "read", "teach"]
_RANKS: tuple[Rank, ...] = ("answered", "new", "read", "teach")
# An address, or a token, may have this part of all connections.
_SHARE = 4

Peer = tuple[Any, ...]
Ordered = OrderedDict["PooledConnection", None]


class PooledConnection:
    """The place of one open connection."""

    __slots__ = ("address", "close", "is_working", "owner", "peer", "rank")

    def __init__(self, peer: Peer, close: Callable[[], object]) -> None:
        self.peer = peer
        self.close = close
        self.address = address_group(str(peer[0])) if peer else ""
        self.rank: Rank = "new"
        # The token or, without one, the address.
        self.owner = self.address
        # Whether it serves a request with a valid token: then it is not closed for others. The
        # number of such requests is limited.
        self.is_working = False


class ConnectionPool:
    """The open connections.

    Parameters
    ----------
    max_connections : int
        Maximum number of connections.
    per_address : int, default=0
        Maximum number of connections of one address without a valid token; 0 for a quarter of all.
    on_closed : callable, default=None
        Called with the address and the reason whenever a connection is closed for another one.
    """

    def __init__(
        self,
        max_connections: int,
        *,
        per_address: int = 0,
        on_closed: Callable[[str, str], None] | None = None,
    ) -> None:
        share = max(1, max_connections // _SHARE)
        self.max_connections = max_connections
        self.per_address = min(per_address or share, max_connections)
        self.per_token = share
        self.on_closed = on_closed
        self._open: dict[Peer, PooledConnection] = {}
        # Connections that may be closed, those without progress for the longest time first.
        self._by_rank: dict[Rank, Ordered] = {rank: OrderedDict() for rank in _RANKS}
        self._by_owner: dict[tuple[Rank, str], Ordered] = {}

    def __len__(self) -> int:
        """Number of open connections."""
        return len(self._open)

    def is_crowded(self, peer: Peer) -> bool:
        """Whether another connection has to be closed for a new one."""
        address = address_group(str(peer[0])) if peer else ""
        return len(self._open) >= self.max_connections or self._n_of(address) >= self.per_address

    def admit(self, peer: Peer, close: Callable[[], object]) -> PooledConnection | None:
        """Add a new connection; None if the pool is full and the caller must close it.

        ``close`` closes it at once if its place is needed.
        """
        found = PooledConnection(peer, close)
        if self._n_of(found.address) >= self.per_address:
            answered = self._group("answered", found.address)
            oldest = answered or self._group("new", found.address)
            self._evict(oldest, "too many connections of this address")
        elif len(self._open) >= self.max_connections:
            closable = next((self._by_rank[rank] for rank in _RANKS if self._by_rank[rank]), None)
            if closable is None:
                self._report(found.address, "all connections are in use")
                return None
            self._evict(closable, "too many connections")
        self._open[peer] = found
        self._add(found)
        return found

    def find(self, peer: Peer) -> PooledConnection | None:
        """Return the place of a connection; None if it was closed."""
        return self._open.get(peer)

    def progress(self, one: PooledConnection) -> None:
        """Note that a connection received something."""
        if not one.is_working and one in self._by_rank[one.rank]:
            self._by_rank[one.rank].move_to_end(one)
            self._group(one.rank, one.owner).move_to_end(one)

    def begin(self, one: PooledConnection, actor: Actor) -> None:
        """Note that a request with a valid token is served: the connection must not be closed."""
        self._remove(one)
        one.is_working = True
        one.rank, one.owner = ("teach" if actor.teaches else "read"), actor.name

    def refuse(self, one: PooledConnection) -> None:
        """Note that a request had no valid token: from now on the connection is closed first."""
        self._move(one, "answered")

    def end(self, one: PooledConnection) -> None:
        """Note that the response to a request is complete."""
        if not one.is_working:
            if one.rank == "new":
                self._move(one, "answered")
        elif self._open.get(one.peer) is one:
            one.is_working = False
            self._add(one)
            idle = self._group(one.rank, one.owner)
            if len(idle) > self.per_token:
                self._evict(idle, "too many idle connections of this token")

    def discard(self, one: PooledConnection) -> None:
        """Remove a connection that is closed."""
        # The same address and port may belong to a new connection already.
        if self._open.get(one.peer) is one:
            del self._open[one.peer]
        self._remove(one)

    def _move(self, one: PooledConnection, rank: Rank) -> None:
        """Give a connection without a valid token another rank."""
        if self._open.get(one.peer) is one:
            self._remove(one)
            one.is_working = False
            one.rank, one.owner = rank, one.address
            self._add(one)

    def _n_of(self, address: str) -> int:
        """Number of connections of an address without a valid token."""
        return len(self._group("answered", address)) + len(self._group("new", address))

    def _group(self, rank: Rank, owner: str) -> Ordered:
        return self._by_owner.get((rank, owner)) or OrderedDict()

    def _add(self, one: PooledConnection) -> None:
        self._by_rank[one.rank][one] = None
        self._by_owner.setdefault((one.rank, one.owner), OrderedDict())[one] = None

    def _remove(self, one: PooledConnection) -> None:
        self._by_rank[one.rank].pop(one, None)
        group = self._by_owner.get((one.rank, one.owner))
        if group is not None:
            group.pop(one, None)
            if not group:
                del self._by_owner[one.rank, one.owner]

    def _evict(self, among: Ordered, reason: str) -> None:
        victim = next(iter(among))
        self.discard(victim)
        self._report(victim.address, reason)
        victim.close()

    def _report(self, address: str, reason: str) -> None:
        if self.on_closed is not None:
            self.on_closed(address, reason)
