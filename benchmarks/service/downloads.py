"""Downloads next to predictions and teaching: what others notice, and how long they take."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, report, show_table
from evergrow.workspace import NewExample, Picture, Workspace
from evergrow.workspace.tokens import Tokens as TokenFile
from tests.harness.http_client import Caller, Reply, picture_body, pictures_body
from tests.harness.pictures import different, photograph
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess
from tests.harness.workspaces import Tokens, new_workspace, vectors

N_CLASSES = 10
N_PICTURES, N_BYTES = 2_000, 150_000
N_READERS = 4
N_DOWNLOADS = (0, 1, 4, 8)
FILES = ("model", "onnx", "html", "pictures")
_CHUNK_BYTES = 1 << 18


def run(quick: bool) -> None:
    """Ask and teach while some clients download all pictures again and again."""
    n_requests = 20 if quick else 100
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        tokens = new_workspace(folder, features="efficientnet-lite0")
        readers = [TokenFile(folder).add(f"reader {i}", "read") for i in range(N_READERS)]
        _fill(folder, N_PICTURES // 10 if quick else N_PICTURES, tokens.n_features)
        with ServiceProcess(folder, NO_RATE_LIMIT) as service:
            _measure_others(service, tokens, readers, n_requests, quick)
            _measure_files(service, tokens)


def _fill(folder: Path, n_pictures: int, n_features: int) -> None:
    """Teach files that cannot be compressed; no one looks at them."""
    X, labels = vectors(n_pictures, n_features, N_CLASSES, seed=0)
    content = Picture(b"", "image/jpeg", 640, 480, b"")
    with Workspace.open(folder) as workspace:
        for first in range(0, n_pictures, 64):
            rows = zip(X[first : first + 64], labels[first : first + 64], strict=True)
            workspace.teach(
                [
                    NewExample(row, label, picture=replace(content, content=os.urandom(N_BYTES)))
                    for row, label in rows
                ]
            )


class _Downloads:
    """Clients that download all pictures, again and again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.stop = threading.Event()
        self.n_bytes = 0

    def repeat(self, token: str) -> None:
        while not self.stop.is_set():
            connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
            with closing(connection):
                headers = {"Authorization": f"Bearer {token}"}
                connection.request("GET", "/v1/pictures", headers=headers)
                answer = connection.getresponse()
                if answer.status != 200:
                    raise RuntimeError(f"a download gave {answer.status}: {answer.read(300)!r}")
                while not self.stop.is_set() and (part := answer.read(_CHUNK_BYTES)):
                    self.n_bytes += len(part)


@contextmanager
def _downloading(port: int, tokens: Sequence[str], n: int) -> Iterator[_Downloads]:
    downloads = _Downloads(port)
    threads = [
        threading.Thread(target=downloads.repeat, args=(tokens[i % len(tokens)],)) for i in range(n)
    ]
    for thread in threads:
        thread.start()
    try:
        yield downloads
    finally:
        downloads.stop.set()
        for thread in threads:
            thread.join()


def _measure_others(
    service: ServiceProcess, tokens: Tokens, readers: Sequence[str], n_requests: int, quick: bool
) -> None:
    photo = photograph(0)
    rows, medians = [], {}
    with closing(Caller(service.port, tokens.teach)) as caller:
        _seconds(lambda _: caller.predict(pictures_body([photo])), 10)
        memory = service.memory()
        for n in N_DOWNLOADS:
            with _downloading(service.port, readers, n) as downloads:
                begun, before = time.perf_counter(), downloads.n_bytes
                asked = _seconds(lambda _: caller.predict(pictures_body([photo])), n_requests)
                taught = _seconds(partial(_teach, caller, photo, 1000 * n), n_requests)
                rate = (downloads.n_bytes - before) / (time.perf_counter() - begun) / 1e6
            medians[n] = float(np.median(asked))
            times = [f(one) for one in (asked, taught) for f in (np.median, _high)]
            rows.append((n, rate, *(1e3 * float(one) for one in times)))
        most = service.memory()
    show_table(
        f"Others while pictures are downloaded by {N_READERS} tokens, ms",
        ["downloads", "MB per second", "predict", "95 %", "teach", "95 %"],
        rows,
    )
    report(
        "service downloads",
        "640 x 480 JPEG by one client, clients and service on the same processors",
        [
            Figure(
                f"prediction with {N_DOWNLOADS[-1]} downloads over without",
                medians[N_DOWNLOADS[-1]] / medians[0],
                2,
                "at most",
            ),
            Figure("memory more than before, MB", (most - memory) / 1e6, 100, "at most"),
        ],
        bars=not quick,
    )


def _teach(caller: Caller, photo: bytes, first: int, number: int) -> Reply:
    return caller.teach(picture_body(different(photo, first + number), "cup"))


def _high(times: Sequence[float]) -> float:
    return float(np.quantile(times, 0.95))


def _seconds(send: Callable[[int], Reply], n: int) -> list[float]:
    times = []
    for number in range(n):
        begun = time.perf_counter()
        reply = send(number)
        times.append(time.perf_counter() - begun)
        if reply.status not in (200, 201):
            raise RuntimeError(f"{reply.status}: {reply.content[:300]!r}")
    return times


def _measure_files(service: ServiceProcess, tokens: Tokens) -> None:
    """Prepare and send each file, the second time with what the first has loaded."""
    rows: list[tuple[object, ...]] = []
    with closing(Caller(service.port, tokens.read, timeout=600)) as caller:
        for file in (*FILES, *FILES):
            begun = time.perf_counter()
            body = ("application/json", json.dumps({"file": file}).encode())
            link = caller.request("POST", "/v1/downloads", body)
            prepared = time.perf_counter()
            if link.status != 201:
                rows.append((file, "", "", link.json()["detail"]))
                continue
            sent = caller.request("GET", f"/v1/downloads/{link.json()['ticket']}")
            seconds = time.perf_counter() - prepared
            rows.append((file, prepared - begun, seconds, f"{len(sent.content) / 1e6:.1f}"))
    show_table("Files, s", ["file", "to prepare", "to send", "MB"], rows)
