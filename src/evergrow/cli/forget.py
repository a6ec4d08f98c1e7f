"""``evergrow forget``: remove classes from a model file or a workspace."""

from __future__ import annotations

import click

from evergrow.cli.models import check_output, edit_model, report_model
from evergrow.cli.options import FORCE, OUTPUT, QUIET, command
from evergrow.cli.workspace.access import is_workspace
from evergrow.cli.workspace.edits import forget_classes


@command(
    'evergrow forget model.evergrow "grey cat"',
    "evergrow forget model.evergrow ant bee -o smaller.evergrow",
    'evergrow forget things "grey cat" --erase',
)
@click.argument("model", metavar="MODEL|DIR", type=click.Path())
@click.argument("classes", metavar="CLASS...", nargs=-1, required=True)
@OUTPUT
@click.option(
    "--erase",
    is_flag=True,
    help="For a workspace: delete the images and embeddings too; this cannot be undone.",
)
@FORCE
@QUIET
def forget(
    model: str,
    classes: tuple[str, ...],
    output: str | None,
    erase: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Remove classes from the model file MODEL or the workspace DIR.

    The model is then as if it had never seen their images. A workspace keeps the images for
    'evergrow undo' unless --erase is given, which also deletes everything removed before. Classes
    that were forgotten can be erased later.
    """
    if is_workspace(model):
        if output is not None:
            raise click.UsageError("--output is for model files; 'evergrow backup' copies DIR")
        forget_classes(model, classes, erase=erase, quiet=quiet)
        return
    if erase:
        raise click.UsageError("--erase is for workspaces; a model file keeps no images")
    if output is not None:
        check_output(output, force=force)
    from evergrow.foundation.labels import ClassList

    with edit_model(model, output, verbose=0) as classifier:
        # Classes may be numbers if the model was trained in Python.
        labels = ClassList(classifier.classes_).from_text(classes)
        classifier.forget(classes=labels)
    report_model(classifier, output or model, quiet=quiet)
