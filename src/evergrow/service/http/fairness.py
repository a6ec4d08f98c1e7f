"""Shares of tokens and addresses: none of them can use up what all of them need.

Amounts (bytes in memory, requests at a time) are limited by an :class:`Allowance`, rates by a
:class:`Pacer`, and queued work is ordered by a :class:`FairQueue`.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, Literal, Self, TypeVar

AccessScope = Literal["read", "teach"]
Item = TypeVar("Item")
Result = TypeVar("Result")

# Work for teaching counts this many times less than work for reading: under load a token that
# teaches gets four fifths of the processors, and one that predicts the rest.
TEACHING_WEIGHT = 4.0
# More addresses are not remembered: the oldest is forgotten.
_MAX_ADDRESSES = 4096
_IPV6_PREFIX = 64


@dataclass(frozen=True)
class Actor:
    """The owner of a valid token."""

    name: str
    scopes: frozenset[str]

    @property
    def teaches(self) -> bool:
        """Whether the token may teach."""
        return "teach" in self.scopes

    @property
    def weight(self) -> float:
        """How much less its work counts than that of a token that only reads."""
        return TEACHING_WEIGHT if self.teaches else 1.0


@lru_cache(_MAX_ADDRESSES)
def address_group(host: str) -> str:
    """Return the network that an address is counted with: one customer has a whole IPv6 prefix.

    >>> address_group("192.0.2.7"), address_group("::ffff:192.0.2.7"), address_group("2001:db8::7")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        # A client without an IP address, such as one on a Unix socket.
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))
    return str(address)


class Allowance:
    """An amount that all tokens share, with a limit for each and a reserve for those that teach.

    Parameters
    ----------
    total : int
        Limit for all tokens together.
    per_token : int
        Limit for one token.
    for_readers : int
        Limit for all tokens together that may not teach; the rest is the reserve.

    Examples
    --------
    >>> bytes_in_memory = Allowance(total=100, per_token=60, for_readers=70)
    >>> robot, camera = (Actor(name, frozenset({"read"})) for name in ("robot", "camera"))
    >>> teacher = Actor("teacher", frozenset({"read", "teach"}))
    >>> bytes_in_memory.take(robot, 60), bytes_in_memory.take(robot, 1)
    (True, False)
    >>> bytes_in_memory.take(camera, 20), bytes_in_memory.take(teacher, 20)
    (False, True)
    """

    def __init__(self, total: int, per_token: int, for_readers: int) -> None:
        self._total = total
        self._per_token = per_token
        self._for_readers = for_readers
        self._used = 0
        self._used_by_readers = 0
        # Holds only tokens that use something at the moment.
        self._used_by: Counter[str] = Counter()

    def take(self, actor: Actor, amount: int) -> bool:
        """Take an amount and return True, or return False if it is too much now."""
        if (
            self._used + amount > self._total
            or self._used_by[actor.name] + amount > self._per_token
            or (not actor.teaches and self._used_by_readers + amount > self._for_readers)
        ):
            return False
        self._add(actor, amount)
        return True

    def give_back(self, actor: Actor, amount: int) -> None:
        """Return an amount that was taken."""
        self._add(actor, -amount)

    def _add(self, actor: Actor, amount: int) -> None:
        self._used += amount
        if not actor.teaches:
            self._used_by_readers += amount
        self._used_by[actor.name] += amount
        if not self._used_by[actor.name]:
            del self._used_by[actor.name]


class Pacer:
    """Spreads the requests, or bytes, of each address or token: so many per second after a burst.

    A request that comes too early is not refused but delayed, so that a client that ignores
    refusals is slowed as well.

    Examples
    --------
    >>> pacer = Pacer(rate=2, burst=1, max_delay=0.5, clock=lambda: 0.0)
    >>> pacer.delay("a"), pacer.delay("a"), pacer.delay("a"), pacer.delay("b")
    (0.0, 0.5, None, 0.0)
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        max_delay: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # When the next request of an address is due, the oldest address first.
        self._due: OrderedDict[str, float] = OrderedDict()
        self._interval = 1.0 / rate
        self._burst_seconds = burst * self._interval
        self._max_delay = max_delay
        self._clock = clock

    def delay(self, address: str, amount: int = 1) -> float | None:
        """Return the seconds to wait; None if too many requests of the address wait already."""
        now = self._clock()
        due = max(self._due.get(address, -math.inf), now - self._burst_seconds)
        due += amount * self._interval
        delay = max(0.0, due - now)
        if delay > self._max_delay:
            return None
        self._due[address] = due
        self._due.move_to_end(address)
        if len(self._due) > _MAX_ADDRESSES:
            self._due.popitem(last=False)
        return delay


class FairQueue(Generic[Item]):
    """Queued items by owner; the next one is of the owner that was served least.

    An owner that was idle starts at the level of the one that was served last: it cannot save up
    service. The caller must hold a lock.

    Examples
    --------
    >>> queue = FairQueue[str]()
    >>> for item in ("a1", "a2", "a3"):
    ...     queue.put("a", item, cost=1.0)
    >>> queue.put("b", "b1", cost=1.0)
    >>> [queue.pop() for _ in range(4)]
    [('a', 'a1'), ('b', 'b1'), ('a', 'a2'), ('a', 'a3')]
    """

    def __init__(self) -> None:
        # Only owners with queued items.
        self._items: dict[str, deque[tuple[Item, float]]] = {}
        # Bounded by the number of tokens: owners are names of valid tokens.
        self._served: dict[str, float] = {}
        self._level = 0.0
        self._n_items = 0

    def __len__(self) -> int:
        """Number of queued items."""
        return self._n_items

    @property
    def owners(self) -> Iterable[str]:
        """Owners with queued items."""
        return self._items.keys()

    def put(self, owner: str, item: Item, cost: float) -> None:
        """Queue an item."""
        queued = self._items.get(owner)
        if queued is None:
            queued = self._items[owner] = deque()
            self._served[owner] = max(self._level, self._served.get(owner, 0.0))
        queued.append((item, cost))
        self._n_items += 1

    def pop(self, may_run: Callable[[str], bool] = lambda _: True) -> tuple[str, Item] | None:
        """Return the next item and its owner; None if no owner that may run has one."""
        ready = [owner for owner in self._items if may_run(owner)]
        if not ready:
            return None
        owner = min(ready, key=self._served.__getitem__)
        queued = self._items[owner]
        item, cost = queued.popleft()
        if not queued:
            del self._items[owner]
        self._level = self._served[owner]
        self._served[owner] += cost
        self._n_items -= 1
        return owner, item


@dataclass(frozen=True, eq=False)
class _Call:
    function: Callable[[], Any]
    result: Future[Any]


class QueueThreads(ABC, Generic[Item]):
    """Threads that serve the items of a :class:`FairQueue`; a context manager.

    ``_changed`` must be held to use the queue, and notified of new items. Once ``_stopping`` is
    True, the threads serve what is queued and end.
    """

    def __init__(self, n_threads: int, name: str) -> None:
        self._queue: FairQueue[Item] = FairQueue()
        self._changed = threading.Condition()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._serve, args=(number,), name=name, daemon=True)
            for number in range(n_threads)
        ]

    def __enter__(self) -> Self:
        """Start the threads."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Finish the queued items, then stop the threads."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    @abstractmethod
    def _serve(self, number: int) -> None:
        """Serve items until the end; ``number`` is that of the thread."""

    def _require_running(self) -> None:
        if self._stopping:
            raise RuntimeError("the service is stopping")


class FairThreads(QueueThreads[_Call]):
    """Threads that call functions; tokens take turns."""

    def submit(self, actor: Actor, function: Callable[[], Result]) -> Future[Result]:
        """Queue a call for a token."""
        call = _Call(function, Future())
        with self._changed:
            self._require_running()
            self._queue.put(actor.name, call, 1.0 / actor.weight)
            self._changed.notify()
        return call.result

    def _serve(self, number: int) -> None:  # noqa: ARG002
        while (call := self._next()) is not None:
            if call.result.set_running_or_notify_cancel():
                try:
                    found = call.function()
                # Any error belongs to the request; the thread serves the next one.
                except BaseException as error:  # noqa: BLE001
                    call.result.set_exception(error)
                else:
                    call.result.set_result(found)
                    del found
            # Release the request: the next one may come much later.
            del call

    def _next(self) -> _Call | None:
        with self._changed:
            while not self._queue and not self._stopping:
                self._changed.wait()
            found = self._queue.pop()
            return None if found is None else found[1]
