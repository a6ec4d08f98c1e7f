"""Metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from evergrow.workspace.records import Status

# From a cached listing to an image at the end of a long queue.
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_BATCHES = (1, 2, 4, 8, 16, 32, 64)


class _WorkspaceCollector(Collector):
    def __init__(self, read: Callable[[], Status]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Return nothing: values are read only when metrics are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        status = self._read()
        values = {
            "examples": ("Examples.", status.n_examples),
            "classes": ("Classes.", status.n_classes),
            "event": ("Number of the newest change.", status.event),
            "workspace_bytes": ("Size of the workspace on disk.", status.n_bytes),
        }
        for name, (description, value) in values.items():
            yield GaugeMetricFamily(f"evergrow_{name}", description, value=value)


class Metrics:
    """All metrics of one service, in a registry of its own."""

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
            "Time from the headers of a request to the end of its response.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.refused_images = Counter(
            "evergrow_refused_images",
            "Refused images, by reason.",
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

    def add_gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        """Add a value that is read whenever metrics are collected."""
        Gauge(f"evergrow_{name}", description, registry=self.registry).set_function(read)

    def add_workspace(self, read: Callable[[], Status]) -> None:
        """Add the size of a workspace; its status is read once per collection."""
        self.registry.register(_WorkspaceCollector(read))

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)
