"""``evergrow add``: train a model file on more images."""

from __future__ import annotations

from typing import Any

from evergrow.cli.models import check_output, edit_model, find_to_learn, report_training
from evergrow.cli.options import (
    FORCE,
    JOBS,
    MODEL,
    ON_ERROR,
    OUTPUT,
    QUIET,
    SOURCE,
    YES,
    command,
    reads_labelled,
    verbosity,
)
from evergrow.cli.suggestions import report_new_classes


@command(
    "evergrow add model.evergrow more_photos/",
    "evergrow add model.evergrow more_photos/ -o larger.evergrow",
)
@MODEL
@SOURCE
@OUTPUT
@reads_labelled
@ON_ERROR
@YES
@JOBS
@FORCE
@QUIET
def add(
    model: str,
    source: str,
    output: str | None,
    on_error: str,
    reading: dict[str, Any],
    yes: bool,
    jobs: int,
    force: bool,
    quiet: bool,
) -> None:
    """Train MODEL on the labelled images of SOURCE.

    SOURCE is a folder with one folder of images per class, a zip file of such folders, a CSV or TSV
    table of paths and labels, COCO annotations (.json) or WebDataset tar files. Classes may be new
    or known.

    New classes are named, with a warning if such a name is nearly that of a known class.

    Images that the model has already learnt are skipped. If such an image now has another class, a
    warning says so. The file is replaced only if everything succeeds. Commands that change the same
    file wait for each other.
    """
    if output is not None:
        check_output(output, force=force)
    with edit_model(model, output, verbose=verbosity(quiet), jobs=jobs) as classifier:
        known = classifier.classes_
        found = find_to_learn(source, reading, yes=yes, quiet=quiet, may_be_one_class=True)
        classifier.set_params(on_error=on_error).partial_fit(found, skip_known=True)
    report_training(classifier, output or model, quiet=quiet)
    advice = "'evergrow forget' the new class, correct its name and add it again"
    report_new_classes(known, classifier.classes_, advice, quiet=quiet)
