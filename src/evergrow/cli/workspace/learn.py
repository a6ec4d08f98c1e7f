"""``evergrow learn``: teach a workspace the images of a folder."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from evergrow.cli.options import FOLDER, JOBS, ON_ERROR, QUIET, command, verbosity
from evergrow.cli.output import report
from evergrow.cli.workspace.access import delay_interrupt, open_workspace, report_workspace
from evergrow.foundation.formatting import format_count, printable

if TYPE_CHECKING:
    from evergrow.workspace import TaughtImages


@dataclass
class _Tally:
    """Counts of the images so far."""

    taught: int = 0
    known: int = 0
    # Of the known images: those that got a fine class now, and those that keep another.
    finer: int = 0
    kept: int = 0
    skipped: int = 0

    def add(self, batch: TaughtImages) -> None:
        """Count a batch, and list the images that were skipped."""
        self.known += sum(one.duplicate for one in batch.results)
        self.taught += sum(not one.duplicate for one in batch.results)
        self.finer += sum(one.known_fine == "taken" for one in batch.results)
        self.kept += sum(one.known_fine == "kept" for one in batch.results)
        self.skipped += len(batch.problems)
        for problem in batch.problems:
            report(f"Warning: skipped {problem}")


@command(
    "evergrow learn things photos/",
    "evergrow learn things photos/ --fine",
    "evergrow learn things scraped/ --on-error skip",
)
@click.argument("workspace", metavar="DIR", type=click.Path())
@FOLDER
@click.option(
    "--fine",
    is_flag=True,
    help="Folders within a class folder are fine classes: dog/beagle/1.jpg is a beagle.",
)
@ON_ERROR
@JOBS
@QUIET
def learn(workspace: str, folder: str, fine: bool, on_error: str, jobs: int, quiet: bool) -> None:
    """Teach the workspace DIR the images of FOLDER.

    FOLDER contains one folder of images per class; classes may be new or known. Images that a class
    already has are not taught again, so the command can be run again after an interruption or with
    more images; with --fine, known images get the fine class that they lack. Images taught before
    an interruption stay taught.
    """
    began = time.monotonic()
    tally = _Tally()
    with open_workspace(workspace) as opened:
        first = opened.version + 1
        try:
            opened.teach_images(
                folder,
                fine_folders=fine,
                on_error=on_error,
                n_jobs=jobs,
                verbose=verbosity(quiet),
                on_batch=tally.add,
                guard=delay_interrupt,
            )
        finally:
            # After an error nothing may have been counted.
            if not quiet and tally != _Tally():
                _report(tally, time.monotonic() - began)
                if tally.taught or tally.finer:
                    _report_undo(workspace, first)
        with delay_interrupt():
            opened.maintain()
            opened.save_snapshot()
        report_workspace(opened, workspace, quiet=quiet)


def _report(tally: _Tally, seconds: float) -> None:
    parts = [f"Taught {format_count(tally.taught, 'image')} in {seconds:.1f} s"]
    if tally.known:
        parts.append(f"{tally.known} already known")
    if tally.finer:
        parts.append(f"{tally.finer} of them with a new fine class")
    if tally.skipped:
        parts.append(f"{tally.skipped} skipped")
    report(", ".join(parts) + ".")
    if tally.kept:
        images = format_count(tally.kept, "image")
        report(
            f"Warning: {images} already had another fine class and kept it: correct examples on "
            "the page"
        )


def _report_undo(path: str, first: int) -> None:
    import shlex

    folder = shlex.quote(printable(path))
    report(f"To undo all of it: evergrow undo {folder} --since {first}")
