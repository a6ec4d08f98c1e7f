"""Standard output: text for people, CSV and JSON for programs, always UTF-8."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click


def _write(text: str) -> None:
    # Bytes, because file names may not be valid text in any encoding.
    click.echo(text.encode("utf-8", "surrogateescape"))


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def write_fields(fields: Iterable[Any]) -> None:
    """Write one line of tab-separated fields; tabs and line breaks in them are escaped."""
    from evergrow.foundation.naming import printable

    _write("\t".join(printable(str(field)) for field in fields))


def write_table(rows: Sequence[Sequence[Any]]) -> None:
    """Write rows of equal length: in columns on a terminal, else tab-separated."""
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
    """Write one row of CSV, quoted where needed."""
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(fields)
    _write(row.getvalue())


def write_json(value: Any) -> None:
    """Write one JSON value in one line of ASCII characters."""
    _write(json.dumps(value))
