"""What goes to standard output: lines for people, CSV and JSON for programs, always UTF-8."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

__all__ = ["write_csv_row", "write_fields", "write_json", "write_table"]


def _write(text: str) -> None:
    # Bytes, as names of files need not be text in the terminal's encoding, or in any.
    click.echo(text.encode("utf-8", "surrogateescape"))


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def write_fields(fields: Iterable[Any]) -> None:
    """One line of fields with tabs between; tabs and line breaks within them are escaped."""
    from evergrow.foundation.naming import printable

    _write("\t".join(printable(str(field)) for field in fields))


def write_table(rows: Sequence[Sequence[Any]]) -> None:
    """Rows of fields, all of as many: in columns on a terminal, else with tabs for programs."""
    if not _is_terminal():
        for row in rows:
            write_fields(row)
        return
    from evergrow.foundation.naming import printable

    texts = [[printable(str(field)) for field in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        _write("  ".join(padded).rstrip())


def write_csv_row(fields: Iterable[Any]) -> None:
    """One row of CSV, quoted where needed, names as they are."""
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(fields)
    _write(row.getvalue())


def write_json(value: Any) -> None:
    """One JSON value in one line, of ASCII characters alone."""
    _write(json.dumps(value))
