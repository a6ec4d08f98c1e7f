"""Settings of the service: limits on what clients may use."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import ClassVar

from evergrow.foundation.params import Integer, Number, Rule, check_parameters
from evergrow.service.decoding.decoder import DecoderLimits
from evergrow.vision.images.sources import ReadLimits

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
        Maximum length of a request body. Raise it for large photographs.
    max_bytes_at_once : int, default=0
        Total size of the bodies held in memory; beyond it requests are answered with 503. 0 for
        400 million, or twice ``max_request_bytes`` if that is more.
    read_seconds : float, default=30
        Timeout for receiving a request body. Raise it for slow networks.
    rate, burst : float and int, default=300 and 600
        Rate limit of one token in requests per second, and the size of a burst after a pause.
    max_images : int, default=32
        Maximum number of images, or embeddings, in one request.
    max_pixels : int, default=50_000_000
        Maximum number of pixels of one image.
    decode_seconds : float, default=10
        Timeout for decoding one image.
    request_decode_seconds : float, default=20
        Total decoding time for all images of one request.
    images_seconds : float, default=60
        Timeout for processing the images of a request, including their time in the queue; then
        the request is answered with 503.
    max_waiting_images : int, default=512
        Maximum number of queued images of one token; beyond it requests are answered with 503.
    decode_bytes : int, default=2_000_000_000
        Address space of a decoder process.
    decoders : int, default=0
        Number of decoder processes; 0 for one per processor, at least two.
    threads : int, default=0
        Number of threads that run the network; 0 for one per processor.
    max_queue : int, default=256
        Maximum number of queued changes; beyond it requests are answered with 503.
    stop_seconds : float, default=20
        Grace period for running requests at shutdown.
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
        """Limit on the total size of the bodies held in memory."""
        return self.max_bytes_at_once or max(_BYTES_AT_ONCE, 2 * self.max_request_bytes)

    @property
    def n_decoders(self) -> int:
        """Number of decoder processes."""
        return self.decoders or max(2, self.n_processors)

    @property
    def n_threads(self) -> int:
        """Number of threads that run the network."""
        return self.threads or self.n_processors

    @property
    def decoder_limits(self) -> DecoderLimits:
        """Memory and time that one image may use."""
        reading = ReadLimits(max_pixels=self.max_pixels, max_bytes=self.max_request_bytes)
        return DecoderLimits(
            reading, self.decode_bytes, self.decode_seconds, self.request_decode_seconds
        )
