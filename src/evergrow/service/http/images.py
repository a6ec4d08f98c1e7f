"""From the bytes of images to vectors: decoders, then the network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from starlette.requests import Request

from evergrow.service.decoding.examining import Examined
from evergrow.service.decoding.pool import DecoderPool
from evergrow.service.decoding.refusals import DecoderError, RefusedImageError
from evergrow.service.decoding.turns import Batch, TooManyImagesError
from evergrow.service.http.embedding import BatchEmbedder
from evergrow.service.http.metrics import Metrics
from evergrow.service.http.patience import while_connected
from evergrow.service.http.problems import ProblemError
from evergrow.workspace.records import Picture

__all__ = ["Images"]

Result = TypeVar("Result")
Matrix = npt.NDArray[np.float32]


class Images:
    """What the service does with images.

    Parameters
    ----------
    decoders : DecoderPool
        Processes that decode.
    embedder : BatchEmbedder
        Threads that run the network.
    metrics : Metrics
        Where refusals are counted.
    seconds : float
        How long a request waits for its images.
    """

    def __init__(
        self, decoders: DecoderPool, embedder: BatchEmbedder, metrics: Metrics, seconds: float
    ) -> None:
        self._seconds = seconds
        self._decoders = decoders
        self._embedder = embedder
        self._metrics = metrics
        metrics.watch("images_to_decode", "Images that wait for a decoder.", self._to_decode)
        metrics.watch("images_to_embed", "Images that wait for the network.", self._to_embed)

    def _to_decode(self) -> float:
        return float(self._decoders.n_waiting)

    def _to_embed(self) -> float:
        return float(self._embedder.n_waiting)

    async def vectors(
        self, request: Request, contents: list[bytes], then: Callable[[Matrix], Result]
    ) -> Result:
        """What ``then`` makes of the vectors of images; a ``RefusedImageError`` for the first bad.

        Parameters
        ----------
        request : Request
            Whose images they are; work on them ends when its client leaves.
        contents : list of bytes
            The files.
        then : callable
            From a matrix, in a thread of the network.
        """
        work = _Work(self._embedder, lambda _, rows: then(rows))
        return await self._worked(request, work, contents, thumbnail=False)

    async def lesson(
        self, request: Request, content: bytes
    ) -> tuple[npt.NDArray[np.float32], Picture]:
        """The vector of one image, and the image with what there is to know about it."""

        def made(images: Sequence[Examined], rows: Matrix) -> tuple[Any, Picture]:
            (found,) = images
            return rows[0], Picture(
                content, found.media_type, found.width, found.height, thumbnail=found.thumbnail
            )

        work = _Work(self._embedder, made)
        return await self._worked(request, work, [content], thumbnail=True)

    async def _worked(
        self, request: Request, work: _Work[Result], contents: list[bytes], *, thumbnail: bool
    ) -> Result:
        owner = request.scope["actor"].name
        try:
            batch = self._decoders.submit_all(contents, thumbnail=thumbnail, owner=owner)
        except TooManyImagesError as error:
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error
        work.begin(batch)
        try:
            return await while_connected(request, work.result, self._seconds)
        except RefusedImageError as error:
            self._metrics.refused_images.labels(error.kind).inc()
            raise
        finally:
            # Nobody waits any more: because all is done, something failed, or the client left.
            self._decoders.cancel(batch)


class _Work(Generic[Result]):
    """The images of one request: the last one to be decoded takes all of them to the network.

    It does so in the thread of its decoder. The loop of the service is woken once for a request,
    not once for every step.
    """

    def __init__(
        self, embedder: BatchEmbedder, then: Callable[[Sequence[Examined], Matrix], Result]
    ) -> None:
        self._embedder = embedder
        self._then = then
        self._images: list[Examined | None] = []
        self._n_missing = 0
        self._guard = threading.Lock()
        self._failed = False
        self.result: Future[Result] = Future()

    def begin(self, batch: Batch) -> None:
        """Take each image of a request when it is decoded."""
        self._n_missing = len(batch.results)
        self._images = [None] * self._n_missing
        for place, decoded in enumerate(batch.results):
            decoded.add_done_callback(partial(self._arrived, place))

    def _arrived(self, place: int, decoded: Future[Examined]) -> None:
        # The request is over: nobody decodes its other images.
        if decoded.cancelled():
            return
        error = decoded.exception()
        with self._guard:
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
            self._fail(self._named(error, place))
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

    def _named(self, error: BaseException, place: int) -> BaseException:
        """Say which of several images it was."""
        if len(self._images) == 1 or not isinstance(error, RefusedImageError):
            return error
        return RefusedImageError(error.kind, f"image {place + 1}: {error.reason}")
