"""Settings of the service: limits on what clients may use."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import ClassVar

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Integer, Number, Rule, check_parameters
from evergrow.service.client.connections import parse_url
from evergrow.service.decoding.decoder import DecoderLimits
from evergrow.service.http.fairness import Allowance
from evergrow.vision.images.sources import ReadLimits

_MILLION = 1_000_000
_BYTES_AT_ONCE = 400 * _MILLION
_HOST_NAME = re.compile(r"\*|[A-Za-z0-9._-]{1,253}")


class _LabelStudioUrl:
    """The address of a Label Studio."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        try:
            return value == "" or bool(parse_url(value))  # type: ignore[arg-type]
        except InvalidInputError:
            return False

    def __str__(self) -> str:
        return "an address such as 'http://127.0.0.1:8081', or '' for none"


class _Text:
    """Any text."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return isinstance(value, str)

    def __str__(self) -> str:
        return "a text"


class _HostNames:
    """Names of hosts."""

    def admits(self, value: object) -> bool:
        """Whether the value is allowed."""
        return isinstance(value, tuple) and all(
            isinstance(name, str) and _HOST_NAME.fullmatch(name) for name in value
        )

    def __str__(self) -> str:
        return "a tuple of host names without scheme and port, or ('*',) for any"


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Settings:
    """Limits of a service; pass them to :func:`serve`.

    Parameters
    ----------
    max_request_bytes : int, default=20_000_000
        Maximum length of a request body. Raise it for large photographs.
    max_bytes_at_once : int, default=0
        Maximum total size of the request bodies in memory. Further requests get status 503. One
        token may use a quarter of it, or one request of the maximum length. All tokens that may not
        teach together may use half of it. 0 is 400 million, or twice `max_request_bytes` if that is
        more.
    max_connections : int, default=1000
        Maximum number of connections, and at most half of the files that the process may open. If
        all are in use, a new connection replaces the one that has been idle longest. Connections
        without a valid token are replaced first.
    max_connections_per_address : int, default=0
        Maximum number of connections without a valid token from one address. 0 is a quarter of
        `max_connections`. Raise it behind a proxy whose clients share one address. Refused tokens
        and requests without a token are still limited by address.
    max_requests : int, default=256
        Maximum number of simultaneous requests with a valid token. Further requests get status 429.
        One token may have a quarter of them. Another quarter is reserved for tokens that may teach.
    read_seconds : float, default=30
        Timeout for receiving a request body. Raise it for slow networks.
    min_body_rate : int, default=4000
        Minimum rate at which a request body must arrive, in bytes per second, averaged over 5
        seconds. Slower requests get status 408.
    rate : float, default=300
        Rate limit of one token, in requests per second.
    burst : int, default=600
        Number of requests that one token may send at once after a pause.
    max_images : int, default=32
        Maximum number of images, or embeddings, in one request.
    max_pixels : int, default=50_000_000
        Maximum number of pixels of one image.
    decode_seconds : float, default=10
        Timeout for decoding one image.
    request_decode_seconds : float, default=20
        Total decoding time for all images of one request.
    images_seconds : float, default=60
        Timeout for processing the images of a request, including their time in the queue. After
        that the request gets status 503.
    max_waiting_images : int, default=512
        Maximum number of images of one token that are queued or processed. Further requests get
        status 503.
    decode_bytes : int, default=2_000_000_000
        Maximum address space of a decoder process, in bytes.
    decoders : int, default=0
        Number of decoder processes. 0 is one per processor, and at least two.
    threads : int, default=0
        Number of threads that run the network. 0 is one per processor.
    max_queue : int, default=256
        Maximum number of queued changes. Further requests get status 503.
    stop_seconds : float, default=20
        Grace period for running requests at shutdown.
    allow_hosts : tuple of str, default=()
        Further host names in requests to accept, without port; ``"*"`` accepts any. IP addresses,
        ``localhost`` and the name of this computer are always accepted.
    label_studio : str, default=""
        Address of the Label Studio to learn annotations from, such as ``"http://127.0.0.1:8081"``.
        Empty for none.
    label_studio_token : str, default=""
        A personal access token, or a legacy token, of that Label Studio.
    label_studio_seconds : float, default=30
        Seconds between two searches for annotations that Label Studio did not announce.
    """

    max_request_bytes: int = 20 * _MILLION
    max_bytes_at_once: int = 0
    max_connections: int = 1000
    max_connections_per_address: int = 0
    max_requests: int = 256
    read_seconds: float = 30.0
    min_body_rate: int = 4000
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
    allow_hosts: tuple[str, ...] = ()
    label_studio: str = ""
    label_studio_token: str = field(default="", repr=False)
    label_studio_seconds: float = 30.0
    n_processors: int = field(default_factory=_processors)

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "max_request_bytes": [Integer(1024, 1000 * _MILLION)],
        "max_bytes_at_once": [Integer(0)],
        "max_connections": [Integer(1, 1_000_000)],
        "max_connections_per_address": [Integer(0, 1_000_000)],
        "max_requests": [Integer(1, 100_000)],
        "min_body_rate": [Integer(0)],
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
        "allow_hosts": [_HostNames()],
        "label_studio": [_LabelStudioUrl()],
        "label_studio_token": [_Text()],
        "label_studio_seconds": [Number(1.0, 3600.0)],
        "n_processors": [Integer(1)],
    }

    def __post_init__(self) -> None:
        check_parameters(vars(self), self._rules)
        if self.label_studio and not self.label_studio_token:
            raise InvalidInputError(
                "label_studio needs label_studio_token, an access token of that Label Studio"
            )

    @property
    def n_bytes_at_once(self) -> int:
        """Limit on the total size of the bodies held in memory.

        :meta private:
        """
        return self.max_bytes_at_once or max(_BYTES_AT_ONCE, 2 * self.max_request_bytes)

    def body_allowance(self) -> Allowance:
        """Shares of the memory for bodies.

        :meta private:
        """
        total = self.n_bytes_at_once
        one = min(self.max_request_bytes, total)
        return Allowance(total, max(one, total // 4), max(one, total // 2))

    def request_allowance(self) -> Allowance:
        """Shares of the requests at a time.

        :meta private:
        """
        total = self.max_requests
        return Allowance(total, max(1, total // 4), max(1, total - total // 4))

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
        """Memory and time that one image may use.

        :meta private:
        """
        reading = ReadLimits(max_pixels=self.max_pixels, max_bytes=self.max_request_bytes)
        return DecoderLimits(
            reading, self.decode_bytes, self.decode_seconds, self.request_decode_seconds
        )
