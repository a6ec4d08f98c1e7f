"""Threads that read while another one learns, and processes that are interrupted."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def reading(read: Callable[[], Any], n_threads: int = 3) -> Iterator[None]:
    """Call a function again and again in other threads while the block runs; none may fail."""
    done = threading.Event()
    failures: list[Exception] = []

    def work() -> None:
        while not done.is_set():
            try:
                read()
            except Exception as failure:  # noqa: BLE001
                failures.append(failure)

    readers = [threading.Thread(target=work) for _ in range(n_threads)]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not failures


_INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import evergrow

# A background job inherits a SIGINT that is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

rng = np.random.default_rng(0)
X = rng.normal(size=({n_rows}, 256)).astype(np.float32)
y = rng.integers(0, {n_classes}, {n_rows})
# Modules are imported before the clock starts: an import may lose the signal.
evergrow.NCMForestClassifier(1).fit(X[:60], y[:60])
{prepare}
asked = []

def interrupt():
    asked.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer({seconds}, interrupt).start()
try:
    {action}
except KeyboardInterrupt:
    waited = time.perf_counter() - asked[0]
    assert waited < 1.0, waited
{check}
    print("interrupted")
"""


def check_interrupted(
    action: str,
    prepare: str = "",
    check: str = "",
    *,
    n_rows: int = 20000,
    n_classes: int = 50,
    seconds: float = 0.7,
) -> None:
    """Assert that Ctrl-C stops an action on ``X`` and ``y`` in a process within a second."""
    code = _INTERRUPTED.format(
        action=action,
        prepare=textwrap.dedent(prepare),
        check=textwrap.indent(textwrap.dedent(check), "    "),
        n_rows=n_rows,
        n_classes=n_classes,
        seconds=seconds,
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "interrupted\n", done.stderr
