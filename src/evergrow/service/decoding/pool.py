"""A pool of decoder processes, each driven by its own thread, with timeouts."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Self

from evergrow.service.decoding.decoder import DecoderLimits, DecoderProcess
from evergrow.service.decoding.fair_queue import DecodeJob, DecodeRequest, FairQueue
from evergrow.service.decoding.protocol import DecoderError, PreparedImage, RefusedImageError
from evergrow.vision.embedding.preprocessing import Preprocessing

# Interval between two checks of the timeout, as a fraction of the timeout.
_CHECK_INTERVAL = 0.05
# Grace period at shutdown for the images that are being decoded.
_STOP_SECONDS = 1.0


class DecoderPool:
    """Decode images in child processes; a context manager.

    Parameters
    ----------
    preprocessing : Preprocessing
        Input format of the network.
    n_processes : int
        Images decoded in parallel. Use at least two, so that one malicious image does not block
        the others.
    limits : DecoderLimits
        Memory and time that one image, and the images of one request, may use.
    max_waiting : int
        Maximum number of queued images of one client.
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
        """Queue the images of a request.

        Parameters
        ----------
        contents : sequence of bytes
            The image files.
        thumbnail : bool, default=False
            Whether to make thumbnails too.
        owner : str, default=""
            The client; decoding time is shared fairly between clients.

        Returns
        -------
        request : DecodeRequest
            Its ``results`` are futures of :class:`PreparedImage`, or of a ``RefusedImageError``.

        Raises
        ------
        TooManyImagesError
            If the client has too many queued images.
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
