"""The service over HTTP: time to teach, throughput of predictions, and time to start."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.measure import median_seconds, show_figures, show_table
from benchmarks.pictures import as_jpeg, different, drawn
from benchmarks.server import (
    N_CLASSES,
    Connection,
    RunningService,
    fill_workspace,
    multipart,
    new_workspace,
    vectors,
)

# Content type and body.
Body = tuple[str, bytes]
N_CLIENTS = 8
# Numbers of pictures: each client has its own, so that no picture is sent twice.
APART = 1_000_000
# What the service imports before it opens a workspace.
IMPORTS = "import evergrow.cli, evergrow.service.http.server, onnxruntime, uvicorn"


@cache
def _drawn() -> list[bytes]:
    return [as_jpeg(drawn(seed)) for seed in range(40)]


def _pictures(first: int) -> Iterator[bytes]:
    """Ever more files of 640 x 480 pixels, of a few drawn images."""
    images = _drawn()
    return (different(images[number % len(images)], number) for number in count(first))


def teaching(quick: bool) -> None:
    """The time to teach one example, with more and more examples known."""
    n = 30 if quick else 200
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        token = new_workspace(folder)
        for size in (1_000, 2_000) if quick else (1_000, 10_000, 50_000):
            n_features = fill_workspace(folder, size)
            X, labels = vectors(n + 1, n_features, seed=size + 1)
            sent = [
                ("application/json", json.dumps({"embedding": x.tolist(), "label": y}).encode())
                for x, y in zip(X, labels, strict=True)
            ]
            shown = [multipart(p, y) for p, y in zip(_pictures(APART * size), labels, strict=False)]
            with RunningService(folder) as service, Connection(service.port, token) as connection:
                for kind, bodies in (("vector", sent), ("picture", shown)):
                    # The first one computes the weights, or loads the network.
                    times = _times(connection, bodies)[1:]
                    high = 1e3 * float(np.quantile(times, 0.95))
                    rows.append((kind, size, 1e3 * statistics.median(times), high))
    columns = ["sent as", "examples known", "median, ms", "95 %, ms"]
    show_table(f"teaching one example over HTTP, {N_CLASSES} classes", columns, rows)


def _times(connection: Connection, bodies: Iterable[Body]) -> list[float]:
    times = []
    for body in bodies:
        begun = time.perf_counter()
        status = connection.post("/v1/examples", *body)
        times.append(time.perf_counter() - begun)
        if status != 201:
            raise RuntimeError(f"teaching gave {status}")
    return times


def predictions(quick: bool) -> None:
    """Eight clients predict and one teaches; the network alone is measured before and after."""
    seconds = 5.0 if quick else 60.0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        token = new_workspace(folder)
        fill_workspace(folder, 1_000 if quick else 10_000)
        alone = [*islice(_pictures(0), 100 if quick else 1200)]
        before = _embedder_rate(alone)
        with (
            RunningService(folder) as service,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as clients,
        ):
            clients.submit(load, service.port, token, 2.0, 500 * APART).result()
            spent = service.processor_seconds()
            asked, taught, duration = clients.submit(
                load, service.port, token, seconds, APART
            ).result()
            spent = service.processor_seconds() - spent
        after = _embedder_rate(alone)
    n_pictures = len(asked) + len(taught)
    show_figures(
        f"{N_CLIENTS} clients ask and one teaches for {seconds:g} s, 640 x 480 JPEG",
        {
            "median, ms": 1e3 * statistics.median(asked),
            "99th percentile, ms": 1e3 * float(np.quantile(asked, 0.99)),
            "median of teaching, ms": 1e3 * statistics.median(taught),
            "pictures per second": n_pictures / duration,
            "the embedder alone, before": before,
            "the embedder alone, after": after,
            # What does not depend on what else the machine does.
            "processor time per picture, ms": 1e3 * spent / n_pictures,
        },
    )


def load(
    port: int, token: str, seconds: float, first: int
) -> tuple[list[float], list[float], float]:
    """Times of predictions and of teaching, and how long all of it took.

    All clients are threads of one process that does nothing else.
    """
    # Drawing takes seconds, which are not those of the service.
    _drawn()
    begun = time.perf_counter()

    def client(number: int) -> list[float]:
        teaches = number == N_CLIENTS
        path, expected = ("/v1/examples", 201) if teaches else ("/v1/predictions", 200)
        times: list[float] = []
        with Connection(port, token) as connection:
            for i, picture in enumerate(_pictures(first + number * APART)):
                body = multipart(picture, f"class {i % N_CLASSES}" if teaches else None)
                start = time.perf_counter()
                if start > begun + seconds:
                    return times
                status = connection.post(path, *body)
                times.append(time.perf_counter() - start)
                if status != expected:
                    raise RuntimeError(f"{path} gave {status}")
        raise AssertionError

    with ThreadPoolExecutor(N_CLIENTS + 1) as threads:
        *asked, taught = threads.map(client, range(N_CLIENTS + 1))
    return [one for times in asked for one in times], taught, time.perf_counter() - begun


def _embedder_rate(pictures: Sequence[bytes]) -> float:
    """Pictures per second by the network alone, nothing kept."""
    from evergrow.vision import Embedder

    embedder = Embedder(n_jobs=-1, cache=False).fit()
    embedder.transform(pictures[:32])
    return len(pictures) / median_seconds(lambda: embedder.transform(pictures), 1)


def starts(quick: bool) -> None:
    """From the command to the first answer: after a stop, and after a kill."""
    n_examples = 1_000 if quick else 10_000
    command = [sys.executable, "-c", IMPORTS]
    imports = median_seconds(lambda: subprocess.run(command, check=True), 1 if quick else 5)
    after_stop: list[float] = []
    after_kill: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        new_workspace(folder)
        fill_workspace(folder, n_examples)
        for _ in range(1 if quick else 5):
            for times, ends in ((after_stop, "kill"), (after_kill, "stop")):
                begun = time.perf_counter()
                with RunningService(folder) as service:
                    times.append(time.perf_counter() - begun)
                    if ends == "kill":
                        service.kill()
    show_figures(
        f"starting a service with {n_examples} examples",
        {
            "imports, s": imports,
            "start after a stop, s": statistics.median(after_stop),
            "start after a kill, s": statistics.median(after_kill),
        },
    )
