"""Tables of paths and labels: CSV files with a header, from spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evergrow.foundation.errors import BadImage, InvalidInputError
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name, format_size, list_names
from evergrow.vision.images.label_table import COLUMNS, parse_field
from evergrow.vision.images.labelled.labelled_images import (
    LabelledImages,
    check_label,
    choose_split,
    label_array,
    require_images,
    split_kind,
)
from evergrow.vision.images.labelled.named_files import NamedFiles

SUFFIXES = (".csv", ".tsv")

# Names of columns, in any case, the usual ones first.
_PATH_NAMES = ("path", "image", "file", "filename", "file_name", "filepath", "image_path")
_LABEL_NAMES = ("label", "class", "category", "class_name", "target", "species")
_SPLIT_NAMES = ("split", "subset", "set")
_DELIMITERS = (",", ";", "\t", "|")
_MAX_BYTES = 1 << 30
_MAX_ROWS = 10_000_000
_LONGEST_HEADER = 1 << 16
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class _Row:
    """The fields of a row, and the line on which it begins."""

    line: int
    path: str
    label: str
    fine: str = ""
    split: str = ""
    # Why the row cannot be used.
    fault: str | None = None
    # A prediction that the image fits no class.
    is_unknown: bool = False

    def problem(self, table: Path, reason: str) -> BadImage:
        """What is wrong with the row."""
        return BadImage(None, f"{display_name(table)} line {self.line}", reason)


def read_table(
    path: Path, files: NamedFiles, *, split: str | None, columns: tuple[str, str] | None
) -> LabelledImages:
    """List the images that a table names; bad rows are problems with their line numbers."""
    rows = list(_read_rows(path, columns))
    splits = {} if split is None else _find_splits(rows)
    chosen = None
    if split is not None and splits:
        own = choose_split(splits, split, display_name(path))
        chosen = path / own[0].split
        # Rows that cannot be read may belong to any split.
        rows = own + [row for row in rows if row.fault is not None]
    seen: dict[tuple[str, str], int] = {}
    good: list[tuple[Path, _Row]] = []
    unreadable: list[BadImage] = []
    ignored: list[BadImage] = []
    for row in rows:
        before = seen.setdefault((row.path, row.label), row.line)
        if row.fault is None and before != row.line:
            ignored.append(row.problem(path, f"the same row as in line {before}"))
            continue
        if row.is_unknown:
            ignored.append(row.problem(path, "it was predicted to fit no class"))
            continue
        fault = row.fault or check_label(row.label) or (check_label(row.fine) if row.fine else None)
        if fault is None:
            try:
                good.append((files.find(row.path), row))
                continue
            except InvalidInputError as error:
                fault = str(error)
        unreadable.append(row.problem(path, fault))
    problems = (*unreadable, *ignored)
    require_images(good, problems, path, "images")
    return LabelledImages(
        [file for file, _ in good],
        label_array([row.label for _, row in good], path),
        problems,
        tuple(unreadable),
        split=chosen,
        splits=tuple(splits),
        root=path,
        fine=tuple(row.fine or None for _, row in good),
    )


def _find_splits(rows: list[_Row]) -> dict[str, list[_Row]]:
    """The rows of each split; none if there is no column of splits with known names."""
    splits: dict[str, list[_Row]] = {}
    for row in rows:
        kind = split_kind(row.split)
        if kind is not None:
            splits.setdefault(kind, []).append(row)
        elif row.fault is None:
            # No splits, or folds and the like, among which there is nothing to choose.
            return {}
    return splits


def _read_rows(path: Path, columns: tuple[str, str] | None) -> Iterator[_Row]:
    with open_regular(path) as binary:
        n_bytes = os.fstat(binary.fileno()).st_size
        if n_bytes > _MAX_BYTES:
            raise InvalidInputError(
                f"{display_name(path)} has {format_size(n_bytes)}, a table may have "
                f"{format_size(_MAX_BYTES)}"
            )
        if binary.peek(2)[:2] in _UTF16:
            raise _refusal(path, "it is UTF-16: save it as UTF-8")
        with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as file:
            number = 1
            try:
                header, delimiter = _read_header(file, path, columns)
                reader = csv.reader(file, delimiter=delimiter, strict=True)
                number = 2
                for fields in reader:
                    if reader.line_num > _MAX_ROWS:
                        raise _refusal(path, f"it has more than {_MAX_ROWS} rows")
                    if any(fields):
                        yield header.parse(fields, number)
                    # The header is line 1; a quoted field may have line breaks.
                    number = reader.line_num + 2
            except UnicodeDecodeError as error:
                raise _refusal(path, f"it is not UTF-8 from line {number} on") from error
            except csv.Error as error:
                raise _refusal(path, f"line {number}: {error}") from error


def _refusal(path: Path, reason: str) -> InvalidInputError:
    return InvalidInputError(f"{display_name(path)} is not a table of images: {reason}")


@dataclass(frozen=True)
class _Header:
    """The columns of a table, and the places of those that are read; -1 for none."""

    names: list[str]
    path: int
    label: int
    fine: int
    split: int
    known: int

    @property
    def is_own(self) -> bool:
        """Whether a workspace or ``evergrow predict`` wrote the table."""
        return tuple(self.names) == COLUMNS

    def parse(self, fields: list[str], line: int) -> _Row:
        """A row; with a fault if a delimiter without quotes may have moved its fields."""
        if len(fields) != len(self.names):
            fault = f"it has {len(fields)} fields, the header has {len(self.names)}"
            return _Row(line, "", "", fault=fault)
        path, label, fine, split = (
            fields[place].strip() if place >= 0 else ""
            for place in (self.path, self.label, self.fine, self.split)
        )
        if self.is_own:
            # Texts that a spreadsheet would compute begin with a quote.
            path, label, fine = (parse_field(field) for field in (path, label, fine))
        is_unknown = self.known >= 0 and fields[self.known] == "false"
        return _Row(line, path, label, fine, split, is_unknown=is_unknown)


def _read_header(
    file: io.TextIOWrapper, path: Path, columns: tuple[str, str] | None
) -> tuple[_Header, str]:
    """The columns, and the delimiter with which they are found."""
    line = file.readline(_LONGEST_HEADER)
    if not line.strip():
        raise _refusal(path, "it is empty")
    best: list[str] = []
    for delimiter in _DELIMITERS:
        names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
        places = _find_columns(names, columns)
        if places is not None:
            lower = [name.lower() for name in names]
            fine = lower.index("fine") if tuple(names) == COLUMNS else -1
            known = lower.index("known") if lower[:1] == ["image"] and "known" in lower else -1
            return _Header(names, *places, fine, _first(lower, _SPLIT_NAMES), known), delimiter
        best = max(best, names, key=len)
    wanted = "path and label, or image and class" if columns is None else " and ".join(columns)
    hint = "; --columns PATH,LABEL, or columns in Python, names others" if columns is None else ""
    raise _refusal(
        path, f"its first line must name the columns {wanted}, it has {list_names(best)}{hint}"
    )


def _find_columns(names: list[str], columns: tuple[str, str] | None) -> tuple[int, int] | None:
    if columns is None:
        lower = [name.lower() for name in names]
        places = _first(lower, _PATH_NAMES), _first(lower, _LABEL_NAMES)
    else:
        places = _first(names, columns[:1]), _first(names, columns[1:])
    return places if min(places) >= 0 else None


def _first(names: list[str], wanted: tuple[str, ...]) -> int:
    """The place of the first wanted name that is there; -1 if none is."""
    return next((names.index(name) for name in wanted if name in names), -1)
