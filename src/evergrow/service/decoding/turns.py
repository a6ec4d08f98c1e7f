"""Whose image is decoded next: whoever took the least time of the decoders so far."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from evergrow.service.decoding.examining import Examined
from evergrow.service.decoding.refusals import DecoderError

__all__ = ["Batch", "Job", "TooManyImagesError", "Turns"]

# An ordinary photograph takes a tenth of it, on a busy computer too.
_SLOW_SECONDS = 0.5
_PACE_KEPT = 0.9


class TooManyImagesError(RuntimeError):
    """Too many images wait already; they may fit a little later."""


@dataclass(frozen=True, eq=False)
class Job:
    """One image of a request."""

    content: bytes
    thumbnail: bool
    batch: Batch
    result: Future[Examined] = field(default_factory=Future)


class Batch:
    """The images of one request.

    Parameters
    ----------
    owner : str
        Who sent them.
    contents : iterable of bytes
        The files.
    thumbnail : bool
        Whether small pictures are made too.
    """

    def __init__(self, owner: str, contents: Iterable[bytes], *, thumbnail: bool) -> None:
        self.owner = owner
        self.waiting = deque(Job(content, thumbnail, self) for content in contents)
        self.results = [job.result for job in self.waiting]
        # Time of decoders that its images took.
        self.seconds = 0.0


class Turns:
    """Images that wait, in an order in which nobody's images hold up those of others for long.

    The next one is of the owner whose images took the least time so far, so that few large images
    count as much as many small ones. Among the requests of one owner each has one image decoded in
    turn. Whose images take long leaves one decoder to others, who would wait for them otherwise.

    Parameters
    ----------
    most : int
        Images of one owner that may wait. One request may always wait, however many it has.
    n_decoders : int, default=1
        Images that are decoded at once.
    """

    def __init__(self, most: int, n_decoders: int = 1) -> None:
        self._most = most
        self._most_slow = max(1, n_decoders - 1)
        self._n_running: Counter[str] = Counter()
        # How long images of an owner take: the longest of late, forgotten by and by.
        self._pace: dict[str, float] = {}
        # As many as there are tokens: names come from valid ones only.
        self._batches: dict[str, deque[Batch]] = {}
        self._n_waiting: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        # Time of the owner whose turn was last: who comes anew begins there, and cannot save up.
        self._level = 0.0
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        """Images that no decoder has taken yet."""
        with self._changed:
            return sum(self._n_waiting.values())

    def put(self, batch: Batch) -> None:
        """Add the images of a request, all of them or none."""
        owner, n_images = batch.owner, len(batch.waiting)
        with self._changed:
            if self._closed:
                raise DecoderError("the service is stopping")
            n_waiting = self._n_waiting.get(owner, 0)
            if n_waiting and n_waiting + n_images > self._most:
                raise TooManyImagesError(
                    f"{n_waiting} images of this token wait already, and at most {self._most} may"
                )
            if not n_waiting:
                self._seconds[owner] = max(self._level, self._seconds.get(owner, 0.0))
            self._batches.setdefault(owner, deque()).append(batch)
            self._n_waiting[owner] = n_waiting + n_images
            self._changed.notify(n_images)

    def take(self) -> Job | None:
        """Wait for the next image; None at the end."""
        with self._changed:
            while not self._closed:
                waiting = [owner for owner, n in self._n_waiting.items() if n and self._may(owner)]
                if waiting:
                    return self._next(min(waiting, key=self._seconds.__getitem__))
                self._changed.wait()
            return None

    def _may(self, owner: str) -> bool:
        is_slow = self._pace.get(owner, 0.0) > _SLOW_SECONDS
        return not is_slow or self._n_running[owner] < self._most_slow

    def _next(self, owner: str) -> Job:
        self._level = self._seconds[owner]
        batches = self._batches[owner]
        batch = batches.popleft()
        job = batch.waiting.popleft()
        if batch.waiting:
            batches.append(batch)
        self._n_waiting[owner] -= 1
        self._n_running[owner] += 1
        return job

    def charge(self, batch: Batch, seconds: float) -> None:
        """Say that one image of a batch that was taken is done, and how long it took."""
        owner = batch.owner
        with self._changed:
            batch.seconds += seconds
            self._seconds[owner] += seconds
            self._pace[owner] = max(seconds, _PACE_KEPT * self._pace.get(owner, 0.0))
            self._n_running[owner] -= 1
            # Its owner may be allowed another one, which a waiting decoder can take.
            self._changed.notify()

    def drop(self, batch: Batch) -> list[Job]:
        """Take the images of a batch that still wait away."""
        with self._changed:
            dropped = list(batch.waiting)
            if dropped:
                batch.waiting.clear()
                self._batches[batch.owner].remove(batch)
                self._n_waiting[batch.owner] -= len(dropped)
            return dropped

    def close(self) -> list[Job]:
        """End all waiting; the images that nobody will decode."""
        with self._changed:
            self._closed = True
            left = [job for some in self._batches.values() for one in some for job in one.waiting]
            self._batches.clear()
            self._n_waiting.clear()
            self._changed.notify_all()
            return left
