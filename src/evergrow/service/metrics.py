"""Numbers for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

__all__ = ["Metrics"]

# From a cached listing to an image that waits behind others.
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_BATCHES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """All numbers of one service, in a registry of its own."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._requests = Counter(
            "evergrow_requests",
            "Requests by method, route and status.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "evergrow_request_seconds",
            "Time from the head of a request to the end of its answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.refused_images = Counter(
            "evergrow_refused_images",
            "Images that were not taken, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self.taught = Counter(
            "evergrow_taught_examples", "Examples taught since the start.", registry=self.registry
        )
        self.predicted = Counter(
            "evergrow_predictions", "Predictions since the start.", registry=self.registry
        )
        self.written_together = Histogram(
            "evergrow_written_together",
            "Changes that shared one transaction.",
            buckets=_BATCHES,
            registry=self.registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def watch(self, name: str, what: str, ask: Callable[[], float]) -> None:
        """Add a number that is asked for whenever someone looks."""
        Gauge(f"evergrow_{name}", what, registry=self.registry).set_function(ask)

    def text(self) -> bytes:
        """All numbers as Prometheus reads them."""
        return generate_latest(self.registry)
