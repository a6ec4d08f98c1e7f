"""Power failures while several clients teach: nothing that was acknowledged may be lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import Figure, report
from tests.harness.crashes import kill_while_teaching

__all__ = ["run"]


def run(quick: bool) -> None:
    """Kill the service 200 times, at any moment of its life."""
    n_kills = 6 if quick else 200
    with tempfile.TemporaryDirectory() as scratch:
        found = kill_while_teaching(
            Path(scratch, "workspace"),
            n_kills,
            features="efficientnet-lite0",
            picture_share=0.05,
        )
    report(
        "service killing",
        f"{found.n_kills} kills, {found.n_kills_starting} of them while starting, 4 clients",
        [
            Figure("acknowledged examples", found.n_acknowledged),
            Figure("requests sent again", found.n_retried),
            Figure("of these taught before the kill", found.n_already_taught),
            Figure("acknowledged examples lost", found.n_lost, 0, "at most"),
            Figure("duplicates", found.n_duplicates, 0, "at most"),
            Figure("examples nobody was told of", found.n_unknown, 0, "at most"),
            Figure("wrong answers", len(found.failures), 0, "at most"),
            Figure("processes left behind", found.n_orphans, 0, "at most"),
            Figure("damage found by check", len(found.damage), 0, "at most"),
            Figure("difference to the undisturbed twin", found.difference, 1e-9, "at most"),
        ],
    )
    for line in (*found.failures[:20], *found.damage[:20]):
        print(line)
