"""Run the embedding network on batches of images of several requests."""

from __future__ import annotations

import copy
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidTypeError
from evergrow.vision.embedding import Embedder, Preprocessing
from evergrow.vision.embedding.networks import OnnxNetwork

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
        raise InvalidTypeError("the service needs an embedder with an ONNX model, not a callable")
    return network


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[Result]):
    images: Sequence[npt.NDArray[np.uint8]]
    then: Callable[[Matrix], Result]
    result: Future[Result]


class BatchEmbedder:
    """Threads that run a network on the queued images, in batches; a context manager.

    Parameters
    ----------
    network : OnnxNetwork
        The network; several threads call it at the same time.
    n_threads : int
        Batches computed in parallel: one per processor.
    max_batch : int
        Maximum number of images in a batch. In larger batches the first image waits for the last,
        and the activations may not fit into the processor's cache.
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
    def n_features(self) -> int:
        """Length of an embedding."""
        return int(self._network.n_features)

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

        Parameters
        ----------
        images : sequence of ndarray of shape (height, width, 3)
            Pixels at the input size of the network, as decoders return them.
        then : callable
            Gets the vectors, one row per image, in the thread that computed them: one context
            switch less per request.
        result : Future, default=None
            The future to use; None for a new one.
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
