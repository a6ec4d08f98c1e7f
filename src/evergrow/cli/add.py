"""Teaching a model more."""

from __future__ import annotations

import click

from evergrow.cli.models import changed_model, check_output
from evergrow.cli.options import (
    FOLDER,
    FORCE,
    JOBS,
    MODEL,
    ON_ERROR,
    QUIET,
    examples,
    other_output,
    verbosity,
)
from evergrow.cli.said import say_learnt

__all__ = ["add"]


@click.command(
    epilog=examples(
        "evergrow add model.evergrow more_photos/",
        "evergrow add model.evergrow more_photos/ -o larger.evergrow",
    )
)
@MODEL
@FOLDER
@other_output
@ON_ERROR
@JOBS
@FORCE
@QUIET
def add(
    model: str,
    folder: str,
    output: str | None,
    on_error: str,
    jobs: int,
    force: bool,
    quiet: bool,
) -> None:
    """Teach MODEL the images of FOLDER.

    FOLDER holds one folder of images per class; classes may be new or known. The
    file is replaced when all went well, and stays as it was otherwise. Commands that change one
    file at the same time take turns.
    """
    if output is not None:
        check_output(output, force=force)
    with changed_model(model, output, verbose=verbosity(quiet), jobs=jobs) as classifier:
        classifier.set_params(on_error=on_error).partial_fit(folder)
    if not quiet:
        say_learnt(classifier, output or model)
