"""From the image files of a request to embeddings.

A pool of processes decodes the images; threads run the network on batches of several requests.
"""

from __future__ import annotations

import asyncio
import copy
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
from starlette.requests import ClientDisconnect, Request

from evergrow.foundation.errors import InvalidTypeError
from evergrow.service.decoding.pool import DecodeRequest, DecoderPool, TooManyImagesError
from evergrow.service.decoding.protocol import DecoderError, PreparedImage, RefusedImageError
from evergrow.service.http.monitoring import Metrics
from evergrow.service.http.responses import unavailable
from evergrow.vision.embedding import Embedder, Preprocessing
from evergrow.vision.embedding.networks import OnnxNetwork
from evergrow.workspace.records import Picture

Result = TypeVar("Result")
Matrix = npt.NDArray[np.float32]


def single_threaded_network(embedder: Embedder) -> OnnxNetwork:
    """Return the network of an embedder, set to compute in the calling thread.

    Threads that compute one batch each have a higher throughput than threads that share the work
    of one batch, because they never wait for each other.
    """
    single = copy.copy(embedder)
    single.n_jobs = 1
    network = single.network()
    if not isinstance(network, OnnxNetwork):
        raise InvalidTypeError(
            "the service needs an embedder with one network, known by name or in an ONNX file"
        )
    return network


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[Result]):
    images: Sequence[npt.NDArray[np.uint8]]
    then: Callable[[Matrix], Result]
    result: Future[Result]


class BatchEmbedder:
    """Threads that run a network on the queued images, in batches; a context manager.

    Each thread computes one batch, so there should be one per processor. In larger batches the
    first image waits for the last, and the activations may not fit into the processor's cache.
    """

    def __init__(self, network: OnnxNetwork, *, n_threads: int = 1, max_batch: int = 4) -> None:
        self._network = network
        self._n_threads = max(1, n_threads)
        self._max_batch = max_batch
        self._waiting: deque[_Waiting[Any]] = deque()
        self._n_waiting = 0
        self._n_idle = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._serve, name="embedding", daemon=True)
            for _ in range(self._n_threads)
        ]

    def __enter__(self) -> Self:
        """Start the threads."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Finish the queued images, then stop the threads."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def preprocessing(self) -> Preprocessing:
        """Input format of the network."""
        return self._network.preprocessing

    @property
    def n_waiting(self) -> int:
        """Number of queued images."""
        return self._n_waiting

    def submit(
        self,
        images: Sequence[npt.NDArray[np.uint8]],
        then: Callable[[Matrix], Result],
        result: Future[Result] | None = None,
    ) -> Future[Result]:
        """Queue the images of one request; the future gives what ``then`` makes of the vectors.

        The images have the input size of the network, as decoders return them. ``then`` gets one
        row per image in the thread that computed them: one context switch less per request.
        """
        item = _Waiting(images, then, result or Future())
        with self._changed:
            if self._stopping:
                raise RuntimeError("the service is stopping")
            self._waiting.append(item)
            self._n_waiting += len(images)
            self._changed.notify()
        return item.result

    def _serve(self) -> None:
        while (batch := self._next_batch()) is not None:
            images = [image for item in batch for image in item.images]
            if not images:
                continue
            try:
                vectors = self._network.run([self.preprocessing.normalize(one) for one in images])
            # Any error belongs to the requests of this batch; the thread goes on.
            except Exception as error:  # noqa: BLE001
                for item in batch:
                    item.result.set_exception(error)
                continue
            first = 0
            for item in batch:
                last = first + len(item.images)
                _finish(item, vectors[first:last])
                first = last

    def _next_batch(self) -> list[_Waiting[Any]] | None:
        with self._changed:
            self._n_idle += 1
            while not self._waiting and not self._stopping:
                self._changed.wait()
            # Leave a fair share to other idle threads.
            share = math.ceil(self._n_waiting / max(1, self._n_idle))
            self._n_idle -= 1
            if not self._waiting:
                return None
            batch: list[_Waiting[Any]] = []
            n_images = 0
            while self._waiting and n_images < min(share, self._max_batch):
                item = self._waiting.popleft()
                self._n_waiting -= len(item.images)
                # From here on it cannot be cancelled.
                if item.result.set_running_or_notify_cancel():
                    batch.append(item)
                    n_images += len(item.images)
            return batch


def _finish(item: _Waiting[Any], vectors: Matrix) -> None:
    try:
        found = item.then(vectors)
    except Exception as error:  # noqa: BLE001
        item.result.set_exception(error)
    else:
        item.result.set_result(found)


class ImagePipeline:
    """Decodes and embeds the images of requests, with a timeout for each request."""

    def __init__(
        self, decoders: DecoderPool, embedder: BatchEmbedder, metrics: Metrics, seconds: float
    ) -> None:
        self._seconds = seconds
        self._decoders = decoders
        self._embedder = embedder
        self._metrics = metrics
        metrics.add_gauge(
            "images_to_decode", "Images queued for decoding.", lambda: float(decoders.n_waiting)
        )
        metrics.add_gauge(
            "images_to_embed", "Images queued for the network.", lambda: float(embedder.n_waiting)
        )

    async def embed(
        self, request: Request, contents: list[bytes], then: Callable[[Matrix], Result]
    ) -> Result:
        """Embed images; raise a ``RefusedImageError`` for the first one that is refused.

        The work is cancelled when the client of the request disconnects. ``then`` makes the result
        of the embeddings, in a thread of the network.
        """
        work = _ImageWork(self._embedder, lambda _, rows: then(rows))
        return await self._run(request, work, contents, thumbnail=False)

    async def embed_example(
        self, request: Request, content: bytes
    ) -> tuple[npt.NDArray[np.float32], Picture]:
        """Return the embedding of one image, and the image with its facts and thumbnail."""

        def make_example(images: Sequence[PreparedImage], rows: Matrix) -> tuple[Any, Picture]:
            (found,) = images
            return rows[0], Picture(
                content, found.media_type, found.width, found.height, thumbnail=found.thumbnail
            )

        work = _ImageWork(self._embedder, make_example)
        return await self._run(request, work, [content], thumbnail=True)

    async def _run(
        self, request: Request, work: _ImageWork[Result], contents: list[bytes], *, thumbnail: bool
    ) -> Result:
        owner = request.scope["actor"].name
        try:
            decoding = self._decoders.submit_all(contents, thumbnail=thumbnail, owner=owner)
        except TooManyImagesError as error:
            raise unavailable(str(error)) from error
        work.start(decoding)
        try:
            return await wait_while_connected(request, work.result, self._seconds)
        except RefusedImageError as error:
            self._metrics.refused_images.labels(error.kind).inc()
            raise
        finally:
            # The request is over: everything is done, something failed, or the client left.
            self._decoders.cancel(decoding)


class _ImageWork(Generic[Result]):
    """The images of one request; when the last one is decoded, all go to the network.

    This happens in the thread of the last decoder, so that the event loop is woken once per
    request instead of once per step.
    """

    def __init__(
        self, embedder: BatchEmbedder, then: Callable[[Sequence[PreparedImage], Matrix], Result]
    ) -> None:
        self._embedder = embedder
        self._then = then
        self._images: list[PreparedImage | None] = []
        self._n_missing = 0
        self._lock = threading.Lock()
        self._failed = False
        self.result: Future[Result] = Future()

    def start(self, decoding: DecodeRequest) -> None:
        """Collect each image of a request when it is decoded."""
        self._n_missing = len(decoding.results)
        self._images = [None] * self._n_missing
        for place, decoded in enumerate(decoding.results):
            decoded.add_done_callback(partial(self._collect, place))

    def _collect(self, place: int, decoded: Future[PreparedImage]) -> None:
        # Cancelled because the request is over.
        if decoded.cancelled():
            return
        error = decoded.exception()
        with self._lock:
            if self._failed:
                return
            if error is None:
                self._images[place] = decoded.result()
                self._n_missing -= 1
                if self._n_missing:
                    return
            else:
                self._failed = True
        if error is not None:
            self._fail(self._with_number(error, place))
            return
        images = [image for image in self._images if image is not None]
        try:
            self._embedder.submit(
                [image.pixels for image in images],
                lambda rows: self._then(images, rows),
                self.result,
            )
        except RuntimeError as stopping:
            self._fail(DecoderError(str(stopping)))

    def _fail(self, error: BaseException) -> None:
        if self.result.set_running_or_notify_cancel():
            self.result.set_exception(error)

    def _with_number(self, error: BaseException, place: int) -> BaseException:
        """Add which of several images was refused."""
        if len(self._images) == 1 or not isinstance(error, RefusedImageError):
            return error
        return RefusedImageError(error.kind, f"image {place + 1}: {error.reason}")


async def wait_while_connected(request: Request, work: Future[Result], seconds: float) -> Result:
    """Wait for work in another thread; cancel it if the client disconnects or time runs out.

    The body of the request was read. Work for clients that are gone would delay others. Raises a
    ``ClientDisconnect``, or a ``ProblemError`` if it took too long.
    """
    result = asyncio.wrap_future(work)
    disconnected = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        either: set[asyncio.Future[Any]] = {result, disconnected}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        if disconnected.done():
            raise ClientDisconnect
        raise unavailable(f"the images were not processed within {seconds:g} seconds; retry later")
    finally:
        disconnected.cancel()
        result.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
