"""The loop from sources to vectors: reading ahead in threads while the network computes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage, ImageError
from evergrow.vision.embedding.cache import EmbeddingCache
from evergrow.vision.embedding.networks import Features, Network
from evergrow.vision.images.ahead import MOST_BYTES, in_groups, in_order_ahead
from evergrow.vision.images.extraction import Extraction
from evergrow.vision.images.reading import check_size, pixels_of
from evergrow.vision.images.sources import DEFAULT_LIMITS, ReadLimits, content_of

__all__ = ["EmbeddingTask"]


@dataclass(frozen=True)
class _Ready:
    """An image on its way: its vector if that was known, else what the network takes."""

    index: int
    key: bytes | None
    vector: npt.NDArray[np.float32] | None
    prepared: npt.NDArray[Any] | None


@dataclass(frozen=True)
class EmbeddingTask:
    """One run of a network over images.

    Parameters
    ----------
    network : Network
        What makes vectors.
    cache : EmbeddingCache or None
        Where vectors are kept, open.
    limits : ReadLimits
        How large images may be.
    batch_size : int
        Images that the network gets at once.
    skip_bad : bool
        Whether an image that cannot be read is left out; else it is an error.
    """

    network: Network
    cache: EmbeddingCache | None
    limits: ReadLimits
    batch_size: int
    skip_bad: bool

    def run(
        self, sources: Sequence[Any], n_threads: int, show: Callable[[int], None] | None
    ) -> Extraction:
        """Vectors of all images that can be read.

        What was computed is kept batch by batch: an interrupted run is not lost.
        """
        features = np.empty((len(sources), self.network.n_features), dtype=np.float32)
        kept = np.zeros(len(sources), dtype=bool)
        problems: list[BadImage] = []
        for batch in self._batches_ahead(sources, n_threads):
            waiting = [one for one in batch if isinstance(one, _Ready) and one.vector is None]
            rows = [one.index for one in waiting]
            if rows:
                features[rows] = self._computed(waiting)
            for one in batch:
                if isinstance(one, BadImage):
                    problems.append(one)
                    continue
                kept[one.index] = True
                if one.vector is not None:
                    features[one.index] = one.vector
            if show is not None:
                show(int(kept.sum()) + len(problems))
        places = np.flatnonzero(kept)
        return Extraction(features if kept.all() else features[places], places, tuple(problems))

    def _batches_ahead(
        self, sources: Sequence[Any], n_threads: int
    ) -> Iterator[list[_Ready | BadImage]]:
        if self.network.one_size:
            batches = self._batches(sources)
            # Where vectors are known there is nothing to compute meanwhile, and threads would only
            # wait for each other.
            for batch in batches if self.cache is not None else ():
                found = self._ready(batch)
                yield found
                if any(isinstance(one, _Ready) and one.vector is None for one in found):
                    break
            yield from in_order_ahead(self._ready, batches, n_threads)
            return
        # Whole batches ahead of images at full size would fill the memory.
        ones = in_order_ahead(self._one, enumerate(sources), n_threads, per_thread=2)
        yield from in_groups(ones, _n_bytes, most_items=self.batch_size, most_bytes=MOST_BYTES)

    def _batches(self, sources: Sequence[Any]) -> Iterator[list[tuple[int, Any]]]:
        numbered = list(enumerate(sources))
        for first in range(0, len(numbered), self.batch_size):
            yield numbered[first : first + self.batch_size]

    def _computed(self, waiting: list[_Ready]) -> Features:
        vectors = self.network.run([one.prepared for one in waiting if one.prepared is not None])
        if vectors.shape[1] != self.network.n_features:
            raise ValueError(
                f"the model gave {self.network.n_features} features at first, "
                f"now {vectors.shape[1]}"
            )
        if self.cache is not None:
            self.cache.put([one.key for one in waiting if one.key is not None], vectors)
        return vectors

    def _ready(self, batch: list[tuple[int, Any]]) -> list[_Ready | BadImage]:
        return [self._one(item) for item in batch]

    def _one(self, item: tuple[int, Any]) -> _Ready | BadImage:
        index, source = item
        try:
            return self._read(index, source)
        except ImageError as error:
            if not self.skip_bad:
                raise
            return BadImage(index, error.source, error.reason)

    def _read(self, index: int, source: Any) -> _Ready:
        content = content_of(source, self.limits)
        # What an array or a Pillow image shows is known by its pixels only.
        image = None if isinstance(content, bytes) else self._pixels(source, content)
        key = None if self.cache is None else _key_of(content if image is None else image)
        vector = None if self.cache is None or key is None else self.cache.get(key)
        if vector is not None:
            # What is kept was within the usual limits.
            if isinstance(content, bytes) and self.limits.max_pixels < DEFAULT_LIMITS.max_pixels:
                check_size(source, content, self.limits)
            return _Ready(index, key, vector, None)
        if image is None:
            image = self._pixels(source, content)
        return _Ready(index, key, None, self.network.prepare(image))

    def _pixels(self, source: Any, content: Any) -> npt.NDArray[np.uint8]:
        side = self.network.needed_side
        return pixels_of(source, content, limits=self.limits, max_side=side)


def _n_bytes(one: _Ready | BadImage) -> int:
    prepared = None if isinstance(one, BadImage) else one.prepared
    return 0 if prepared is None else prepared.nbytes


def _key_of(content: bytes | npt.NDArray[np.uint8]) -> bytes:
    if isinstance(content, bytes):
        return hashlib.sha256(content).digest()
    # A picture's shape and pixels are never the bytes of a file.
    digest = hashlib.sha256(f"pixels {content.shape}\n".encode())
    digest.update(np.ascontiguousarray(content).data)
    return digest.digest()
