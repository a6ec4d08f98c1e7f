"""A disk that fills up while someone teaches: a clear answer, nothing half done, and on it goes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import Figure, report
from tests.harness.full_disk import FREE_PAGES, fill_disk
from tests.harness.process import small_disk

__all__ = ["run"]


def run(quick: bool) -> None:
    """Fill a disk of a few megabytes, in memory."""
    rooms = FREE_PAGES[:6] if quick else FREE_PAGES
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with small_disk(Path(scratch, "disk"), 64 << 20) as disk:
                found = fill_disk(disk, rooms, features="efficientnet-lite0")
        except PermissionError as error:
            print(f"service disk-full: not measured, {error}")
            return
    report(
        "service disk-full",
        f"vectors and pictures, {len(rooms)} rooms left",
        [
            Figure("times the disk was full", found.n_full, 2 * len(rooms)),
            Figure("examples taught", found.n_taught),
            Figure("wrong answers, things left behind, damage", len(found.wrong), 0, "at most"),
        ],
    )
    for line in found.wrong[:20]:
        print(line)
