"""Eight clients predict and one teaches: throughput compared with that of the network alone."""

from __future__ import annotations

import multiprocessing
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, report
from tests.harness.http_client import LOST, picture_body, pictures_body, raw_reply, raw_request
from tests.harness.pictures import different, photograph, photographs
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess
from tests.harness.workspaces import fill_workspace, new_workspace

N_CLIENTS = 8
# What is known before: a workspace in use, not one whose first examples change everything.
N_CLASSES, N_KNOWN = 100, 10_000
# Numbers of pictures: each client has its own, and so has the run before the measurement.
APART = 1_000_000
WARMING_UP = 500 * APART


@dataclass
class Load:
    """What clients saw: a time per answer, and every answer but the right one."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    taught_seconds: list[float] = field(default_factory=list)
    # From the first request to the last answer.
    duration: float = 0.0
    processor_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Pictures that went through the network, asked and taught."""
        return (len(self.seconds) + len(self.taught_seconds)) / self.duration


def _client(
    port: int,
    requests: Iterator[bytes],
    until: float,
    expected: int,
    times: list[float],
    errors: list[str],
) -> None:
    """Send one request after the other over a kept connection."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for request in requests:
            begun = time.perf_counter()
            if begun > until:
                return
            status = raw_reply(connection, request)
            times.append(time.perf_counter() - begun)
            if status != expected:
                errors.append(f"status {status}")
    except LOST as error:
        errors.append(repr(error))
    finally:
        connection.close()


def _predictions(token: str, drawn: Sequence[bytes], first: int) -> Iterator[bytes]:
    for number in count(first):
        picture = different(drawn[number % len(drawn)], number)
        yield raw_request("/v1/predictions", token, pictures_body([picture]))


def _examples(token: str, drawn: Sequence[bytes], first: int) -> Iterator[bytes]:
    for number in count(first):
        picture = different(drawn[number % len(drawn)], number)
        yield raw_request(
            "/v1/examples", token, picture_body(picture, f"class {number % N_CLASSES}")
        )


def _asking(
    port: int, token: str, seconds: float, n_clients: int, first: int, back: Connection
) -> None:
    """All clients, in one process of their own and a thread each: waiting costs them nothing."""
    drawn = [photograph(seed) for seed in range(40)]
    found = Load()
    begun = time.perf_counter()
    until = begun + seconds
    asked = [_predictions(token, drawn, first + i * APART) for i in range(n_clients)]
    threads = [
        threading.Thread(
            target=_client, args=(port, requests, until, 200, found.seconds, found.errors)
        )
        for requests in asked
    ]
    examples = _examples(token, drawn, first + n_clients * APART)
    teacher = (port, examples, until, 201, found.taught_seconds, found.errors)
    threads.append(threading.Thread(target=_client, args=teacher))
    spent = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.duration = time.perf_counter() - begun
    found.processor_seconds = time.process_time() - spent
    back.send(found)
    back.close()


def load(
    port: int, token: str, seconds: float, *, n_clients: int = N_CLIENTS, first: int = 0
) -> Load:
    """Let clients ask, and one teach, for some seconds; no picture is sent twice."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    arguments = (port, token, seconds, n_clients, first, there)
    process = context.Process(target=_asking, args=arguments)
    process.start()
    there.close()
    found: Load = here.recv()
    process.join()
    return found


def embedder_rate(pictures: Sequence[bytes]) -> tuple[float, float]:
    """Pictures per second by the network alone, nothing kept, and processor time of each."""
    from evergrow.vision import Embedder

    embedder = Embedder(n_jobs=-1, cache=False).fit()
    embedder.transform(pictures[:32])
    begun, spent = time.perf_counter(), time.process_time()
    embedder.transform(pictures)
    spent = time.process_time() - spent
    return len(pictures) / (time.perf_counter() - begun), spent / len(pictures)


def run(quick: bool) -> None:
    """Measure the network before and after, and the service in between."""
    seconds = 5.0 if quick else 60.0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        tokens = new_workspace(folder, features="efficientnet-lite0")
        fill_workspace(folder, N_KNOWN // 10 if quick else N_KNOWN, N_CLASSES)
        alone = photographs(200 if quick else 1200)
        before, cost = embedder_rate(alone)
        with ServiceProcess(folder, NO_RATE_LIMIT) as service:
            load(service.port, tokens.teach, 2.0, first=WARMING_UP)
            spent = service.processor_seconds()
            found = load(service.port, tokens.teach, seconds)
            spent = service.processor_seconds() - spent
        after, cost_after = embedder_rate(alone)
    times = np.array(found.seconds)
    median, high = float(np.median(times)), float(np.quantile(times, 0.99))
    limit = (before + after) / 2
    n_pictures = len(times) + len(found.taught_seconds)
    report(
        "service predictions",
        f"{N_CLIENTS} clients ask and one teaches for {seconds:g} s, 640 x 480 JPEG",
        [
            Figure("errors", len(found.errors), 0, "at most"),
            Figure("predictions", len(times)),
            Figure("taught meanwhile", len(found.taught_seconds)),
            Figure("median, ms", 1e3 * median),
            Figure("99th percentile, ms", 1e3 * high),
            Figure("99th percentile over median", high / median, 10, "at most"),
            Figure("median of teaching, ms", 1e3 * float(np.median(found.taught_seconds))),
            Figure("pictures per second", found.per_second),
            Figure("the embedder alone, before", before),
            Figure("the embedder alone, after", after),
            Figure("of the embedder's limit", found.per_second / limit, 0.95),
            # What does not depend on what else the machine does.
            Figure("processor time per picture, ms", 1e3 * spent / n_pictures),
            Figure("the same of the embedder alone, ms", 5e2 * (cost + cost_after)),
            Figure("the same of the clients, ms", 1e3 * found.processor_seconds / n_pictures),
        ],
        bars=not quick,
    )
    for line in found.errors[:20]:
        print(line)
