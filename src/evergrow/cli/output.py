"""Standard output: tables for people, tab-separated lines, CSV or JSON for programs, in UTF-8.

A terminal gets tables with headings, aligned columns and percents. A file or a pipe gets the same
numbers as tab-separated lines, and so does a terminal with ``--tsv``. Messages go to standard
error.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from textwrap import wrap
from typing import Any, BinaryIO, Literal

import click

from evergrow.foundation.formatting import natural_order, printable

Align = Literal["left", "right"]
# Between columns, and of a column of text.
_GAP, _LEAST_TEXT = 2, 12


# Where results go instead of standard output.
_file: ContextVar[BinaryIO | None] = ContextVar("file", default=None)


def _write(text: str) -> None:
    # Bytes, because file names may not be valid text in any encoding.
    click.echo(text.encode("utf-8", "surrogateescape"), file=_file.get())


@contextmanager
def redirect(file: BinaryIO) -> Iterator[None]:
    """Write results to a file instead of standard output."""
    token = _file.set(file)
    try:
        yield
    finally:
        _file.reset(token)


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def is_for_people(form: str | None) -> bool:
    """Whether to write tables: to a terminal, unless another form was chosen."""
    return form is None and is_terminal()


def write_fields(fields: Iterable[Any]) -> None:
    """Write one line of tab-separated fields; tabs and line breaks in them are escaped."""
    _write("\t".join("" if field is None else printable(str(field)) for field in fields))


def write_table(columns: Mapping[str, Align], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table for people: headings, aligned columns, no wider than the terminal.

    If the terminal is narrow, columns of text are wrapped, down to a few letters, and columns of
    numbers, which are aligned to the right, are not. None is an empty cell.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    headed = any(heading.strip() for heading in columns)
    padding = (0, 1, 0, 0)
    table = Table(
        box=_lines(), show_header=headed, show_edge=False, pad_edge=False, padding=padding
    )
    texts = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    least = _GAP * (len(columns) - 1)
    for place, (heading, align) in enumerate(columns.items()):
        width = max(cell_len(text) for text in (heading, *(row[place] for row in texts)))
        is_number = align == "right"
        needed = width if is_number else min(width, _LEAST_TEXT)
        least += needed
        table.add_column(
            heading, justify=align, min_width=needed, no_wrap=is_number, overflow="fold"
        )
    for row in texts:
        table.add_row(*row)
    written = io.StringIO()
    console = Console(
        file=written,
        width=max(shutil.get_terminal_size().columns, least),
        color_system=None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(table)
    # Cells are padded to the width of their column.
    for line in written.getvalue().splitlines():
        _write(line.rstrip())


def _lines() -> Any:
    """A box with one line below the headings."""
    from rich.box import Box

    blank = "    \n"
    return Box(f"{blank}{blank} -- \n{blank * 5}")


# The columns of names and values, which need no headings.
FACTS: Mapping[str, Align] = {"": "left", " ": "left"}


def write_csv_row(fields: Iterable[Any]) -> None:
    """Write one row of CSV, quoted where needed."""
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(fields)
    _write(row.getvalue())


def write_json(value: Any) -> None:
    """Write one JSON value in one line of ASCII characters."""
    _write(json.dumps(value))


def write_text(text: str = "") -> None:
    """Write a line of text for people, wrapped on a terminal; control characters are escaped."""
    text = printable(text)
    if not is_terminal():
        _write(text)
        return
    width = shutil.get_terminal_size().columns
    wrapped = wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    for line in wrapped or [""]:
        _write(line)


def write_description(
    found: Mapping[str, Any], facts: Iterable[tuple[str, Any]], form: str | None
) -> None:
    """Write named values and one entry per class: as tables, lines or one JSON object.

    ``facts`` are the names and values of the table; a value of None is left out.
    """
    if form == "json":
        write_json(found)
        return
    classes = sorted(found["classes"] or [], key=lambda entry: natural_order(entry["class"]))
    known = [name for name in (classes[0] if classes else ()) if classes[0][name] is not None]
    rows = [[entry[name] for name in known] for entry in classes]
    if not is_for_people(form):
        for name, value in found.items():
            if name != "classes":
                fields = format_blocks(value) if name == "blocks" else [value]
                write_fields([name, *fields])
        for row in rows:
            write_fields(["class", *row])
        return
    write_table(FACTS, [fact for fact in facts if fact[1] is not None])
    if rows:
        write_text()
        write_table({name: "left" if name == "class" else "right" for name in known}, rows)


def format_blocks(blocks: Iterable[Mapping[str, Any]] | None) -> list[str]:
    """List the blocks of features, their widths, and which of them are used."""
    uses = {True: "used", False: "not used"}
    return [f"{one['name']} {one['width']} {uses[one['used']]}" for one in blocks or ()]


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
