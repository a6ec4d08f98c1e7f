"""What goes to standard output: lines for people, CSV and JSON for programs, always UTF-8."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

import click

__all__ = ["write_csv_row", "write_fields", "write_json"]


def _write(text: str) -> None:
    # Bytes, as names of files need not be text in the terminal's encoding, or in any.
    click.echo(text.encode("utf-8", "surrogateescape"))


def write_fields(fields: Iterable[Any]) -> None:
    """One line of fields with tabs between; tabs and line breaks within them are escaped."""
    from evergrow.naming import printable

    _write("\t".join(printable(str(field)) for field in fields))


def write_csv_row(fields: Iterable[Any]) -> None:
    """One row of CSV, quoted where needed, names as they are."""
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(fields)
    _write(row.getvalue())


def write_json(value: Any) -> None:
    """One JSON value in one line, of ASCII characters alone."""
    _write(json.dumps(value))
