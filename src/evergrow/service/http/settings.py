"""What can be set about a service, and how much one client may take of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import ClassVar

from evergrow.foundation.params import Integer, Number, Rule, check_parameters
from evergrow.service.decoding.child import DecoderLimits
from evergrow.vision.images.sources import ReadLimits

__all__ = ["Settings"]

_MILLION = 1_000_000
_BYTES_AT_ONCE = 400 * _MILLION


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """Limits of a service.

    Parameters
    ----------
    max_request_bytes : int, default=20_000_000
        Longest body of a request. Raise it for large photographs.
    max_bytes_at_once : int, default=0
        Bodies that are held in memory at once; further requests are asked to come later. 0 for
        400 million, or two of the longest if that is more.
    read_seconds : float, default=30
        Time for a request to arrive whole. Raise it for slow networks.
    rate, burst : float and int, default=300 and 600
        Requests per second of one token, and how many at once after a pause.
    max_images : int, default=32
        Images, or embeddings, in one request.
    max_pixels : int, default=50_000_000
        Pixels of one image.
    decode_seconds : float, default=10
        Time to decode one image.
    request_decode_seconds : float, default=20
        Time to decode all images of one request, one after the other.
    images_seconds : float, default=60
        Time that a request waits for its images in all, behind those of others too; then it is
        asked to come later.
    max_waiting_images : int, default=512
        Images of one token that may wait to be decoded; beyond it clients are asked to come later.
    decode_bytes : int, default=2_000_000_000
        Address space of a process that decodes.
    decoders : int, default=0
        Processes that decode; 0 for one per processor, at least two.
    threads : int, default=0
        Threads that run the network; 0 for one per processor.
    max_queue : int, default=256
        Changes that may wait to be written; beyond it clients are asked to come later.
    stop_seconds : float, default=20
        Time that requests have to end when the service is told to stop.
    """

    max_request_bytes: int = 20 * _MILLION
    max_bytes_at_once: int = 0
    read_seconds: float = 30.0
    rate: float = 300.0
    burst: int = 600
    max_images: int = 32
    max_pixels: int = 50 * _MILLION
    decode_seconds: float = 10.0
    request_decode_seconds: float = 20.0
    images_seconds: float = 60.0
    max_waiting_images: int = 512
    decode_bytes: int = 2_000 * _MILLION
    decoders: int = 0
    threads: int = 0
    max_queue: int = 256
    stop_seconds: float = 20.0
    n_processors: int = field(default_factory=_processors)

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "max_request_bytes": [Integer(1024, 1000 * _MILLION)],
        "max_bytes_at_once": [Integer(0)],
        "read_seconds": [Number(0.0, 3600.0, open_low=True)],
        "rate": [Number(0.0, 1e6, open_low=True)],
        "burst": [Integer(1)],
        "max_images": [Integer(1, 1024)],
        "max_pixels": [Integer(1)],
        "decode_seconds": [Number(0.0, 3600.0, open_low=True)],
        "request_decode_seconds": [Number(0.0, 3600.0, open_low=True)],
        "images_seconds": [Number(0.0, 3600.0, open_low=True)],
        "max_waiting_images": [Integer(1)],
        "decode_bytes": [Integer(100 * _MILLION)],
        "decoders": [Integer(0, 256)],
        "threads": [Integer(0, 256)],
        "max_queue": [Integer(1)],
        "stop_seconds": [Number(0.0, 3600.0, open_low=True)],
        "n_processors": [Integer(1)],
    }

    def __post_init__(self) -> None:
        check_parameters(vars(self), self._rules)

    @property
    def n_bytes_at_once(self) -> int:
        """Bytes of bodies that are held in memory at once."""
        return self.max_bytes_at_once or max(_BYTES_AT_ONCE, 2 * self.max_request_bytes)

    @property
    def n_decoders(self) -> int:
        """Processes that decode."""
        return self.decoders or max(2, self.n_processors)

    @property
    def n_threads(self) -> int:
        """Threads that run the network."""
        return self.threads or self.n_processors

    @property
    def decoder_limits(self) -> DecoderLimits:
        """How much one image may take."""
        reading = ReadLimits(max_pixels=self.max_pixels, max_bytes=self.max_request_bytes)
        return DecoderLimits(
            reading, self.decode_bytes, self.decode_seconds, self.request_decode_seconds
        )
