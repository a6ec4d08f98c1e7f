"""A pool of decoder processes, each driven by its own thread, with timeouts and a fair queue.

The next image is of the client that used the least decoding time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Self

from evergrow.service.decoding.decoder import DecoderLimits, DecoderProcess
from evergrow.service.decoding.protocol import DecoderError, PreparedImage, RefusedImageError
from evergrow.vision.embedding.preprocessing import Preprocessing

# Interval between two checks of the timeout, as a fraction of the timeout.
_CHECK_INTERVAL = 0.05
# Grace period at shutdown for the images that are being decoded.
_STOP_SECONDS = 1.0
# An ordinary photograph takes a tenth of this, even on a busy computer.
_SLOW_SECONDS = 0.5
_PACE_DECAY = 0.9

_log = logging.getLogger("evergrow.service")


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
    """The images of one HTTP request of a client, with or without thumbnails."""

    def __init__(self, owner: str, contents: Iterable[bytes], *, thumbnail: bool) -> None:
        self.owner = owner
        self.waiting = deque(DecodeJob(content, thumbnail, self) for content in contents)
        self.results = [job.result for job in self.waiting]
        # Decoding time that its images used so far.
        self.seconds = 0.0


class FairQueue:
    """Queued images, ordered so that no client delays the others for long.

    The next image is of the client whose images used the least decoding time so far, so a few large
    images count as much as many small ones. The requests of one client are served round robin, one
    image at a time. A client with slow images may not occupy all decoders: one is left to the
    others. A client may queue ``max_waiting`` images; its first request is always accepted, however
    many images it has.
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


class DecoderPool:
    """Decode images in child processes; a context manager.

    Use at least two processes, so that one malicious image does not block the others. A client may
    queue ``max_waiting`` images.
    """

    def __init__(
        self,
        preprocessing: Preprocessing,
        *,
        n_processes: int = 2,
        limits: DecoderLimits | None = None,
        max_waiting: int = 512,
    ) -> None:
        self._limits = limits or DecoderLimits()
        self._children = [
            DecoderProcess(preprocessing, self._limits) for _ in range(max(1, n_processes))
        ]
        self._queue = FairQueue(max_waiting, len(self._children))
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._serve, args=(child,), name="decoder", daemon=True)
            for child in self._children
        ]
        self._watchdog = threading.Thread(
            target=self._enforce_timeouts, name="decoder watchdog", daemon=True
        )

    def __enter__(self) -> Self:
        """Start all decoders without waiting until they are ready."""
        for child in self._children:
            child.start()
        for thread in (*self._threads, self._watchdog):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Drop queued images, let running ones finish within a grace period, stop the decoders."""
        for job in self._queue.close():
            _fail(job, DecoderError("the service is stopping"))
        until = time.monotonic() + _STOP_SECONDS
        for thread, child in zip(self._threads, self._children, strict=True):
            thread.join(max(0.0, until - time.monotonic()))
            # Repeated, in case the thread was just starting another process.
            while thread.is_alive():
                child.terminate()
                thread.join(_STOP_SECONDS)
        self._stopping.set()
        self._watchdog.join()
        for child in self._children:
            child.stop()

    def submit(
        self, content: bytes, *, thumbnail: bool = False, owner: str = ""
    ) -> Future[PreparedImage]:
        """Queue one image; the future gives a :class:`PreparedImage` or a ``RefusedImageError``."""
        return self.submit_all([content], thumbnail=thumbnail, owner=owner).results[0]

    def submit_all(
        self, contents: Sequence[bytes], *, thumbnail: bool = False, owner: str = ""
    ) -> DecodeRequest:
        """Queue the images of a request; a ``TooManyImagesError`` if its owner has too many.

        The ``results`` are futures of :class:`PreparedImage`, or of a ``RefusedImageError``.
        """
        request = DecodeRequest(owner, contents, thumbnail=thumbnail)
        self._queue.put(request)
        return request

    def cancel(self, request: DecodeRequest) -> None:
        """Drop the images of a request that are still queued."""
        for job in self._queue.drop(request):
            job.result.cancel()

    @property
    def n_waiting(self) -> int:
        """Number of queued images."""
        return len(self._queue)

    @property
    def pids(self) -> list[int]:
        """Process ids of the decoders."""
        return [child.pid for child in self._children if child.pid is not None]

    def _serve(self, child: DecoderProcess) -> None:
        self._say_if_not_sandboxed(child)
        while (job := self._queue.take()) is not None:
            began = time.monotonic()
            try:
                if not job.result.set_running_or_notify_cancel():
                    self._charge(job, began)
                    continue
                self._check_budget(job.request)
                child.wait_until_ready()
                # The time to start a decoder is not charged to the image.
                began = time.monotonic()
                found = child.decode(job.content, thumbnail=job.thumbnail)
            # Any error belongs to the request of this image; the thread serves the next one.
            except Exception as error:  # noqa: BLE001
                self._charge(job, began)
                job.result.set_exception(error)
            else:
                self._charge(job, began)
                job.result.set_result(found)
            # Release the image: the next one may come much later.
            del job

    def _say_if_not_sandboxed(self, child: DecoderProcess) -> None:
        try:
            child.wait_until_ready()
        # The first image tries again, and reports the error.
        except DecoderError:
            return
        # All decoders are alike: one of them says it.
        if child.no_sandbox is not None and child is self._children[0]:
            _log.warning(
                "decoders have no sandbox: an image that takes one over has the rights of the "
                "service",
                extra={"facts": {"reason": child.no_sandbox}},
            )

    def _charge(self, job: DecodeJob, began: float) -> None:
        self._queue.charge(job.request, time.monotonic() - began)

    def _check_budget(self, request: DecodeRequest) -> None:
        max_seconds = self._limits.seconds_together
        if request.seconds > max_seconds:
            raise RefusedImageError(
                "decoder",
                f"the images before it took longer than {max_seconds:g} seconds: "
                "send fewer images per request",
            )

    def _enforce_timeouts(self) -> None:
        interval = self._limits.seconds * _CHECK_INTERVAL
        while not self._stopping.wait(interval):
            now = time.monotonic()
            for child in self._children:
                child.kill_if_late(now)


def _fail(job: DecodeJob, error: Exception) -> None:
    if job.result.set_running_or_notify_cancel():
        job.result.set_exception(error)
