"""Changing what a workspace knows: names, classes, and the last change taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evergrow.cli.options import QUIET, examples
from evergrow.cli.output import write_json
from evergrow.cli.workspace.opening import DIR, changed_workspace, say_workspace, shielded

if TYPE_CHECKING:
    from evergrow.workspace import Workspace
    from evergrow.workspace.records import Change

__all__ = ["forget_classes", "merge", "rename", "split", "undo", "unsplit"]

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object about the change.")


def _tell(workspace: Workspace, folder: str, change: Change, *, as_json: bool, quiet: bool) -> None:
    from dataclasses import asdict

    from evergrow.foundation.naming import printable

    if as_json:
        write_json(asdict(change))
    if not quiet:
        click.echo(printable(change.summary), err=True)
        say_workspace(workspace, folder)


@click.command(
    epilog=examples(
        "evergrow rename things mug cup",
        "evergrow rename things begle beagle --within dog",
    )
)
@DIR
@click.argument("label", metavar="CLASS")
@click.argument("to", metavar="NAME")
@click.option("--within", metavar="BROAD", help="CLASS is a finer class of this one.")
@_AS_JSON
@QUIET
def rename(
    folder: str, label: str, to: str, within: str | None, as_json: bool, quiet: bool
) -> None:
    """Give CLASS of the workspace DIR another NAME, one that no class has."""
    with changed_workspace(folder) as workspace:
        with shielded():
            change = workspace.rename(label, to, within=within)
        _tell(workspace, folder, change, as_json=as_json, quiet=quiet)


@click.command(epilog=examples("evergrow merge things mug cup"))
@DIR
@click.argument("label", metavar="CLASS")
@click.argument("into", metavar="OTHER")
@_AS_JSON
@QUIET
def merge(folder: str, label: str, into: str, as_json: bool, quiet: bool) -> None:
    """Join CLASS of the workspace DIR to the class OTHER, whose name stays."""
    with changed_workspace(folder) as workspace:
        with shielded():
            change = workspace.merge(label, into)
            workspace.maintain()
        _tell(workspace, folder, change, as_json=as_json, quiet=quiet)


@click.command(epilog=examples("evergrow split things dog"))
@DIR
@click.argument("label", metavar="CLASS")
@_AS_JSON
@QUIET
def split(folder: str, label: str, as_json: bool, quiet: bool) -> None:
    """Split CLASS of the workspace DIR into its finer classes.

    At least two finer names must have two examples each ('evergrow learn --fine', or the page).
    The other examples get finer names by guess, to be confirmed on the page; answers back off to
    CLASS where the finer name is unsure.
    """
    with changed_workspace(folder) as workspace:
        with shielded():
            change = workspace.split(label)
            workspace.maintain()
        _tell(workspace, folder, change, as_json=as_json, quiet=quiet)


@click.command(epilog=examples("evergrow unsplit things dog"))
@DIR
@click.argument("label", metavar="CLASS")
@_AS_JSON
@QUIET
def unsplit(folder: str, label: str, as_json: bool, quiet: bool) -> None:
    """Take CLASS of the workspace DIR as one again; finer names that were given are kept."""
    with changed_workspace(folder) as workspace:
        with shielded():
            change = workspace.unsplit(label)
            workspace.maintain()
        _tell(workspace, folder, change, as_json=as_json, quiet=quiet)


@click.command(
    epilog=examples(
        "evergrow undo things",
        "evergrow undo things --event 41",
        "evergrow undo things --since 30",
    )
)
@DIR
@click.option(
    "--event",
    type=click.IntRange(1),
    help="Take back this change, and nothing if a newer one came meanwhile.",
)
@click.option(
    "--since", metavar="EVENT", type=click.IntRange(1), help="Take back this and all that followed."
)
@click.option("--count", type=click.IntRange(1), help="Take back this many changes.")
@_AS_JSON
@QUIET
def undo(
    folder: str,
    event: int | None,
    since: int | None,
    count: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Take back the newest change of the workspace DIR.

    Run again, it takes back the one before. Each picture that was learnt is a change; 'evergrow
    learn' says at its end which --since takes all of them back. What was erased does not come back.
    """
    if sum(option is not None for option in (event, since, count)) > 1:
        raise click.UsageError("give one of --event, --since and --count")
    with changed_workspace(folder) as workspace:
        with shielded():
            change = workspace.undo(event=event, since=since, count=count or 1)
            workspace.maintain()
        _tell(workspace, folder, change, as_json=as_json, quiet=quiet)


def forget_classes(folder: str, classes: tuple[str, ...], *, erase: bool, quiet: bool) -> None:
    """Take classes out of a workspace, for the command that does so with model files too."""
    from evergrow.foundation.naming import printable

    with changed_workspace(folder) as workspace:
        # All or none: a misspelt name must not leave half of them forgotten.
        for name in classes:
            # What is kept of a class that went can still be erased.
            if not (erase and workspace.had_class(name)):
                workspace.class_named(name)
        for name in dict.fromkeys(classes):
            with shielded():
                change = workspace.forget(name, erase=erase)
            if not quiet:
                click.echo(printable(change.summary), err=True)
        with shielded():
            workspace.maintain()
        if not quiet:
            say_workspace(workspace, folder)
