"""Where an image becomes a vector: read, look up in the cache, prepare, run the network.

Threads read and prepare the next images while the network computes.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from evergrow.estimators.classifier.learner import frozen_copy
from evergrow.foundation.engine import Arrays
from evergrow.foundation.errors import BadImage, InvalidInputError
from evergrow.vision.embedding.cache import EmbeddingCache
from evergrow.vision.embedding.networks import Features, Network, start
from evergrow.vision.images.parts import ImageJob, ImagePart, problem_arrays
from evergrow.vision.images.prefetch import MAX_GROUP_BYTES, group_by_size, prefetch
from evergrow.vision.images.reader import check_size, to_rgb
from evergrow.vision.images.results import Extraction, read_or_skip
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits, read_content

if TYPE_CHECKING:
    from evergrow.vision.embedding.embedder import Embedder

# The network that the tasks of this process used last. Loading one takes as long as embedding some
# dozens of images, and every task comes with an embedder of its own.
_last_network: dict[str, Network] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class _Prepared:
    """An image that was read: its vector if the cache has it, else the input for the network."""

    index: int
    key: bytes | None
    vector: npt.NDArray[np.float32] | None
    prepared: Any | None


@dataclass(frozen=True)
class _Pending:
    """Images that are being computed, and the call that waits for their vectors."""

    images: list[_Prepared]
    wait: Callable[[], Features]


@dataclass(frozen=True)
class EmbeddingPipeline:
    """All that embedding images needs.

    The cache is open. With ``skip_bad`` an image that cannot be read is left out; else it is an
    error.
    """

    network: Network
    cache: EmbeddingCache | None
    limits: ReadLimits
    batch_size: int
    skip_bad: bool

    def run(
        self, sources: Sequence[Any], n_threads: int, show: Callable[[int], None] | None
    ) -> Extraction:
        """Compute the vectors of all images that can be read.

        Vectors are cached batch by batch, so that an interrupted run is not lost.
        """
        rows = _Rows(len(sources), self.network.n_features)
        # The batch that a GPU computes while the next one is copied to it.
        pending: _Pending | None = None
        try:
            for batch in self._prefetch_batches(sources, n_threads):
                missing = [x for x in batch if isinstance(x, _Prepared) and x.vector is None]
                before, pending = pending, self._start(missing) if missing else None
                self._finish(before, rows)
                rows.add_known(batch)
                if show is not None:
                    show(rows.n_done)
        finally:
            # Before an error or interrupt goes on, what was computed is cached.
            self._finish(pending, rows)
        if show is not None and pending is not None:
            show(rows.n_done)
        return rows.extraction()

    def _prefetch_batches(
        self, sources: Sequence[Any], n_threads: int
    ) -> Iterator[list[_Prepared | BadImage]]:
        if self.network.fixed_size:
            batches = self._batches(sources)
            # While all vectors are in the cache there is nothing to compute, and threads would only
            # wait for each other.
            for batch in batches if self.cache is not None else ():
                found = self._prepare_batch(batch)
                yield found
                if any(isinstance(one, _Prepared) and one.vector is None for one in found):
                    break
            yield from prefetch(self._prepare_batch, batches, n_threads)
            return
        # Prefetching whole batches of full-size images would fill the memory.
        images = prefetch(self._prepare, enumerate(sources), n_threads, per_thread=2)
        yield from group_by_size(
            images, _n_bytes, max_items=self.batch_size, max_bytes=MAX_GROUP_BYTES
        )

    def _batches(self, sources: Sequence[Any]) -> Iterator[list[tuple[int, Any]]]:
        numbered = list(enumerate(sources))
        for first in range(0, len(numbered), self.batch_size):
            yield numbered[first : first + self.batch_size]

    def _prepare_batch(self, batch: list[tuple[int, Any]]) -> list[_Prepared | BadImage]:
        return [self._prepare(item) for item in batch]

    def _prepare(self, item: tuple[int, Any]) -> _Prepared | BadImage:
        on_error = "skip" if self.skip_bad else "raise"
        return read_or_skip(partial(self._read, *item), item[0], on_error)[1]

    def _read(self, index: int, source: Any) -> _Prepared:
        content = read_content(source, self.limits)
        # Encoded images are identified by their bytes; arrays and Pillow images by their pixels.
        image = None if isinstance(content, bytes) else self._decode(source, content)
        key = None if self.cache is None else _content_key(content if image is None else image)
        vector = None if self.cache is None or key is None else self.cache.get(key)
        if vector is not None:
            # The cached image was within the default limits; these may be stricter.
            if isinstance(content, bytes) and self.limits.max_pixels < DEFAULT_LIMITS.max_pixels:
                check_size(source, content, self.limits)
            return _Prepared(index, key, vector, None)
        if image is None:
            image = self._decode(source, content)
        return _Prepared(index, key, None, self.network.prepare(image))

    def _decode(self, source: Any, content: Any) -> npt.NDArray[np.uint8]:
        side = self.network.min_side
        return to_rgb(source, content, limits=self.limits, max_side=side)

    def _start(self, missing: list[_Prepared]) -> _Pending:
        prepared = [one.prepared for one in missing if one.prepared is not None]
        return _Pending(missing, start(self.network, prepared))

    def _finish(self, pending: _Pending | None, rows: _Rows) -> None:
        if pending is None:
            return
        missing, vectors = pending.images, pending.wait()
        if vectors.shape[1] != self.network.n_features:
            raise InvalidInputError(
                f"the model returned {self.network.n_features} features at first, "
                f"now {vectors.shape[1]}"
            )
        if self.cache is not None:
            self.cache.put([one.key for one in missing if one.key is not None], vectors)
        rows.fill([one.index for one in missing], vectors)


class _Rows:
    """The vectors of a run as they arrive, in any order."""

    def __init__(self, n_images: int, n_features: int) -> None:
        self._features = np.empty((n_images, n_features), dtype=np.float32)
        self._kept = np.zeros(n_images, dtype=bool)
        self.problems: list[BadImage] = []

    @property
    def n_done(self) -> int:
        """Number of images with a vector or a problem."""
        return int(self._kept.sum()) + len(self.problems)

    def fill(self, places: Any, vectors: npt.NDArray[np.float32]) -> None:
        """Set the vectors of some images."""
        self._features[places] = vectors
        self._kept[places] = True

    def add_known(self, batch: Sequence[_Prepared | BadImage]) -> None:
        """Set the vectors that the cache had, and note the images that cannot be read."""
        for one in batch:
            if isinstance(one, BadImage):
                self.problems.append(one)
            elif one.vector is not None:
                self.fill([one.index], one.vector)

    def extraction(self) -> Extraction:
        """The vectors of the images that could be read."""
        places = np.flatnonzero(self._kept)
        features = self._features if self._kept.all() else self._features[places]
        return Extraction(features, places, tuple(self.problems))


def embed_job(job: ImageJob, embedder: Embedder, on_error: str) -> Extraction:
    """Compute the vectors of the images of a job, part by part on its engine."""
    network, engine = embedder.network(), job.engine
    rows = _Rows(len(job.sources), network.n_features)
    # A network without a key is loaded once per call.
    key = (network.key or secrets.token_hex(16)) if engine.capacity.is_remote else None
    shared = (embedder, key, engine.capacity.threads_per_worker)
    options: dict[str, Any] = {"on_error": on_error, "verbose": int(embedder.verbose)}
    for part, found, problems in job.run(embed_part, shared, "Embedding images", **options):
        rows.fill(part.first + found["kept"], found["features"])
        rows.problems += problems
    return rows.extraction()


def embed_part(part: ImagePart, embedder: Embedder, key: str | None, n_threads: int) -> Arrays:
    """Task: the vectors of one part; ``key`` identifies the network in other processes."""
    network = None
    if key is not None:
        # With the default, all workers of a machine would start one thread per processor.
        embedder = frozen_copy(embedder).set_params(n_jobs=n_threads)
        network = _load_once(embedder, f"{key} {n_threads}")
    with embedder._open_pipeline(network=network, skip_bad=True) as pipeline:
        found = pipeline.run(part.sources, effective_n_jobs(embedder.n_jobs), None)
    return {"features": found.features, "kept": found.kept, **problem_arrays(found.problems)}


def _load_once(embedder: Embedder, key: str) -> Network:
    with _lock:
        if key not in _last_network:
            _last_network.clear()
            _last_network[key] = embedder.network()
        return _last_network[key]


def _n_bytes(one: _Prepared | BadImage) -> int:
    prepared = None if isinstance(one, BadImage) else one.prepared
    return 0 if prepared is None else int(prepared.nbytes)


def _content_key(content: bytes | npt.NDArray[np.uint8]) -> bytes:
    if isinstance(content, bytes):
        return hashlib.sha256(content).digest()
    # The prefix keeps keys of pixels apart from keys of files.
    digest = hashlib.sha256(f"pixels {content.shape}\n".encode())
    digest.update(np.ascontiguousarray(content).data)
    return digest.digest()
