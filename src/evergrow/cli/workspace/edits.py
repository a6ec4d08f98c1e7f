"""``evergrow rename``, ``merge``, ``split``, ``unsplit`` and ``undo``: edit a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evergrow.cli.options import QUIET, examples
from evergrow.cli.output import write_json
from evergrow.cli.workspace.access import DIR, delay_interrupt, open_workspace, report_workspace

if TYPE_CHECKING:
    from evergrow.workspace import Workspace
    from evergrow.workspace.records import Change


_AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object about the change.")


def _report(
    workspace: Workspace, folder: str, change: Change, *, as_json: bool, quiet: bool
) -> None:
    from dataclasses import asdict

    from evergrow.foundation.naming import printable

    if as_json:
        write_json(asdict(change))
    if not quiet:
        click.echo(printable(change.summary), err=True)
        report_workspace(workspace, folder)


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
    with open_workspace(folder) as workspace:
        with delay_interrupt():
            change = workspace.rename(label, to, within=within)
        _report(workspace, folder, change, as_json=as_json, quiet=quiet)


@click.command(epilog=examples("evergrow merge things mug cup"))
@DIR
@click.argument("label", metavar="CLASS")
@click.argument("into", metavar="OTHER")
@_AS_JSON
@QUIET
def merge(folder: str, label: str, into: str, as_json: bool, quiet: bool) -> None:
    """Merge CLASS of the workspace DIR into the class OTHER, which keeps its name."""
    with open_workspace(folder) as workspace:
        with delay_interrupt():
            change = workspace.merge(label, into)
            workspace.maintain()
        _report(workspace, folder, change, as_json=as_json, quiet=quiet)


@click.command(epilog=examples("evergrow split things dog"))
@DIR
@click.argument("label", metavar="CLASS")
@_AS_JSON
@QUIET
def split(folder: str, label: str, as_json: bool, quiet: bool) -> None:
    """Split CLASS of the workspace DIR into its finer classes.

    At least two finer classes need two examples each ('evergrow learn --fine', or the page). The
    other examples get a guessed finer class, to be confirmed on the page; predictions back off to
    CLASS if the finer class is uncertain.
    """
    with open_workspace(folder) as workspace:
        with delay_interrupt():
            change = workspace.split(label)
            workspace.maintain()
        _report(workspace, folder, change, as_json=as_json, quiet=quiet)


@click.command(epilog=examples("evergrow unsplit things dog"))
@DIR
@click.argument("label", metavar="CLASS")
@_AS_JSON
@QUIET
def unsplit(folder: str, label: str, as_json: bool, quiet: bool) -> None:
    """Undo the split of CLASS of the workspace DIR; finer classes given by users are kept."""
    with open_workspace(folder) as workspace:
        with delay_interrupt():
            change = workspace.unsplit(label)
            workspace.maintain()
        _report(workspace, folder, change, as_json=as_json, quiet=quiet)


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
    help="Undo this change, unless there is a newer one.",
)
@click.option(
    "--since", metavar="EVENT", type=click.IntRange(1), help="Undo this change and all later ones."
)
@click.option("--count", type=click.IntRange(1), help="Undo this many changes.")
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
    """Undo the latest change of the workspace DIR.

    Run it again to undo the change before. Each image that was taught is a change; 'evergrow learn'
    prints the --since that undoes all of its images. Erased data cannot be restored.
    """
    if sum(option is not None for option in (event, since, count)) > 1:
        raise click.UsageError("use only one of --event, --since and --count")
    with open_workspace(folder) as workspace:
        with delay_interrupt():
            change = workspace.undo(event=event, since=since, count=count or 1)
            workspace.maintain()
        _report(workspace, folder, change, as_json=as_json, quiet=quiet)


def forget_classes(folder: str, classes: tuple[str, ...], *, erase: bool, quiet: bool) -> None:
    """Remove classes from a workspace, for ``evergrow forget``."""
    from evergrow.foundation.naming import printable

    with open_workspace(folder) as workspace:
        # All or nothing: a misspelt name must not leave half of them forgotten.
        for name in classes:
            # The stored data of a class that was removed can still be erased.
            if not (erase and workspace.had_class(name)):
                workspace.class_named(name)
        for name in dict.fromkeys(classes):
            with delay_interrupt():
                change = workspace.forget(name, erase=erase)
            if not quiet:
                click.echo(printable(change.summary), err=True)
        with delay_interrupt():
            workspace.maintain()
        if not quiet:
            report_workspace(workspace, folder)
