"""Standard output, as text, CSV or JSON in UTF-8, and messages on standard error."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from evergrow.foundation.formatting import printable


def _write(text: str) -> None:
    # Bytes, because file names may not be valid text in any encoding.
    click.echo(text.encode("utf-8", "surrogateescape"))


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def write_fields(fields: Iterable[Any]) -> None:
    """Write one line of tab-separated fields; tabs and line breaks in them are escaped."""
    _write("\t".join(printable(str(field)) for field in fields))


def write_table(rows: Sequence[Sequence[Any]]) -> None:
    """Write rows of equal length: in columns on a terminal, else tab-separated."""
    if not _is_terminal():
        for row in rows:
            write_fields(row)
        return
    texts = [[printable(str(field)) for field in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        _write("  ".join(padded).rstrip())


def write_csv_row(fields: Iterable[Any]) -> None:
    """Write one row of CSV, quoted where needed."""
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(fields)
    _write(row.getvalue())


def write_json(value: Any) -> None:
    """Write one JSON value in one line of ASCII characters."""
    _write(json.dumps(value))


def write_description(found: dict[str, Any], *, as_json: bool) -> None:
    """Write named values and one entry per class, as lines or as one JSON object."""
    if as_json:
        write_json(found)
        return
    classes = found.pop("classes")
    for name, value in found.items():
        if name == "blocks":
            write_blocks(value or ())
        else:
            write_fields([name, "" if value is None else value])
    for entry in classes or []:
        write_fields(["class", *(value for value in entry.values() if value is not None)])


def write_blocks(blocks: Iterable[Mapping[str, Any]]) -> None:
    """Write a line with the blocks of features, their widths, and which of them are used."""
    uses = {True: "used", False: "not used"}
    shown = (f"{one['name']} {one['width']} {uses[one['used']]}" for one in blocks)
    write_fields(["blocks", *shown])


def report(message: str, *, quiet: bool = False) -> None:
    """Print a message on standard error, unless ``quiet``; control characters are escaped."""
    if not quiet:
        click.echo(printable(message), err=True)


def report_errors(errors: Iterable[object]) -> None:
    """Print errors on standard error, and end with exit code 1 if there are any."""
    listed = [*errors]
    for error in listed:
        report(f"Error: {error}")
    if listed:
        raise click.exceptions.Exit(1)
