"""Starting, stopping and copying a workspace of 10 000 examples."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Figure, median_seconds, report
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess
from tests.harness.restarts import stop_while_teaching
from tests.harness.workspaces import fill_workspace, new_workspace, remove_snapshots

N_CLASSES = 100
# What the service imports before it opens a workspace.
IMPORTS = "import evergrow.cli, evergrow.service.http.server, onnxruntime, uvicorn"


@dataclass(frozen=True)
class Seconds:
    """How long something took, and of how much processor time, whatever else the machine did."""

    passed: float
    worked: float

    def beyond(self, other: Seconds) -> Seconds:
        return Seconds(self.passed - other.passed, self.worked - other.worked)

    @staticmethod
    def median(times: Sequence[Seconds]) -> Seconds:
        passed = statistics.median(one.passed for one in times)
        return Seconds(passed, statistics.median(one.worked for one in times))


def import_seconds() -> Seconds:
    """What a Python takes to begin and to import all that the service uses."""
    command = [sys.executable, "-c", IMPORTS]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = [median_seconds(lambda: subprocess.run(command, check=True), 1) for _ in range(5)]
    more = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = more.ru_utime + more.ru_stime - used.ru_utime - used.ru_stime
    return Seconds(statistics.median(times), spent / len(times))


def start_seconds(service: ServiceProcess) -> Seconds:
    """From the command to the first answer."""
    begun = time.perf_counter()
    service.start()
    service.wait_ready()
    return Seconds(time.perf_counter() - begun, service.processor_seconds())


def run(quick: bool) -> None:
    """Start after a stop, after a kill and without any snapshot; then copy and stop."""
    n_examples = 1_000 if quick else 10_000
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        tokens = new_workspace(folder, features="efficientnet-lite0")
        fill_workspace(folder, n_examples, N_CLASSES)
        service = ServiceProcess(folder, NO_RATE_LIMIT)
        imports = import_seconds()
        after_stop, after_kill = [], []
        for _ in range(1 if quick else 5):
            after_stop.append(start_seconds(service).beyond(imports))
            service.kill()
            after_kill.append(start_seconds(service).beyond(imports))
            service.stop()
        remove_snapshots(folder)
        replayed = start_seconds(service).beyond(imports)
        found = stop_while_teaching(service, tokens, Path(scratch, "copy"), seconds=3.0)
    stopped, killed = Seconds.median(after_stop), Seconds.median(after_kill)
    report(
        "service restarts",
        f"{n_examples} examples, {N_CLASSES} classes, {tokens.n_features} features",
        [
            Figure("imports, s", imports.passed),
            Figure("start after a stop, beyond imports, s", stopped.passed, 2, "at most"),
            Figure("the same, s of processor time", stopped.worked),
            Figure("start after a kill, beyond imports, s", killed.passed, 2, "at most"),
            Figure("the same after a kill, s of processor time", killed.worked),
            Figure("start without any snapshot, beyond imports, s", replayed.passed),
            Figure("copy while 4 clients teach, s", found.copy_seconds),
            Figure("stop while 4 clients teach, s", found.seconds),
            Figure("acknowledged meanwhile", found.n_acknowledged),
            Figure("of these lost", found.n_lost, 0, "at most"),
            Figure("of these twice", found.n_duplicates, 0, "at most"),
            Figure(
                "acknowledged before the copy and not in it", found.n_lost_in_copy, 0, "at most"
            ),
            Figure("damage found by check, copy included", len(found.damage), 0, "at most"),
            Figure("wrong answers", len(found.failures), 0, "at most"),
        ],
        bars=not quick,
    )
    for line in (*found.failures[:20], *found.damage[:20]):
        print(line)
