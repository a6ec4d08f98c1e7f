"""``evergrow add``: train a model file on more images."""

from __future__ import annotations

from evergrow.cli.models import check_output, edit_model, find_to_learn, report_training
from evergrow.cli.options import (
    FOLDER,
    FORCE,
    JOBS,
    MODEL,
    NO_FOLLOW_LINKS,
    ON_ERROR,
    OUTPUT,
    QUIET,
    YES,
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
@NO_FOLLOW_LINKS
@YES
@JOBS
@FORCE
@QUIET
def add(
    model: str,
    folder: str,
    output: str | None,
    on_error: str,
    follow_links: bool,
    yes: bool,
    jobs: int,
    force: bool,
    quiet: bool,
) -> None:
    """Train MODEL on the images of FOLDER.

    FOLDER contains one folder of images per class, or is a zip file of such folders; classes may be
    new or known. Images that the model has learnt before are skipped, also if they are in the
    folder of another class now, which a warning says. The file is replaced only if everything
    succeeds. Commands that change the same file wait for each other.
    """
    if output is not None:
        check_output(output, force=force)
    with edit_model(model, output, verbose=verbosity(quiet), jobs=jobs) as classifier:
        found = find_to_learn(
            folder, follow_links=follow_links, yes=yes, quiet=quiet, may_be_one_class=True
        )
        classifier.set_params(on_error=on_error).partial_fit(found, skip_known=True)
    report_training(classifier, output or model, quiet=quiet)
