"""``evergrow add``: train a model file on more images."""

from __future__ import annotations

from evergrow.cli.models import check_output, edit_model, report_training
from evergrow.cli.options import (
    FOLDER,
    FORCE,
    JOBS,
    MODEL,
    ON_ERROR,
    OUTPUT,
    QUIET,
    command,
    verbosity,
)


@command(
    "evergrow add model.evergrow more_photos/",
    "evergrow add model.evergrow more_photos/ -o larger.evergrow",
)
@MODEL
@FOLDER
@OUTPUT
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
    """Train MODEL on the images of FOLDER.

    FOLDER contains one folder of images per class; classes may be new or known. The file is
    replaced only if everything succeeds. Commands that change the same file wait for each other.
    """
    if output is not None:
        check_output(output, force=force)
    with edit_model(model, output, verbose=verbosity(quiet), jobs=jobs) as classifier:
        classifier.set_params(on_error=on_error).partial_fit(folder)
    report_training(classifier, output or model, quiet=quiet)
