"""Teaching a workspace folders of images."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from evergrow.cli.options import FOLDER, JOBS, ON_ERROR, QUIET, examples, verbosity
from evergrow.cli.said import several
from evergrow.cli.workspace.opening import changed_workspace, say_workspace, shielded

if TYPE_CHECKING:
    from evergrow.workspace import TaughtImages

__all__ = ["learn"]


@dataclass
class _Tally:
    """What became of the images so far."""

    taught: int = 0
    known: int = 0
    # Of the known ones: those that got a finer name now, and those that keep another.
    finer: int = 0
    kept: int = 0
    left_out: int = 0

    def add(self, batch: TaughtImages) -> None:
        """Count a batch, and name the images that were left out."""
        self.known += sum(one.duplicate for one in batch.results)
        self.taught += sum(not one.duplicate for one in batch.results)
        self.finer += sum(one.known_fine == "taken" for one in batch.results)
        self.kept += sum(one.known_fine == "kept" for one in batch.results)
        self.left_out += len(batch.problems)
        for problem in batch.problems:
            click.echo(f"Warning: left out {problem}", err=True)


@click.command(
    epilog=examples(
        "evergrow learn things photos/",
        "evergrow learn things photos/ --fine",
        "evergrow learn things scraped/ --on-error skip",
    )
)
@click.argument("workspace", metavar="DIR", type=click.Path())
@FOLDER
@click.option(
    "--fine",
    is_flag=True,
    help="Folders within a class folder are finer names: dog/beagle/1.jpg is a beagle.",
)
@ON_ERROR
@JOBS
@QUIET
def learn(workspace: str, folder: str, fine: bool, on_error: str, jobs: int, quiet: bool) -> None:
    """Teach the workspace DIR the images of FOLDER.

    FOLDER holds one folder of images per class; classes may be new or known. Pictures that a class
    has already are not learnt again, so that the command can be run again after an interruption or
    when more pictures came; with --fine they get finer names that they lack. What was taught when
    it is interrupted stays taught.
    """
    began = time.monotonic()
    tally = _Tally()
    with changed_workspace(workspace) as opened:
        first = opened.version + 1
        try:
            opened.teach_images(
                folder,
                fine_folders=fine,
                on_error=on_error,
                n_jobs=jobs,
                verbose=verbosity(quiet),
                on_batch=tally.add,
                guard=shielded,
            )
        finally:
            if not quiet:
                _say(tally, time.monotonic() - began)
                if tally.taught or tally.finer:
                    _say_way_back(workspace, first)
        with shielded():
            opened.maintain()
            opened.save_snapshot()
        if not quiet:
            say_workspace(opened, workspace)


def _say(tally: _Tally, seconds: float) -> None:
    parts = [f"Taught {several(tally.taught, 'image')} in {seconds:.1f} s"]
    if tally.known:
        parts.append(f"{tally.known} known already")
    if tally.finer:
        parts.append(f"{tally.finer} of them with a finer name now")
    if tally.left_out:
        parts.append(f"{tally.left_out} left out")
    click.echo(", ".join(parts) + ".", err=True)
    if tally.kept:
        keep = "keeps the other finer name it was" if tally.kept == 1 else "keep other finer names"
        given = "given before" if tally.kept == 1 else "that they were given before"
        click.echo(
            f"Warning: {several(tally.kept, 'image')} {keep} {given}: correct examples on the page",
            err=True,
        )


def _say_way_back(path: str, first: int) -> None:
    import shlex

    from evergrow.foundation.naming import printable

    command = f"evergrow undo {shlex.quote(printable(path))} --since {first}"
    click.echo(f"To take all of it back: {command}", err=True)
