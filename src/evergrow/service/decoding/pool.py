"""Several decoders, each asked by a thread of its own, and a watch over their time."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Self

from evergrow.features.preprocessing import Preprocessing
from evergrow.service.decoding.child import DecoderLimits, DecoderProcess
from evergrow.service.decoding.examining import Examined

__all__ = ["DecoderPool"]

# How often the time of decoders is looked at, as a share of what they have.
_WATCH_SHARE = 0.05


@dataclass(frozen=True)
class _Job:
    content: bytes
    thumbnail: bool
    result: Future[Examined] = field(default_factory=Future)


class DecoderPool:
    """Decodes images in child processes; a context manager.

    Parameters
    ----------
    preprocessing : Preprocessing
        What the network wants.
    n_processes : int
        Images decoded at once. At least two, so that one hostile image does not hold up others.
    limits : DecoderLimits
        How much one image may take.
    """

    def __init__(
        self,
        preprocessing: Preprocessing,
        *,
        n_processes: int = 2,
        limits: DecoderLimits | None = None,
    ) -> None:
        self._limits = limits or DecoderLimits()
        self._children = [
            DecoderProcess(preprocessing, self._limits) for _ in range(max(1, n_processes))
        ]
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
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
        """End all decoders; what waits is answered first."""
        for _thread in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._stopping.set()
        self._watch.join()
        for child in self._children:
            child.stop()

    def submit(self, content: bytes, *, thumbnail: bool = False) -> Future[Examined]:
        """Have one image decoded.

        Returns
        -------
        result : Future
            Of :class:`Examined`, or of a ``RefusedImageError``.
        """
        job = _Job(content, thumbnail)
        self._jobs.put(job)
        return job.result

    @property
    def n_waiting(self) -> int:
        """Images that no decoder has taken yet."""
        return self._jobs.qsize()

    @property
    def pids(self) -> list[int]:
        """Numbers of the child processes."""
        return [child.pid for child in self._children if child.pid is not None]

    def _serve(self, child: DecoderProcess) -> None:
        while (job := self._jobs.get()) is not None:
            if not job.result.set_running_or_notify_cancel():
                continue
            try:
                found = child.decode(job.content, thumbnail=job.thumbnail)
            # Whatever went wrong belongs to this image's request; the thread serves the next.
            except Exception as error:  # noqa: BLE001
                job.result.set_exception(error)
            else:
                job.result.set_result(found)
            # The image must not stay in memory until the next one comes.
            del job

    def _watch_time(self) -> None:
        pause = self._limits.seconds * _WATCH_SHARE
        while not self._stopping.wait(pause):
            now = time.monotonic()
            for child in self._children:
                child.kill_if_late(now)
