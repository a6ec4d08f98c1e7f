"""From the image files of a request to embeddings.

A pool of processes decodes the images; threads run the network on batches of several requests.
"""

from __future__ import annotations

import asyncio
import copy
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
from starlette.requests import ClientDisconnect, Request

from evergrow.foundation.errors import InvalidTypeError
from evergrow.service.decoding.pool import DecodeRequest, DecoderPool, TooManyImagesError
from evergrow.service.decoding.protocol import DecoderError, PreparedImage, RefusedImageError
from evergrow.service.http.fairness import Actor, QueueThreads
from evergrow.service.http.monitoring import Metrics
from evergrow.service.http.responses import unavailable
from evergrow.service.http.writer import lower_priority
from evergrow.vision.embedding import Embedder, Preprocessing
from evergrow.vision.embedding.networks import OnnxNetwork
from evergrow.workspace.records import Picture

Result = TypeVar("Result")
Matrix = npt.NDArray[np.float32]
# Makes the results of several requests of their vectors.
Finish = Callable[[Sequence[Matrix]], Sequence[Result]]

# How long a token that sent images is expected to send more.
_SHARED_SECONDS = 1.0
_OVER_LIMIT_SECONDS = 0.5
_NICENESS = 10
# One thread prepares a batch while the graphics card computes that of the other.
_GPU_THREADS = 2
_GPU_BATCH = 32


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


def for_each(then: Callable[[Matrix], Result]) -> Finish[Result]:
    """Return a function for the requests of a batch that calls another one for each of them."""
    return lambda requests: [then(rows) for rows in requests]


class _Waiting(Generic[Result]):
    """The images of one request, and their vectors as batches return them."""

    def __init__(
        self,
        images: Sequence[npt.NDArray[np.uint8]],
        then: Finish[Result],
        result: Future[Result],
    ) -> None:
        self.images = images
        self.result = result
        self.then = then
        self._rows: list[npt.NDArray[np.float32] | None] = [None] * len(images)
        self._n_queued = self._n_missing = len(images)
        self._running = self._failed = False
        self._lock = threading.Lock()

    def start(self) -> bool:
        """Note that one more image goes to the network; False if it is not needed any more."""
        with self._lock:
            self._n_queued -= 1
            if self._failed or self.result.cancelled():
                return False
            # With its last image it is running, and cannot be cancelled any more.
            return self._n_queued > 0 or self._run()

    def add(self, place: int, row: npt.NDArray[np.float32]) -> bool:
        """Take the vector of one image; return whether all are there and none failed."""
        with self._lock:
            self._rows[place] = row
            self._n_missing -= 1
            return not (self._n_missing or self._failed)

    @property
    def rows(self) -> Matrix:
        """The vectors of all images."""
        return np.stack([row for row in self._rows if row is not None])

    def fail(self, error: BaseException) -> None:
        """Report the error of a batch, the first one only."""
        with self._lock:
            if self._failed:
                return
            self._failed = True
            if not self._run():
                return
        self.result.set_exception(error)

    def _run(self) -> bool:
        if not self._running:
            self._running = self.result.set_running_or_notify_cancel()
        return self._running


def _finish(requests: Sequence[_Waiting[Any]]) -> None:
    """Make the results of requests with equal functions, by one call."""
    try:
        results = requests[0].then([one.rows for one in requests])
        finished = list(zip(requests, results, strict=True))
    # Any error belongs to these requests; the thread goes on.
    except Exception as error:  # noqa: BLE001
        for one in requests:
            one.result.set_exception(error)
    else:
        for one, result in finished:
            one.result.set_result(result)


# One image of a request, by its place.
_Job = tuple[_Waiting[Any], int]


class BatchEmbedder(QueueThreads[_Job]):
    """Threads that run a network on the queued images, in batches; a context manager.

    Each thread computes one batch, so there should be one per processor. In larger batches the
    first image waits for the last, and the activations may not fit into the processor's cache.

    Tokens are served fairly, image by image. While several tokens send images, or one teaches,
    batches have one image and each token leaves one thread, and its processor, to the others: an
    image never waits for many of another token. The first thread is then for tokens that may
    teach. The other threads have a lower priority, so that predictions do not delay teaching.

    A graphics card computes many images in the time of one. So it gets batches of up to 32, also
    of several tokens, which take turns within a batch; see :meth:`for_device`.

    Parameters
    ----------
    network : OnnxNetwork
        The network.
    n_threads : int, default=1
        Batches at a time.
    max_batch, max_shared_batch : int, default=4 and 1
        Images of a batch, and of one while several tokens send images.
    """

    def __init__(
        self,
        network: OnnxNetwork,
        *,
        n_threads: int = 1,
        max_batch: int = 4,
        max_shared_batch: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._n_threads = max(1, n_threads)
        super().__init__(self._n_threads, "embedding")
        self._network = network
        self._max_batch, self._max_shared_batch = max_batch, max_shared_batch
        self._clock = clock
        self._n_running: Counter[str] = Counter()
        # When a token last sent images or taught. Bounded by the number of tokens.
        self._sent_at: dict[str, float] = {}
        self._teachers: set[str] = set()
        self._n_idle = 0

    @classmethod
    def for_device(cls, network: OnnxNetwork, n_processors: int) -> Self:
        """Return threads and batches that suit what runs the network."""
        if not network.on_gpu:
            return cls(network, n_threads=n_processors)
        return cls(
            network, n_threads=_GPU_THREADS, max_batch=_GPU_BATCH, max_shared_batch=_GPU_BATCH
        )

    @property
    def preprocessing(self) -> Preprocessing:
        """Input format of the network."""
        return self._network.preprocessing

    @property
    def n_waiting(self) -> int:
        """Number of queued images."""
        return len(self._queue)

    def submit(
        self,
        actor: Actor,
        images: Sequence[npt.NDArray[np.uint8]],
        then: Finish[Result],
        result: Future[Result] | None = None,
    ) -> Future[Result]:
        """Queue the images of one request; the future gives what ``then`` makes of the vectors.

        The images have the input size of the network, as decoders return them. ``then`` is called
        in the thread that computed the last one: one context switch less per request. It gets a
        matrix with one row per image, and those of other requests that end with the same batch
        and whose ``then`` is equal: what a model reads for one row it reads for many.
        """
        item = _Waiting(images, then, result or Future())
        with self._changed:
            self._require_running()
            self.expect(actor)
            for place in range(len(images)):
                self._queue.put(actor.name, (item, place), 1.0 / actor.weight)
            self._changed.notify_all()
        return item.result

    def expect(self, actor: Actor) -> None:
        """Note that a token teaches, also without images: the others leave it a processor."""
        self._sent_at[actor.name] = self._clock()
        if actor.teaches:
            self._teachers.add(actor.name)

    def _serve(self, number: int) -> None:
        if number:
            lower_priority(_NICENESS)
        while (found := self._next_batch(number)) is not None:
            owners, batch = found
            try:
                prepare = self.preprocessing.normalize
                vectors = self._network.run([prepare(item.images[n]) for item, n in batch])
            # Any error belongs to the requests of this batch; the thread goes on.
            except Exception as error:  # noqa: BLE001
                for item, _ in batch:
                    item.fail(error)
            else:
                self._finish_batch(batch, vectors)
            self._release(owners)
            # Release the images: the next ones may come much later.
            del found, batch

    def _finish_batch(self, batch: list[_Job], vectors: Matrix) -> None:
        """Give requests their vectors, and finish those that have all."""
        complete: dict[Finish[Any], list[_Waiting[Any]]] = {}
        for (item, place), row in zip(batch, vectors, strict=True):
            if item.add(place, row):
                complete.setdefault(item.then, []).append(item)
        for requests in complete.values():
            _finish(requests)

    def _next_batch(self, number: int) -> tuple[list[str], list[_Job]] | None:
        """Wait for images; return the owners of a batch and the images, None at the end."""
        with self._changed:
            self._n_idle += 1
            try:
                while True:
                    owners, batch = self._gather(number)
                    if batch:
                        return owners, batch
                    if self._stopping and not self._queue:
                        return None
                    self._changed.wait()
            finally:
                self._n_idle -= 1

    def _gather(self, number: int) -> tuple[list[str], list[_Job]]:
        active = self._active()
        shared = len(active) > 1 and not self._stopping
        # The first thread, while others serve those that may not teach.
        reserved = shared and number == 0 < self._n_threads - 1 and active & self._teachers
        # Leave a fair share to other idle threads.
        share = math.ceil(len(self._queue) / self._n_idle)
        most = min(self._max_shared_batch if shared else self._max_batch, share)
        limit = max(1, self._n_threads - 1) if shared else self._n_threads
        owners: list[str] = []
        batch: list[_Job] = []
        while len(batch) < most:
            found = self._queue.pop(
                lambda owner: (
                    self._n_running[owner] < limit and (not reserved or owner in self._teachers)
                )
            )
            if found is None:
                break
            owner, job = found
            if job[0].start():
                owners.append(owner)
                batch.append(job)
        self._n_running.update({*owners})
        return owners, batch

    def _active(self) -> set[str]:
        """Tokens that have images here, or taught or sent some a moment ago."""
        recent = self._clock() - _SHARED_SECONDS
        active = {owner for owner, at in [*self._sent_at.items()] if at > recent}
        active.update(self._queue.owners)
        return active

    def _release(self, owners: list[str]) -> None:
        with self._changed:
            self._n_running.subtract({*owners})
            # The owner may now be allowed another thread, but not any thread.
            self._changed.notify_all()


class ImagePipeline:
    """Decodes and embeds the images of requests, with a timeout for each request."""

    def __init__(
        self,
        decoders: DecoderPool,
        embedder: BatchEmbedder,
        metrics: Metrics,
        seconds: float,
        max_waiting: int = 512,
    ) -> None:
        self._seconds = seconds
        self._max_waiting = max_waiting
        # Images of the current requests of each token.
        self._n_images: Counter[str] = Counter()
        self._decoders = decoders
        self._embedder = embedder
        self._metrics = metrics
        metrics.add_gauge(
            "images_to_decode", "Images queued for decoding.", lambda: float(decoders.n_waiting)
        )
        metrics.add_gauge(
            "images_to_embed", "Images queued for the network.", lambda: float(embedder.n_waiting)
        )

    def expect(self, actor: Actor) -> None:
        """Note that a token teaches, also without images."""
        self._embedder.expect(actor)

    async def check_open(self, actor: Actor) -> None:
        """Raise a ``ProblemError`` if a token has too many images already.

        Call it before a body is read: a client that must retry need not send all of it.
        """
        if self._n_images[actor.name] >= self._max_waiting:
            # Slows clients that retry at once.
            await asyncio.sleep(_OVER_LIMIT_SECONDS)
            raise unavailable(
                f"{self._n_images[actor.name]} images of this token are being processed; the "
                f"limit is {self._max_waiting}, so retry later"
            )

    async def embed(self, request: Request, contents: list[bytes], then: Finish[Result]) -> Result:
        """Embed images; raise a ``RefusedImageError`` for the first one that is refused.

        The work is cancelled when the client of the request disconnects. ``then`` makes the result
        of the embeddings, in a thread of the network, as in :meth:`BatchEmbedder.submit`.
        """
        actor = request.scope["actor"]
        work = _ImageWork(self._embedder, actor, lambda _: then)
        return await self._run(request, work, contents, thumbnail=False)

    async def embed_example(
        self, request: Request, content: bytes
    ) -> tuple[npt.NDArray[np.float32], Picture]:
        """Return the embedding of one image, and the image with its facts and thumbnail."""
        work = _example_work(self._embedder, request.scope["actor"], content)
        return await self._run(request, work, [content], thumbnail=True)

    def start_example(
        self, actor: Actor, content: bytes
    ) -> Future[tuple[npt.NDArray[np.float32], Picture]]:
        """Start what :meth:`embed_example` does for an image that belongs to no request."""
        work = _example_work(self._embedder, actor, content)
        work.start(self._decoders.submit_all([content], thumbnail=True, owner=actor.name))
        return work.result

    async def make_thumbnail(self, request: Request, content: bytes) -> bytes:
        """Make the thumbnail of one image; raise a ``RefusedImageError`` if it is refused."""
        decoding = await self._submit(request, [content], thumbnail=True)
        try:
            (result,) = decoding.results
            found = await wait_while_connected(request, result, self._seconds)
        finally:
            self._decoders.cancel(decoding)
        if found.thumbnail is None:
            raise RefusedImageError("decoder", "the decoder made no thumbnail")
        return found.thumbnail

    async def _submit(
        self, request: Request, contents: list[bytes], *, thumbnail: bool
    ) -> DecodeRequest:
        owner = request.scope["actor"].name
        try:
            return self._decoders.submit_all(contents, thumbnail=thumbnail, owner=owner)
        except TooManyImagesError as error:
            # Slows clients that retry at once, which would only send their images again.
            await asyncio.sleep(_OVER_LIMIT_SECONDS)
            raise unavailable(str(error)) from error

    async def _run(
        self, request: Request, work: _ImageWork[Result], contents: list[bytes], *, thumbnail: bool
    ) -> Result:
        owner = request.scope["actor"].name
        self._n_images[owner] += len(contents)
        try:
            return await self._process(request, work, contents, thumbnail=thumbnail)
        finally:
            self._n_images[owner] -= len(contents)

    async def _process(
        self, request: Request, work: _ImageWork[Result], contents: list[bytes], *, thumbnail: bool
    ) -> Result:
        decoding = await self._submit(request, contents, thumbnail=thumbnail)
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
    request instead of once per step. ``then`` returns what makes the result of the vectors.
    """

    def __init__(
        self,
        embedder: BatchEmbedder,
        actor: Actor,
        then: Callable[[Sequence[PreparedImage]], Finish[Result]],
    ) -> None:
        self._embedder = embedder
        self._actor = actor
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
            pixels = [image.pixels for image in images]
            self._embedder.submit(self._actor, pixels, self._then(images), self.result)
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


def _example_work(
    embedder: BatchEmbedder, actor: Actor, content: bytes
) -> _ImageWork[tuple[npt.NDArray[np.float32], Picture]]:
    def make_example(images: Sequence[PreparedImage]) -> Finish[tuple[Any, Picture]]:
        (found,) = images
        picture = Picture(
            content, found.media_type, found.width, found.height, thumbnail=found.thumbnail
        )
        return for_each(lambda rows: (rows[0], picture))

    return _ImageWork(embedder, actor, make_example)


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
