"""``labels.csv``: the classes of images in class folders, in a file next to these folders.

Not every class name can be the name of a folder, and not every two can be names of folders side by
side. So a workspace that exports its pictures to class folders writes this table too, and the
classes are read from it when the folders are listed.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.files import open_regular
from evergrow.foundation.formatting import display_name

LABEL_TABLE = "labels.csv"
# The path is relative, with slashes, and empty if the example has no image.
COLUMNS = ("path", "label", "fine", "time", "id", "image")
_HEADER = ",".join(COLUMNS)

# A spreadsheet would compute a text that begins with one of these. The quote itself is among them,
# so that the quote that is put in front can be removed again.
_FORMULA = ("=", "+", "-", "@", "'")
# Controls, halves of surrogate pairs, separators of lines and paragraphs.
_NOT_IN_NAMES = {"Cc", "Cs", "Zl", "Zp"}


@dataclass(frozen=True)
class LabelTable:
    """The classes and fine classes of images by their paths, and the classes of whole folders."""

    labels: dict[str, str]
    fine: dict[str, str]
    folders: dict[str, str]

    def find(self, path: Path) -> tuple[str | None, str | None]:
        """The class of an image by its relative path, and its fine class.

        An image that was put into a folder later has the class of the others there.
        """
        # Some file systems of Macs decompose names.
        name = unicodedata.normalize("NFC", path.as_posix())
        label = self.labels.get(name, self.folders.get(name.partition("/")[0]))
        return label, self.fine.get(name)


def format_rows(rows: Iterable[Iterable[object]]) -> str:
    r"""Format rows as CSV; text that a spreadsheet would compute begins with a quote.

    >>> format_rows([("=1+1", "'tis", None, 7)])
    "'=1+1,''tis,,7\r\n"
    """
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_without_formula(field) for field in row] for row in rows)
    return text.getvalue()


def _without_formula(field: object) -> object:
    return f"'{field}" if isinstance(field, str) and field.startswith(_FORMULA) else field


def parse_field(field: str) -> str:
    """Remove the quote that :func:`format_rows` puts in front of some texts.

    >>> parse_field("'=1+1"), parse_field("''tis"), parse_field("cup")
    ('=1+1', "'tis", 'cup')
    """
    rest = field.removeprefix("'")
    return rest if rest.startswith(_FORMULA) else field


def read_label_table(folder: Path) -> LabelTable | None:
    """Read the table of a folder; None if there is none.

    A file of this name with other columns belongs to someone else, and is ignored.
    """
    try:
        with (
            open_regular(folder / LABEL_TABLE) as binary,
            io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as file,
        ):
            return _read(file)
    except FileNotFoundError:
        return None
    except (csv.Error, UnicodeDecodeError, InvalidInputError) as error:
        raise InvalidInputError(
            f"{display_name(folder / LABEL_TABLE)} cannot be read: {error}; delete it to take the "
            "names of the folders for the classes"
        ) from error


def _read(file: io.TextIOWrapper) -> LabelTable | None:
    # Not more than needed: the file may be anything.
    if file.readline(len(_HEADER) + 2).rstrip("\r\n") != _HEADER:
        return None
    labels: dict[str, str] = {}
    fine: dict[str, str] = {}
    of_folder: dict[str, set[str]] = {}
    for path, label, finer in _rows(csv.reader(file)):
        labels[path] = label
        of_folder.setdefault(path.partition("/")[0], set()).add(label)
        if finer:
            fine[path] = finer
    folders = {name: found.pop() for name, found in of_folder.items() if len(found) == 1}
    return LabelTable(labels, fine, folders)


def _rows(lines: Iterable[list[str]]) -> Iterator[tuple[str, str, str]]:
    """Path, class and fine class of each row with an image."""
    # The first line has the columns.
    for number, line in enumerate(lines, 2):
        if len(line) != len(COLUMNS):
            raise InvalidInputError(
                f"row {number} has {len(line)} fields instead of {len(COLUMNS)}"
            )
        path, label, fine = (parse_field(field) for field in line[:3])
        for name in (label, fine):
            if any(unicodedata.category(one) in _NOT_IN_NAMES for one in name):
                raise InvalidInputError(f"row {number} has a control character in a name")
        if path and not label:
            raise InvalidInputError(f"row {number} has no label")
        if path:
            yield path, label, fine
