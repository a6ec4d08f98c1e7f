"""Several decoders, each asked by a thread of its own, and a watch over their time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Self

from evergrow.service.decoding.child import DecoderLimits, DecoderProcess
from evergrow.service.decoding.examining import Examined
from evergrow.service.decoding.refusals import DecoderError, RefusedImageError
from evergrow.service.decoding.turns import Batch, Job, Turns
from evergrow.vision.embedding.preprocessing import Preprocessing

__all__ = ["DecoderPool"]

# How often the time of decoders is looked at, as a share of what they have.
_WATCH_SHARE = 0.05
# At the end, time for the images that decoders are at: whoever waits for them gets an answer.
_STOP_SECONDS = 1.0


class DecoderPool:
    """Decodes images in child processes; a context manager.

    Parameters
    ----------
    preprocessing : Preprocessing
        What the network wants.
    n_processes : int
        Images decoded at once. At least two, so that one hostile image does not hold up others.
    limits : DecoderLimits
        How much one image, and the images of one request, may take.
    max_waiting : int
        Images of one owner that may wait.
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
        self._turns = Turns(max_waiting, len(self._children))
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._serve, args=(child,), name="decoder", daemon=True)
            for child in self._children
        ]
        self._watch = threading.Thread(target=self._watch_time, name="decoder watch", daemon=True)

    def __enter__(self) -> Self:
        """Start all decoders; they get ready by themselves."""
        for child in self._children:
            child.start()
        for thread in (*self._threads, self._watch):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End all decoders; what waits is not decoded any more, what is begun has a moment."""
        for job in self._turns.close():
            _fail(job, DecoderError("the service is stopping"))
        until = time.monotonic() + _STOP_SECONDS
        for thread, child in zip(self._threads, self._children, strict=True):
            thread.join(max(0.0, until - time.monotonic()))
            # Again, if it was just about to get another process.
            while thread.is_alive():
                child.end()
                thread.join(_STOP_SECONDS)
        self._stopping.set()
        self._watch.join()
        for child in self._children:
            child.stop()

    def submit(
        self, content: bytes, *, thumbnail: bool = False, owner: str = ""
    ) -> Future[Examined]:
        """Have one image decoded.

        Returns
        -------
        result : Future
            Of :class:`Examined`, or of a ``RefusedImageError``.
        """
        return self.submit_all([content], thumbnail=thumbnail, owner=owner).results[0]

    def submit_all(
        self, contents: Sequence[bytes], *, thumbnail: bool = False, owner: str = ""
    ) -> Batch:
        """Have the images of a request decoded.

        Parameters
        ----------
        contents : sequence of bytes
            The files.
        thumbnail : bool, default=False
            Whether small pictures are made too.
        owner : str, default=""
            Who asks; owners take turns.

        Returns
        -------
        batch : Batch
            Its ``results`` are futures of :class:`Examined`, or of a ``RefusedImageError``.

        Raises
        ------
        TooManyImagesError
            If too many images of the owner wait.
        """
        batch = Batch(owner, contents, thumbnail=thumbnail)
        self._turns.put(batch)
        return batch

    def cancel(self, batch: Batch) -> None:
        """Forget the images of a batch that no decoder has taken yet."""
        for job in self._turns.drop(batch):
            job.result.cancel()

    @property
    def n_waiting(self) -> int:
        """Images that no decoder has taken yet."""
        return len(self._turns)

    @property
    def pids(self) -> list[int]:
        """Numbers of the child processes."""
        return [child.pid for child in self._children if child.pid is not None]

    def _serve(self, child: DecoderProcess) -> None:
        while (job := self._turns.take()) is not None:
            began = time.monotonic()
            try:
                if not job.result.set_running_or_notify_cancel():
                    self._done(job, began)
                    continue
                self._check_budget(job.batch)
                child.wait_until_ready()
                # To start a decoder is no fault of the image.
                began = time.monotonic()
                found = child.decode(job.content, thumbnail=job.thumbnail)
            # Whatever went wrong belongs to this image's request; the thread serves the next.
            except Exception as error:  # noqa: BLE001
                self._done(job, began)
                job.result.set_exception(error)
            else:
                self._done(job, began)
                job.result.set_result(found)
            # The image must not stay in memory until the next one comes.
            del job

    def _done(self, job: Job, began: float) -> None:
        self._turns.charge(job.batch, time.monotonic() - began)

    def _check_budget(self, batch: Batch) -> None:
        most = self._limits.seconds_together
        if batch.seconds > most:
            raise RefusedImageError(
                "decoder",
                f"the images before it took longer than {most:g} seconds: send fewer at once",
            )

    def _watch_time(self) -> None:
        pause = self._limits.seconds * _WATCH_SHARE
        while not self._stopping.wait(pause):
            now = time.monotonic()
            for child in self._children:
                child.kill_if_late(now)


def _fail(job: Job, error: Exception) -> None:
    if job.result.set_running_or_notify_cancel():
        job.result.set_exception(error)
