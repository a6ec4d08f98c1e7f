"""``evergrow status`` and ``classes``: describe a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from evergrow.cli.options import command
from evergrow.cli.output import write_blocks, write_fields, write_json
from evergrow.cli.workspace.access import DIR, read_workspace

if TYPE_CHECKING:
    from evergrow.workspace import Workspace
    from evergrow.workspace.records import Accuracy, ClassEntry


_PAGE = 500


@command("evergrow status things", "evergrow status things --json | jq .n_examples")
@DIR
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(folder: str, as_json: bool) -> None:
    """Describe the workspace DIR, also while it is served.

    Writes tab-separated names and values. Accuracies are leave-one-out estimates with a 95 %
    confidence interval.
    """
    with read_workspace(folder) as workspace:
        found = {"folder": folder, **asdict(workspace.status())}
    if as_json:
        write_json(found)
        return
    for name, value in found.items():
        if name == "accuracy" and value is not None:
            write_fields([name, *(f"{value[part]:.4f}" for part in ("rate", "low", "high"))])
        elif name == "blocks":
            write_blocks(value)
        else:
            write_fields([name, "" if value is None else value])


@command(
    "evergrow classes things",
    "evergrow classes things --json | jq 'select(.sign != \"enough\") | .name'",
)
@DIR
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def classes(folder: str, as_json: bool) -> None:
    """List the classes of the workspace DIR, also while it is served.

    Writes one tab-separated line per class: name, number of examples, status (new, more, confused,
    enough), accuracy with a 95 % confidence interval, and the class it is most often confused with.
    Fine classes follow on indented lines: name, examples given, examples guessed.
    """
    with read_workspace(folder) as workspace:
        for entry in _all_classes(workspace):
            write_json(asdict(entry)) if as_json else _write(entry)


def _all_classes(workspace: Workspace) -> Iterator[ClassEntry]:
    after: str | None = None
    while True:
        page = workspace.classes(after=after, limit=_PAGE)
        yield from page.items
        if page.next is None:
            return
        after = page.next


def _write(entry: ClassEntry) -> None:
    fields: list[Any] = [entry.name, entry.n_examples, entry.sign, _shown(entry.accuracy)]
    write_fields([*fields, entry.confused_with or ""])
    for fine in entry.fine:
        write_fields(["", fine.name, fine.n_given, fine.n_guessed])


def _shown(accuracy: Accuracy | None) -> str:
    if accuracy is None:
        return ""
    return f"{accuracy.rate:.2f} ({accuracy.low:.2f} to {accuracy.high:.2f})"
