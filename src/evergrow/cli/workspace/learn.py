"""Teaching a workspace folders of images."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.options import FOLDER, JOBS, ON_ERROR, QUIET, examples, verbosity
from evergrow.cli.summaries import pluralize
from evergrow.cli.workspace.access import delay_interrupt, open_workspace, report_workspace

if TYPE_CHECKING:
    from evergrow.workspace import Workspace


@dataclass
class _Tally:
    """What became of the images so far."""

    taught: int = 0
    known: int = 0
    # Of the known ones: those that got a finer name now, and those that keep another.
    finer: int = 0
    kept: int = 0
    left_out: int = 0

    @property
    def done(self) -> int:
        return self.taught + self.known + self.left_out


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
    from evergrow.cli.workspace.lessons import labelled_paths

    began = time.monotonic()
    labelled = labelled_paths(folder, fine=fine, on_error=on_error)
    tally = _Tally()
    with open_workspace(workspace) as opened:
        embedder = _embedder(opened, workspace, jobs)
        first = opened.version + 1
        try:
            _teach_all(opened, embedder, labelled, tally, on_error, verbosity(quiet))
        finally:
            if not quiet:
                _say(tally, time.monotonic() - began)
                if tally.taught or tally.finer:
                    _say_way_back(workspace, first)
        with delay_interrupt():
            opened.maintain()
            opened.save_snapshot()
        if not quiet:
            report_workspace(opened, workspace)


def _embedder(workspace: Workspace, path: str, jobs: int) -> Any:
    embedder = workspace.embedder
    if embedder is None:
        raise click.ClickException(
            f"{click.format_filename(path)!r} takes embeddings, not images: send them with "
            "evergrow.Client"
        )
    return embedder.set_params(n_jobs=jobs, verbose=0)


def _teach_all(
    workspace: Workspace,
    embedder: Any,
    labelled: Sequence[Any],
    tally: _Tally,
    on_error: str,
    verbose: int,
) -> None:
    from joblib import effective_n_jobs

    from evergrow import BadImageWarning
    from evergrow.cli.workspace.lessons import lessons_of
    from evergrow.foundation.progress import progress_bar

    threads = effective_n_jobs(embedder.n_jobs)
    with progress_bar("Learning", len(labelled), verbose) as show, warnings.catch_warnings():
        # Each is named below, a warning of the embedder names its number of bytes.
        warnings.simplefilter("ignore", BadImageWarning)
        for lessons in lessons_of(labelled, embedder, on_error=on_error, n_threads=threads):
            with delay_interrupt():
                taught = workspace.teach(lessons.ready) if lessons.ready else []
                tally.known += sum(one.duplicate for one in taught)
                tally.taught += sum(not one.duplicate for one in taught)
                tally.finer += sum(one.known_fine == "taken" for one in taught)
                tally.kept += sum(one.known_fine == "kept" for one in taught)
            tally.left_out += len(lessons.problems)
            for problem in lessons.problems:
                click.echo(f"Warning: left out {problem}", err=True)
            if show is not None:
                show(tally.done)


def _say(tally: _Tally, seconds: float) -> None:
    parts = [f"Taught {pluralize(tally.taught, 'image')} in {seconds:.1f} s"]
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
            f"Warning: {pluralize(tally.kept, 'image')} {keep} {given}: correct it on the page",
            err=True,
        )


def _say_way_back(path: str, first: int) -> None:
    import shlex

    from evergrow.foundation.naming import printable

    command = f"evergrow undo {shlex.quote(printable(path))} --since {first}"
    click.echo(f"To take all of it back: {command}", err=True)
