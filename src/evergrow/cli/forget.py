"""Taking classes out of a model."""

from __future__ import annotations

import click

from evergrow.cli.models import changed_model, check_output
from evergrow.cli.options import FORCE, MODEL, QUIET, examples, other_output
from evergrow.cli.said import say_size

__all__ = ["forget"]


@click.command(
    epilog=examples(
        'evergrow forget model.evergrow "grey cat"',
        "evergrow forget model.evergrow ant bee -o smaller.evergrow",
    )
)
@MODEL
@click.argument("classes", metavar="CLASS...", nargs=-1, required=True)
@other_output
@FORCE
@QUIET
def forget(
    model: str, classes: tuple[str, ...], output: str | None, force: bool, quiet: bool
) -> None:
    """Take classes out of MODEL.

    The model is then as if their images had never come.
    """
    if output is not None:
        check_output(output, force=force)
    from evergrow.labels import ClassList

    with changed_model(model, output, verbose=0) as classifier:
        # Classes may be numbers if the model was trained in Python.
        labels = ClassList(classifier.classes_).from_text(classes)
        classifier.forget(classes=labels)
    if not quiet:
        say_size(classifier, output or model)
