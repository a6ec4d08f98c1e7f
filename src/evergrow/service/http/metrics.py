"""Numbers for Prometheus."""

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

__all__ = ["Metrics"]

# From a cached listing to an image that waits behind others.
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_BATCHES = (1, 2, 4, 8, 16, 32, 64)


class _OfWorkspace(Collector):
    def __init__(self, ask: Callable[[], Status]) -> None:
        self._ask = ask

    def describe(self) -> Iterable[Metric]:
        """Nothing: what is there is not asked for before someone looks."""
        return []

    def collect(self) -> Iterator[Metric]:
        status = self._ask()
        values = {
            "examples": ("Examples.", status.n_examples),
            "classes": ("Classes.", status.n_classes),
            "event": ("Number of the newest change.", status.event),
            "workspace_bytes": ("Size of the workspace on disk.", status.n_bytes),
        }
        for name, (what, value) in values.items():
            yield GaugeMetricFamily(f"evergrow_{name}", what, value=value)


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

    def watch_workspace(self, ask: Callable[[], Status]) -> None:
        """Add what a workspace tells of itself, asked for once per look."""
        self.registry.register(_OfWorkspace(ask))

    def text(self) -> bytes:
        """All numbers as Prometheus reads them."""
        return generate_latest(self.registry)
