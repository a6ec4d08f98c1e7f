"""The time to teach one example, which must not grow with the number of known examples."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, report, show_table
from tests.harness.http_client import Body, Caller, embedding_body, picture_body
from tests.harness.pictures import photographs
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess
from tests.harness.workspaces import Tokens, fill_workspace, new_workspace, vectors

N_CLASSES = 100
SIZES = (1_000, 10_000, 50_000)
# What "flat" allows: the largest median over the smallest.
FLAT = 1.5

Times = dict[str, list[float]]


def example_times(service: ServiceProcess, tokens: Tokens, n_examples: int, first: int) -> Times:
    """Seconds per example by one client, with a picture and with the vector sent."""
    X, labels = vectors(n_examples, tokens.n_features, N_CLASSES, seed=first)
    sent = [embedding_body(row, label) for row, label in zip(X, labels, strict=True)]
    pictures = photographs(n_examples, first=first)
    shown = [picture_body(one, label) for one, label in zip(pictures, labels, strict=True)]
    caller = Caller(service.port, tokens.teach)
    try:
        # The first example after opening computes the weights, and the first picture warms up.
        _seconds(caller, [embedding_body(-X[0], labels[0])])
        _seconds(caller, [picture_body(one, labels[0]) for one in photographs(3, first=first - 3)])
        return {"picture": _seconds(caller, shown), "vector": _seconds(caller, sent)}
    finally:
        caller.close()


def _seconds(caller: Caller, bodies: Iterable[Body]) -> list[float]:
    times = []
    for body in bodies:
        begun = time.perf_counter()
        reply = caller.teach(body)
        times.append(time.perf_counter() - begun)
        if reply.status != 201:
            raise RuntimeError(f"teaching gave {reply.status}: {reply.content[:300]!r}")
    return times


def run(quick: bool) -> None:
    """Fill a workspace to each size and teach over HTTP at each."""
    sizes = (1_000, 2_000) if quick else SIZES
    n_examples = 30 if quick else 200
    medians: dict[str, dict[int, float]] = {"picture": {}, "vector": {}}
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        tokens = new_workspace(folder, features="efficientnet-lite0")
        for size in sizes:
            fill_workspace(folder, size, N_CLASSES)
            with ServiceProcess(folder, NO_RATE_LIMIT) as service:
                found = example_times(service, tokens, n_examples, first=size)
                service.stop()
            for kind, times in found.items():
                medians[kind][size] = 1e3 * float(np.median(times))
                high = 1e3 * float(np.quantile(times, 0.95))
                rows.append((kind, size, medians[kind][size], high))
    show_table(
        f"Teaching one example over HTTP, {N_CLASSES} classes",
        ["sent as", "examples known", "median, ms", "95 %, ms"],
        rows,
    )
    known = sizes[1]
    report(
        "service teaching",
        f"one client, {N_CLASSES} classes, {tokens.n_features} features",
        [
            Figure(f"640 x 480 JPEG, {known} known, ms", medians["picture"][known], 60, "at most"),
            Figure(f"vector sent, {known} known, ms", medians["vector"][known], 8, "at most"),
            *(
                Figure(f"{kind}: slowest size over fastest", _spread(by_size), FLAT, "at most")
                for kind, by_size in medians.items()
            ),
        ],
        bars=not quick,
    )


def _spread(by_size: dict[int, float]) -> float:
    return max(by_size.values()) / min(by_size.values())
