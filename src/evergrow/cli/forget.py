"""Taking classes out of a model or a workspace."""

from __future__ import annotations

import click

from evergrow.cli.models import changed_model, check_output
from evergrow.cli.options import FORCE, QUIET, examples, other_output
from evergrow.cli.said import say_size
from evergrow.cli.workspace.changing import forget_classes
from evergrow.cli.workspace.opening import is_workspace

__all__ = ["forget"]


@click.command(
    epilog=examples(
        'evergrow forget model.evergrow "grey cat"',
        "evergrow forget model.evergrow ant bee -o smaller.evergrow",
        'evergrow forget things "grey cat" --erase',
    )
)
@click.argument("model", metavar="MODEL|DIR", type=click.Path())
@click.argument("classes", metavar="CLASS...", nargs=-1, required=True)
@other_output
@click.option(
    "--erase",
    is_flag=True,
    help="Of a workspace: delete the images and embeddings too, which cannot be undone.",
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
    """Take classes out of the model file MODEL or the workspace DIR.

    The model is then as if their images had never come. A workspace keeps the images for 'evergrow
    undo', unless they are erased; with them goes all that was taken out before. Classes that were
    forgotten can be erased later.
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

    with changed_model(model, output, verbose=0) as classifier:
        # Classes may be numbers if the model was trained in Python.
        labels = ClassList(classifier.classes_).from_text(classes)
        classifier.forget(classes=labels)
    if not quiet:
        say_size(classifier, output or model)
