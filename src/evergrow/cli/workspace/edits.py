"""``evergrow rename``, ``merge``, ``split``, ``unsplit`` and ``undo``: edit a workspace."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from evergrow.cli.options import QUIET, command
from evergrow.cli.output import report, write_json
from evergrow.cli.workspace.access import DIR, delay_interrupt, open_workspace, report_workspace

if TYPE_CHECKING:
    from evergrow.workspace import Workspace
    from evergrow.workspace.records import Change


_AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object about the change.")


def _edit(
    folder: str,
    make: Callable[[Workspace], Change],
    *,
    as_json: bool,
    quiet: bool,
    maintain: bool = True,
) -> None:
    """Make one change to a workspace, and report it."""
    from dataclasses import asdict

    with open_workspace(folder) as workspace:
        with delay_interrupt():
            change = make(workspace)
            if maintain:
                workspace.maintain()
        if as_json:
            write_json(asdict(change))
        report(change.summary, quiet=quiet)
        report_workspace(workspace, folder, quiet=quiet)


@command(
    "evergrow rename things mug cup",
    "evergrow rename things begle beagle --within dog",
)
@DIR
@click.argument("label", metavar="CLASS")
@click.argument("to", metavar="NAME")
@click.option("--within", metavar="BROAD", help="Rename a fine class of this class.")
@_AS_JSON
@QUIET
def rename(folder: str, label: str, to: str, within: str | None, **output: bool) -> None:
    """Rename CLASS of the workspace DIR to NAME, which no other class may have."""
    # The model does not depend on names.
    _edit(folder, lambda it: it.rename(label, to, within=within), maintain=False, **output)


@command("evergrow merge things mug cup")
@DIR
@click.argument("label", metavar="CLASS")
@click.argument("into", metavar="OTHER")
@_AS_JSON
@QUIET
def merge(folder: str, label: str, into: str, **output: bool) -> None:
    """Merge CLASS of the workspace DIR into the class OTHER, which keeps its name."""
    _edit(folder, lambda it: it.merge(label, into), **output)


@command("evergrow split things dog")
@DIR
@click.argument("label", metavar="CLASS")
@_AS_JSON
@QUIET
def split(folder: str, label: str, **output: bool) -> None:
    """Split CLASS of the workspace DIR into its fine classes.

    At least two fine classes need two examples each; teach them with 'evergrow learn --fine' or on
    the page. The other examples get a guessed fine class, which you can confirm on the page. If the
    fine class of an image is uncertain, only CLASS is predicted.
    """
    _edit(folder, lambda it: it.split(label), **output)


@command("evergrow unsplit things dog")
@DIR
@click.argument("label", metavar="CLASS")
@_AS_JSON
@QUIET
def unsplit(folder: str, label: str, **output: bool) -> None:
    """Undo the split of CLASS of the workspace DIR; fine classes given by users are kept."""
    _edit(folder, lambda it: it.unsplit(label), **output)


@command(
    "evergrow undo things",
    "evergrow undo things --event 41",
    "evergrow undo things --since 30",
)
@DIR
@click.option(
    "--event", type=click.IntRange(1), help="Undo the step of this change, if it is the newest."
)
@click.option(
    "--since", metavar="EVENT", type=click.IntRange(1), help="Undo this change and all later ones."
)
@click.option("--count", type=click.IntRange(1), help="Undo this many steps.")
@_AS_JSON
@QUIET
def undo(
    folder: str, event: int | None, since: int | None, count: int | None, **output: bool
) -> None:
    """Undo the latest step of the workspace DIR.

    A step is what was done at once, such as all images of one 'evergrow learn' or of one drop onto
    the page. Run the command again to undo the step before. Erased data cannot be restored.
    """
    if sum(option is not None for option in (event, since, count)) > 1:
        raise click.UsageError("use only one of --event, --since and --count")
    _edit(folder, lambda it: it.undo(event=event, since=since, count=count or 1), **output)


def forget_classes(folder: str, classes: tuple[str, ...], *, erase: bool, quiet: bool) -> None:
    """Remove classes from a workspace, for ``evergrow forget``."""
    from evergrow.workspace import Request

    request = Request(action=secrets.token_hex(8))
    with open_workspace(folder) as workspace:
        # All or nothing: a misspelt name must not leave half of them forgotten.
        for name in classes:
            # The stored data of a class that was removed can still be erased.
            if not (erase and workspace.had_class(name)):
                workspace.class_named(name)
        for name in dict.fromkeys(classes):
            with delay_interrupt():
                change = workspace.forget(name, erase=erase, request=request)
            report(change.summary, quiet=quiet)
        with delay_interrupt():
            workspace.maintain()
        report_workspace(workspace, folder, quiet=quiet)
