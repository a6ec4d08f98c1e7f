"""From the image files of a request to embeddings: decode, then run the network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from starlette.requests import ClientDisconnect, Request

from evergrow.service.decoding.fair_queue import DecodeRequest, TooManyImagesError
from evergrow.service.decoding.pool import DecoderPool
from evergrow.service.decoding.protocol import DecoderError, PreparedImage, RefusedImageError
from evergrow.service.http.embedding import BatchEmbedder
from evergrow.service.http.metrics import Metrics
from evergrow.service.http.responses import unavailable
from evergrow.workspace.records import Picture

Result = TypeVar("Result")
Matrix = npt.NDArray[np.float32]


class ImagePipeline:
    """Decodes and embeds the images of requests.

    Parameters
    ----------
    decoders : DecoderPool
        The decoder processes.
    embedder : BatchEmbedder
        The threads that run the network.
    metrics : Metrics
        Counts refused images.
    seconds : float
        Timeout for the images of one request.
    """

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

        Parameters
        ----------
        request : Request
            The request; the work is cancelled when its client disconnects.
        contents : list of bytes
            The image files.
        then : callable
            Makes the result of the embeddings, in a thread of the network.
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
    """Wait for another thread; cancel its work if the client disconnects or it takes too long.

    Parameters
    ----------
    request : Request
        A request whose body was read. Work for clients that are gone would delay others.
    work : Future
        Work of another thread.
    seconds : float
        Timeout.

    Raises
    ------
    ClientDisconnect
        If the client disconnected.
    ProblemError
        If it took too long.
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
