"""Requests invented from the OpenAPI document: no server error, no answer that it does not name."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import Figure, report
from tests.harness.fuzzer import fuzz, teach_some
from tests.harness.process import ServiceProcess
from tests.harness.workspaces import find_damage, new_workspace

__all__ = ["run"]


RATE = ("--rate", "100000")


def run(quick: bool) -> None:
    """All phases with all checks, then the workspace's own check."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        tokens = new_workspace(folder, features="efficientnet-lite0")
        with ServiceProcess(folder, RATE) as service:
            teach_some(service, tokens)
            found = fuzz(service, tokens.teach, per_operation=5 if quick else 60)
            up = service.running and service.ready()
            service.stop()
        damage = find_damage(folder)
    report(
        "service fuzzing",
        "schemathesis, all checks",
        [
            Figure("cases", found.n_cases, 2000),
            Figure("operations not tested", found.n_operations - found.n_tested, 0, "at most"),
            Figure("kinds of failures", len(found.failures), 0, "at most"),
            Figure("service up at the end", float(up), 1),
            Figure("damage found by check", len(damage), 0, "at most"),
        ],
        bars=not quick,
    )
    if found.failures:
        print(found.output)
