"""``evergrow check`` and ``backup``: verify and copy a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from evergrow.cli.options import QUIET, command, output_forms
from evergrow.cli.output import (
    is_for_people,
    report,
    report_errors,
    write_fields,
    write_json,
    write_table,
)
from evergrow.cli.workspace.access import DIR, delay_interrupt, read_workspace
from evergrow.foundation.formatting import format_count

if TYPE_CHECKING:
    from evergrow.workspace.check.database import Finding


@command("evergrow check things", "evergrow check things --mend")
@DIR
@click.option(
    "--mend", is_flag=True, help="Repair what can be repaired, and remove leftover files."
)
@output_forms("json", "tsv", each=" per finding")
@QUIET
def check(folder: str, mend: bool, form: str | None, quiet: bool) -> None:
    """Verify every hash and count of the workspace DIR.

    The output has the severity of each finding (harmless, damage or mended), a description, and how
    to repair it; in a pipe, or with --tsv, as tab-separated lines. The exit code is 1 if there is
    damage that was not repaired. Without --mend, the command can run while the workspace is served.
    """
    from evergrow.workspace import check_workspace

    with delay_interrupt():
        findings = check_workspace(folder, repair=mend)
    _write_findings(findings, form)
    damaged = [one for one in findings if one.severity == "damage" and not one.mended]
    if damaged:
        raise click.exceptions.Exit(1)
    report(f"{click.format_filename(folder)}: no damage found.", quiet=quiet)


def _write_findings(findings: Sequence[Finding], form: str | None) -> None:
    rows = [
        ("mended" if one.mended else one.severity, one.what, one.mend or None) for one in findings
    ]
    if form == "json":
        for finding in findings:
            write_json(asdict(finding))
    elif not is_for_people(form):
        for row in rows:
            write_fields(row)
    elif rows:
        write_table({"severity": "left", "finding": "left", "repair": "left"}, rows)


@command("evergrow backup things /mnt/backup/things-monday")
@DIR
@click.argument("target", type=click.Path())
@QUIET
def backup(folder: str, target: str, quiet: bool) -> None:
    """Copy the workspace DIR to the new folder TARGET, also while it is served.

    The copy is a workspace with the state of DIR at one moment, even if DIR is taught meanwhile.
    Tokens are copied as hashes. Images that were already missing or damaged are listed, and the
    exit code is 1.
    """
    with read_workspace(folder) as workspace:
        made = workspace.backup(target)
    images = format_count(made.n_images, "image")
    report(f"{click.format_filename(target)}: complete, {images}.", quiet=quiet)
    report_errors(f"the image {image} was already missing or damaged" for image in made.lacking)
