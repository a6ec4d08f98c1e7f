"""A fair queue of images: the next image is of the client that used the least decoding time."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from evergrow.service.decoding.protocol import DecoderError, PreparedImage

# An ordinary photograph takes a tenth of this, even on a busy computer.
_SLOW_SECONDS = 0.5
_PACE_DECAY = 0.9


class TooManyImagesError(RuntimeError):
    """The client has too many queued images; it may retry later."""


@dataclass(frozen=True, eq=False)
class DecodeJob:
    """One image of a request."""

    content: bytes
    thumbnail: bool
    request: DecodeRequest
    result: Future[PreparedImage] = field(default_factory=Future)


class DecodeRequest:
    """The images of one HTTP request.

    Parameters
    ----------
    owner : str
        The client that sent them.
    contents : iterable of bytes
        The image files.
    thumbnail : bool
        Whether to make thumbnails too.
    """

    def __init__(self, owner: str, contents: Iterable[bytes], *, thumbnail: bool) -> None:
        self.owner = owner
        self.waiting = deque(DecodeJob(content, thumbnail, self) for content in contents)
        self.results = [job.result for job in self.waiting]
        # Decoding time that its images used so far.
        self.seconds = 0.0


class FairQueue:
    """Queued images, ordered so that no client delays the others for long.

    The next image is of the client whose images used the least decoding time so far, so a few
    large images count as much as many small ones. The requests of one client are served round
    robin, one image at a time. A client with slow images may not occupy all decoders: one is left
    to the others.

    Parameters
    ----------
    max_waiting : int
        Maximum number of queued images of one client. The first request is always accepted,
        however many images it has.
    n_decoders : int, default=1
        Images that are decoded in parallel.
    """

    def __init__(self, max_waiting: int, n_decoders: int = 1) -> None:
        self._max_waiting = max_waiting
        self._max_slow = max(1, n_decoders - 1)
        self._n_running: Counter[str] = Counter()
        # Recent maximum of the seconds per image of a client, which decays.
        self._pace: dict[str, float] = {}
        # These tables are bounded by the number of tokens: owners are names of valid tokens.
        self._requests: dict[str, deque[DecodeRequest]] = {}
        self._n_waiting: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        # Time used by the client that was served last. A client that was idle starts from here: it
        # cannot save up time.
        self._level = 0.0
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        """Number of queued images."""
        with self._changed:
            return sum(self._n_waiting.values())

    def put(self, request: DecodeRequest) -> None:
        """Add the images of a request, all of them or none."""
        owner, n_images = request.owner, len(request.waiting)
        with self._changed:
            if self._closed:
                raise DecoderError("the service is stopping")
            n_waiting = self._n_waiting.get(owner, 0)
            if n_waiting and n_waiting + n_images > self._max_waiting:
                raise TooManyImagesError(
                    f"{n_waiting} images of this token are queued; the limit is "
                    f"{self._max_waiting}, so retry later"
                )
            if not n_waiting:
                self._seconds[owner] = max(self._level, self._seconds.get(owner, 0.0))
            self._requests.setdefault(owner, deque()).append(request)
            self._n_waiting[owner] = n_waiting + n_images
            self._changed.notify(n_images)

    def take(self) -> DecodeJob | None:
        """Wait for the next image; None once the queue is closed."""
        with self._changed:
            while not self._closed:
                ready = [
                    owner for owner, n in self._n_waiting.items() if n and self._may_run(owner)
                ]
                if ready:
                    return self._pop(min(ready, key=self._seconds.__getitem__))
                self._changed.wait()
            return None

    def _may_run(self, owner: str) -> bool:
        is_slow = self._pace.get(owner, 0.0) > _SLOW_SECONDS
        return not is_slow or self._n_running[owner] < self._max_slow

    def _pop(self, owner: str) -> DecodeJob:
        self._level = self._seconds[owner]
        requests = self._requests[owner]
        request = requests.popleft()
        job = request.waiting.popleft()
        if request.waiting:
            requests.append(request)
        self._n_waiting[owner] -= 1
        self._n_running[owner] += 1
        return job

    def charge(self, request: DecodeRequest, seconds: float) -> None:
        """Record that one image that was taken is done, and how long it took."""
        owner = request.owner
        with self._changed:
            request.seconds += seconds
            self._seconds[owner] += seconds
            self._pace[owner] = max(seconds, _PACE_DECAY * self._pace.get(owner, 0.0))
            self._n_running[owner] -= 1
            # The client may now be allowed another image, which an idle decoder can take.
            self._changed.notify()

    def drop(self, request: DecodeRequest) -> list[DecodeJob]:
        """Remove and return the images of a request that are still queued."""
        with self._changed:
            dropped = list(request.waiting)
            if dropped:
                request.waiting.clear()
                self._requests[request.owner].remove(request)
                self._n_waiting[request.owner] -= len(dropped)
            return dropped

    def close(self) -> list[DecodeJob]:
        """Close the queue and return the images that will not be decoded."""
        with self._changed:
            self._closed = True
            left = [
                job
                for requests in self._requests.values()
                for request in requests
                for job in request.waiting
            ]
            self._requests.clear()
            self._n_waiting.clear()
            self._changed.notify_all()
            return left
