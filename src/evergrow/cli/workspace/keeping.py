"""Copies of a workspace, and whether it is sound."""

from __future__ import annotations

from dataclasses import asdict

import click

from evergrow.cli.models import check_output
from evergrow.cli.options import FORCE, QUIET, examples
from evergrow.cli.output import write_fields, write_json
from evergrow.cli.said import several
from evergrow.cli.workspace.opening import DIR, read_workspace, shielded

__all__ = ["backup", "check", "export"]


@click.command(epilog=examples("evergrow export things -o things.evergrow"))
@DIR
@click.option("-o", "--output", type=click.Path(), required=True, help="Model file to write.")
@FORCE
@QUIET
def export(folder: str, output: str, force: bool, quiet: bool) -> None:
    """Write the model of the workspace DIR to a model file, also while it is served.

    The file is one that the other commands and evergrow.load read, and it can go on learning by
    itself. What was taught stays in the workspace.
    """
    check_output(output, force=force)
    with read_workspace(folder) as workspace:
        workspace.export(output)
    if not quiet:
        click.echo(f"{click.format_filename(output)}: written.", err=True)


@click.command(epilog=examples("evergrow check things", "evergrow check things --mend"))
@DIR
@click.option("--mend", is_flag=True, help="Mend what can be mended, and remove leftovers.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per finding.")
@QUIET
def check(folder: str, mend: bool, as_json: bool, quiet: bool) -> None:
    """Verify every hash and count of the workspace DIR.

    Writes one line per finding, with tabs between: how bad it is (harmless, damage, or mended),
    what it is, and what mends it. The exit code is 1 if damage is left. Without --mend it can be
    run while the workspace is served.
    """
    from evergrow.workspace import check_workspace

    with shielded():
        findings = check_workspace(folder, repair=mend)
    for finding in findings:
        if as_json:
            write_json(asdict(finding))
        else:
            state = "mended" if finding.mended else finding.severity
            write_fields([state, finding.what, finding.mend])
    damaged = [one for one in findings if one.severity == "damage" and not one.mended]
    if damaged:
        raise click.exceptions.Exit(1)
    if not quiet:
        click.echo(f"{click.format_filename(folder)}: sound.", err=True)


@click.command(epilog=examples("evergrow backup things /mnt/backup/things-monday"))
@DIR
@click.argument("target", type=click.Path())
@QUIET
def backup(folder: str, target: str, quiet: bool) -> None:
    """Copy the workspace DIR to the new folder TARGET, also while it is served.

    The copy is a workspace of its own, as DIR was at one moment; nothing that is taught meanwhile
    waits. Tokens are copied as their hashes. Images that are missing or damaged already are named,
    and the exit code is 1.
    """
    with read_workspace(folder) as workspace:
        made = workspace.backup(target)
    if not quiet:
        name = click.format_filename(target)
        click.echo(f"{name}: complete, {several(made.n_images, 'image')}.", err=True)
    for image in made.lacking:
        click.echo(f"Error: the image {image} was missing or damaged already", err=True)
    if made.lacking:
        raise click.exceptions.Exit(1)
