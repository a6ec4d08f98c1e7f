"""``evergrow status`` and ``classes``: describe a workspace."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evergrow.cli.options import command, output_forms
from evergrow.cli.output import (
    FACTS,
    Align,
    format_blocks,
    is_for_people,
    report,
    write_fields,
    write_json,
    write_table,
)
from evergrow.cli.workspace.access import DIR, all_classes, read_workspace
from evergrow.foundation.formatting import (
    format_count,
    format_percent,
    format_size,
    natural_order,
)

if TYPE_CHECKING:
    from evergrow.workspace import Workspace
    from evergrow.workspace.records import Accuracy, ClassEntry


# Events that are read at a time.
_PAGE = 500
# Events that the workspace adds by itself.
_UPKEEP = frozenset({"choose", "forest", "guess"})


@command("evergrow status things", "evergrow status things --json | jq .n_examples")
@DIR
@output_forms("json", "tsv")
def status(folder: str, form: str | None) -> None:
    """Describe the workspace DIR, also while it is served.

    The accuracy is a leave-one-out estimate with a 95% confidence interval. In a pipe, or with
    --tsv, writes tab-separated names and values.
    """
    with read_workspace(folder) as workspace:
        found = {"folder": folder, **asdict(workspace.status())}
        behind = _unmeasured(workspace, found["assessed_event"])
    if form == "json":
        write_json(found)
    elif is_for_people(form):
        write_table(FACTS, [fact for fact in _facts(found, behind) if fact[1] is not None])
    else:
        _write_lines(found)


def _facts(found: dict[str, Any], behind: int) -> list[tuple[str, str | None]]:
    """Names and values for people."""
    accuracy = found["accuracy"]
    measured = found["measured_false_alarms"]
    return [
        ("Workspace", found["folder"]),
        ("Classes", str(found["n_classes"])),
        ("Examples", str(found["n_examples"])),
        ("Accuracy", "not measured yet" if accuracy is None else _interval(accuracy)),
        ("Accuracy measured", _measured_before(behind) if behind else None),
        (
            'Known things answered "unknown"',
            f"about {100 * found['false_alarms']:g}% by setting"
            + ("" if measured is None else f", {format_percent(measured)} measured"),
        ),
        ("Takes", "images" if found["takes_images"] else "embeddings"),
        ("Features", None if found["n_features"] is None else str(found["n_features"])),
        ("Feature blocks", ", ".join(format_blocks(found["blocks"])) or None),
        ("Forest", _forest(found)),
        ("Changes so far", str(found["event"])),
        ("Size on disk", format_size(found["n_bytes"])),
        ("Id", found["id"]),
    ]


def _interval(accuracy: dict[str, Any]) -> str:
    low, high = format_percent(accuracy["low"]), format_percent(accuracy["high"])
    return f"{format_percent(accuracy['rate'])} (likely between {low} and {high})"


def _unmeasured(workspace: Workspace, assessed: int | None) -> int:
    """How many changes the measured accuracy does not include; 0 if none was measured."""
    behind, after = 0, None
    while assessed is not None:
        page = workspace.events(after=after, limit=_PAGE)
        newer = [event for event in page.items if event.seq > assessed]
        behind += sum(event.kind not in _UPKEEP for event in newer)
        if len(newer) < len(page.items) or page.next is None:
            break
        after = page.next
    return behind


def _measured_before(behind: int) -> str:
    return f"before the last {'change' if behind == 1 else f'{behind} changes'}"


def _forest(found: dict[str, Any]) -> str | None:
    if not found["forest"]:
        return None
    behind = found["forest_lacks"]
    return f"{format_count(behind, 'example')} behind" if behind else "up to date"


def _write_lines(found: dict[str, Any]) -> None:
    for name, value in found.items():
        if name == "accuracy" and value is not None:
            write_fields([name, *(f"{value[part]:.4f}" for part in ("rate", "low", "high"))])
        elif name == "blocks":
            write_fields([name, *format_blocks(value)])
        else:
            write_fields([name, value])


@command(
    "evergrow classes things",
    "evergrow classes things --json | jq 'select(.sign != \"enough\") | .name'",
)
@DIR
@output_forms("json", "tsv", each=" per line")
def classes(folder: str, form: str | None) -> None:
    """List the classes of the workspace DIR, also while it is served.

    The output has the number of examples of each class, its state, its accuracy with a 95%
    confidence interval, and the class with which it is most often confused. The state is new (not
    measured yet), more (a few more examples would help), confused (often taken for another class)
    or enough. Fine classes are indented, with the numbers of examples given by users and guessed by
    the model. In a pipe, or with --tsv, the output is tab-separated lines in the same order.
    """
    with read_workspace(folder) as workspace:
        entries = sorted(all_classes(workspace), key=lambda entry: natural_order(entry.name))
        behind = _unmeasured(workspace, workspace.status().assessed_event)
    if is_for_people(form):
        _write_table(entries)
        if behind:
            report(f"Accuracy measured {_measured_before(behind)}.")
        return
    for entry in entries:
        write_json(asdict(entry)) if form == "json" else _write(entry)


def _write_table(entries: list[ClassEntry]) -> None:
    columns: dict[str, Align] = {
        "class": "left",
        "examples": "right",
        "state": "left",
        "accuracy": "right",
        "likely between": "left",
        "confused with": "left",
    }
    rows: list[list[Any]] = []
    for entry in entries:
        found = entry.accuracy
        rate = None if found is None else format_percent(found.rate)
        between = None if found is None else f"{found.low:.0%} and {found.high:.0%}"
        rows.append([entry.name, entry.n_examples, entry.sign, rate, between, entry.confused_with])
        for fine in entry.fine:
            guessed = f"{fine.n_guessed} more guessed" if fine.n_guessed else None
            rows.append([f"  {fine.name}", fine.n_given, guessed, None, None, None])
    write_table(columns, rows)


def _write(entry: ClassEntry) -> None:
    fields: list[Any] = [entry.name, entry.n_examples, entry.sign, _shown(entry.accuracy)]
    write_fields([*fields, entry.confused_with or ""])
    for fine in entry.fine:
        write_fields(["", fine.name, fine.n_given, fine.n_guessed])


def _shown(accuracy: Accuracy | None) -> str:
    if accuracy is None:
        return ""
    return f"{accuracy.rate:.2f} ({accuracy.low:.2f} to {accuracy.high:.2f})"
