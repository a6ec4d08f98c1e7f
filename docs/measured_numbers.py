"""Writes the numbers of result files into the pages that show them.

    python docs/measured_numbers.py

Pages are plain Markdown. A comment says where the numbers of a table or of a sentence come from,
and this replaces them; words, units, bold marks and the number of decimals stay as written.

Sources are ``benchmarks/results/NAME.json``, written by ``python -m benchmarks ... --out``, and
``docs/results/NAME.csv`` with ``NAME-timings.csv``, written by ``evergrow experiment``. A key names
one value in them:

- ``fit-fit: accuracy %`` is a figure of a benchmark; ``fit-fit: digits: accuracy %`` if several
  data sets have it. The beginning of the data set's name is enough.
- ``fit-fit: RidgeClassifier: fit s`` is a cell of a table: row and column. ``512 x 256 & 3`` is the
  row with both cells. ``fit-fit: fit: digits: RidgeClassifier: fit s`` begins with the title of
  the table, or with a part of it from the left.
- ``guide-nightly: learner=forest & classes=50: accuracy`` is the mean of a column of an experiment
  over the rows with these values, and the median of a time. Where ± follows the number, the
  deviation is written after it.

``times 100`` after a key multiplies. ``A minus B`` and ``A over B`` compare a key with a key or a
number.

In a sentence the comment follows the number: ``12%<!-- measured: KEY -->``. Before a table it lists
the rows of the table in order, on lines of their own or separated by ``;``, and ``|`` separates the
keys of one row::

    <!-- measured: FILE: TITLE | COLUMN | COLUMN & CELL times 100
    ROW; ROW; -
    ROW -->

fills the last two columns; ``-`` keeps a row or a column as it is written. A cell with two numbers
has two columns of the file: ``COLUMN and COLUMN & CELL``. A line that ends with ``|`` goes on in
the next one.

Without columns each row has a key for every number after its first cell. If the first line names a
file, the keys leave it out. If the table has a column "target", it gets the bars of the figures,
the numbers after it are the measured ones, and what misses its bar becomes bold.

The table after ``<!-- machines -->`` is written as a whole: the machines of all benchmarks.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evergrow.research.experiments.table import Table

ROOT = Path(__file__).resolve().parents[1]

# A number on its own, with the bold marks around it; not a part of a word such as CIFAR-100.
_NUMBER = (
    r"(?P<open>\*\*)?(?P<number>(?<![\w.,-])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|-\w|\.\d))"
    r"(?P<unit> ?%)?(?P<close>\*\*)?"
)
# Code and addresses of links keep their numbers.
_IN_CELL = re.compile(rf"`[^`]*`|\]\([^)]*\)|{_NUMBER}")
_IN_SENTENCE = re.compile(rf"{_NUMBER}[^\S\n]*(?P<comment><!-- measured:(?P<key>[^>]*?)-->)")
_IN_TABLE = re.compile(r"^<!-- measured:(?P<lines>[^>]*?)-->\n(?P<table>(?:\|.*\n)*)", re.MULTILINE)
_MACHINES = re.compile(r"^<!-- machines -->\n(?:\|.*\n)*", re.MULTILINE)
_CELL = re.compile(r"(?<!\\)\|")
_SENSE = re.compile(r"at least|at most")
# Names of figures may have these words too; a key or a number follows only here.
_COMPARED = re.compile(r"(.*) (minus|over) ([\w-]+: .*|[\d.]+)")


class SourceError(ValueError):
    """A source that does not exist, or does not fit the numbers written."""


@dataclass(frozen=True)
class Measurement:
    """One measured value."""

    value: float
    deviation: float | None = None
    others: tuple[float, ...] = ()
    """Further numbers of the same cell."""
    bar: float | None = None
    sense: str = ""
    met: bool | None = None

    def times(self, factor: float) -> Measurement:
        """The same in another unit."""
        deviation = None if self.deviation is None else self.deviation * factor
        bar = None if self.bar is None else self.bar * factor
        others = tuple(other * factor for other in self.others)
        return replace(self, value=self.value * factor, deviation=deviation, others=others, bar=bar)


class Benchmark:
    """Tables and figures of a part of a benchmark."""

    def __init__(self, path: Path) -> None:
        self.content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if self.content["quick"]:
            raise SourceError(f"{path.name} is from a quick run")

    def find(self, key: str) -> list[Measurement]:
        """Return all values that match a key: figures, or table cells if no figure matches."""
        return [*self._find_figures(key)] or [*self._find_cells(key)]

    def _find_figures(self, key: str) -> Iterator[Measurement]:
        for figure in self.content["figures"]:
            data, name = _divide(key, figure["figure"])
            if name == figure["figure"] and figure["data"].startswith(data):
                yield Measurement(
                    figure["value"], bar=figure["bar"], sense=figure["sense"], met=figure["met"]
                )

    def _find_cells(self, key: str) -> Iterator[Measurement]:
        for table in self.content["tables"]:
            for column, name in enumerate(table["columns"]):
                wanted, found = _divide(key, name)
                if found == name and wanted:
                    yield from (_read(row[column]) for row in _find_rows(table, wanted))


class ExperimentResult:
    """Rows of an experiment."""

    def __init__(self, path: Path) -> None:
        if json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["quick"]:
            raise SourceError(f"{path.name} is from a quick run")
        timings = path.with_name(f"{path.stem}-timings.csv")
        self.tables = [_read_rows(each) for each in (path, timings) if each.exists()]

    def find(self, key: str) -> list[Measurement]:
        """The mean of a column over rows with some values: ``data=birds & images=3: accuracy``."""
        return [*self._find(key)]

    def _find(self, key: str) -> Iterator[Measurement]:
        wanted, _, column = key.rpartition(": ")
        pairs = (each.split("=", maxsplit=1) for each in wanted.split(" & "))
        equal = {name: value or None for name, value in pairs}
        for table in self.tables:
            rows = table.where(**equal)
            if len(rows) and column in rows.rows[0] and len(rows.column(column)):
                middle = rows.mean(column) if table is self.tables[0] else _median(rows, column)
                yield Measurement(middle, rows.deviation(column))


class Results:
    """All result files of a checkout, read when they are first asked for."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._files: dict[str, Benchmark | ExperimentResult] = {}

    @property
    def benchmarks(self) -> list[Path]:
        """The files of benchmarks."""
        return sorted((self.root / "benchmarks" / "results").glob("*.json"))

    def open(self, name: str) -> Benchmark | ExperimentResult:
        """A result file by its name."""
        if name not in self._files:
            benchmark = self.root / "benchmarks" / "results" / f"{name}.json"
            experiment = self.root / "docs" / "results" / f"{name}.csv"
            if benchmark.exists():
                self._files[name] = Benchmark(benchmark)
            elif experiment.exists():
                self._files[name] = ExperimentResult(experiment)
            else:
                raise SourceError(f"the result file {name!r} does not exist")
        return self._files[name]

    def measurement(self, key: str) -> Measurement:
        """The value that a key names, with its operations."""
        key = " ".join(key.split())
        scaled = re.fullmatch(r"(.*) times ([\d.e-]+)", key)
        if scaled:
            return self.measurement(scaled[1]).times(float(scaled[2]))
        compared = _COMPARED.fullmatch(key)
        if compared:
            first, second = self.measurement(compared[1]), self.measurement(compared[3])
            return Measurement(_OPERATIONS[compared[2]](first.value, second.value))
        if re.fullmatch(r"[\d.]+", key):
            return Measurement(float(key))
        name, _, rest = key.partition(": ")
        found_values = self.open(name).find(rest)
        if len(found_values) != 1:
            raise SourceError(f"{len(found_values) or 'no'} values for {key!r}")
        return found_values[0]

    def machines(self) -> str:
        """A Markdown table of the machines that ran the benchmarks."""
        found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for path in self.benchmarks:
            content = Benchmark(path).content
            of = content["machine"]
            versions = f"scikit-learn {of['scikit-learn']}, NumPy {of['numpy']}"
            software = f"Python {of['python']}, {versions}"
            found.setdefault((of["processor"], str(of["cores"]), software), []).append(content)
        ran = Counter(name for parts in found.values() for name in {p["benchmark"] for p in parts})
        lines = ["| processor | cores | software | date | benchmarks |", "|---" * 5 + "|"]
        for machine, parts in found.items():
            dates = sorted({part["date"] for part in parts})
            names = {
                name: [part["part"] for part in parts if part["benchmark"] == name]
                for name in dict.fromkeys(part["benchmark"] for part in parts)
            }
            # A benchmark that ran on several machines is listed with its parts.
            told = [
                f"`{name}` ({', '.join(of)})" if ran[name] > 1 else f"`{name}`"
                for name, of in names.items()
            ]
            cells = [*machine, " to ".join(dict.fromkeys((dates[0], dates[-1]))), ", ".join(told)]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "minus": lambda a, b: a - b,
    "over": lambda a, b: a / b,
}


def _find_rows(table: dict[str, Any], wanted: str) -> Iterator[list[object]]:
    """Rows that have all wanted cells; the title of their table may stand before them."""
    for start in (0, *(match.end() for match in re.finditer(": ", wanted))):
        if not table["title"].startswith(wanted[:start].removesuffix(": ")):
            continue
        cells = {*wanted[start:].split(" & ")}
        yield from (row for row in table["rows"] if cells <= {str(cell) for cell in row})


def _divide(key: str, name: str) -> tuple[str, str]:
    """What a key has before a name and the name, or nothing and the key."""
    return (key[: -len(name) - 2], name) if key.endswith(f": {name}") else ("", key)


def _read(cell: object) -> Measurement:
    if isinstance(cell, int | float):
        return Measurement(float(cell))
    first, *others = (float(match["number"]) for match in _numbers(str(cell)))
    if "±" in str(cell):
        return Measurement(first, deviation=others[0])
    return Measurement(first, others=tuple(others))


def _read_rows(path: Path) -> Table:
    with path.open(encoding="utf-8", newline="") as file:
        return Table({k: v or None for k, v in row.items()} for row in csv.DictReader(file))


def _median(rows: Table, column: str) -> float:
    return float(np.median(rows.column(column)))


def _numbers(text: str) -> list[re.Match[str]]:
    return [match for match in _IN_CELL.finditer(text) if match["number"]]


@dataclass(frozen=True)
class _Slot:
    """A number in a text, and what is to be written there."""

    match: re.Match[str]
    value: float
    bold: bool | None = None
    """None keeps the bold marks."""

    @cached_property
    def text(self) -> str:
        number = _format_like(self.match["number"], self.value) + (self.match["unit"] or "")
        if self.bold is None:
            return (self.match["open"] or "") + number + (self.match["close"] or "")
        return f"**{number}**" if self.bold else number


def _format_like(written: str, value: float) -> str:
    mantissa, _, exponent = written.partition("e")
    decimals = len(mantissa.partition(".")[2])
    sign = "+" if written.startswith("+") else ""
    if exponent:
        mantissa, _, exponent = f"{value:{sign}.{decimals}e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    shown = f"{value:{sign}.{decimals}f}"
    # Not "-0.0".
    return shown if float(shown) else shown.replace("-", "")


def _fill(text: str, slots: Sequence[_Slot]) -> str:
    for slot in reversed(slots):
        text = text[: slot.match.start()] + slot.text + text[slot.match.end() :]
    return text


def _fill_cell(cell: str, found: Sequence[Measurement], *, judge: bool) -> str:
    """Write measurements over the numbers of a cell."""
    values = [
        (value, (each.met is False) if judge and each.bar is not None else None)
        for each in found
        for value in (
            each.value,
            *((each.deviation,) if "±" in cell and each.deviation is not None else ()),
            *each.others,
        )
    ]
    numbers = _numbers(cell)
    if len(numbers) != len(values):
        raise SourceError(f"{cell.strip()!r} has {len(numbers)} numbers for {len(values)} values")
    return _fill(cell, [_Slot(n, v, bold) for n, (v, bold) in zip(numbers, values, strict=True)])


def _fill_target(cell: str, found: Sequence[Measurement]) -> str:
    """Write the bars of figures, and check "at least" and "at most" before them."""
    numbers = _numbers(cell)
    with_bars = [each for each in found if each.bar is not None]
    if len(numbers) != len(with_bars):
        raise SourceError(f"{cell.strip()!r} has {len(numbers)} numbers for {len(with_bars)} bars")
    slots = []
    for number, each in zip(numbers, with_bars, strict=True):
        senses = _SENSE.findall(cell[: number.start()])
        if not senses or senses[-1] != each.sense:
            raise SourceError(f"{cell.strip()!r} must say {each.sense!r}")
        slots.append(_Slot(number, each.bar or 0.0))
    return _fill(cell, slots)


class _TableSource:
    """The comment before a table."""

    def __init__(self, text: str) -> None:
        # A line that ends with a bar goes on in the next one.
        head, *lines = re.sub(r"\|\s*\n\s*", "| ", text).split("\n")
        self.file, *self.columns = (part.strip() for part in head.split(" | "))
        self.rows = [row.strip() for line in lines for row in line.split(";") if row.strip()]

    def keys(self, row: str) -> list[list[str]]:
        """The keys of a row, by column; all in one list without columns."""
        prefix = f"{self.file}: " if self.file else ""
        if not self.columns:
            return [[prefix + key for key in row.split(" | ")]]
        return [self._column_keys(prefix, row, column) for column in self.columns]

    @staticmethod
    def _column_keys(prefix: str, row: str, column: str) -> list[str]:
        if column == "-":
            return []
        names, times, factor = column.partition(" times ")
        names, *cells = names.split(" & ")
        place = prefix + " & ".join([row, *cells])
        return [f"{place}: {name}{times}{factor}" for name in names.split(" and ")]


def _rewrite_table(lines: str, table: str, results: Results) -> str:
    source = _TableSource(lines)
    header, rule, *rows = table.splitlines()
    if len(rows) != len(source.rows):
        raise SourceError(f"{len(source.rows)} sources for {len(rows)} rows under {header!r}")
    titles = [title.strip() for title in _CELL.split(header)]
    target = titles.index("target") if "target" in titles else None
    return "".join(
        f"{line}\n"
        for line in (
            header,
            rule,
            *(
                _rewrite_row(row, source, one, target, results)
                for row, one in zip(rows, source.rows, strict=True)
            ),
        )
    )


def _rewrite_row(
    line: str, source: _TableSource, row: str, target: int | None, results: Results
) -> str:
    if row == "-":
        return line
    # Nothing stands before the first bar and after the last.
    cells = _CELL.split(line)
    found = [[results.measurement(key) for key in keys] for keys in source.keys(row)]
    if source.columns:
        for place, each in enumerate(found, start=len(cells) - 1 - len(found)):
            # An empty cell stays empty.
            if each and _numbers(cells[place]):
                cells[place] = _fill_cell(cells[place], each, judge=False)
        return "|".join(cells)
    known = found[0]
    first = 2 if target is None else target + 1
    measured = _fill_cell("|".join(cells[first:-1]), known, judge=target is not None)
    if target is not None and any(each.bar is not None for each in known):
        cells[target] = _fill_target(cells[target], known)
    return "|".join([*cells[:first], measured, *cells[-1:]])


def rewrite(text: str, results: Results) -> str:
    """The text of a page with the numbers of the result files."""

    def table(match: re.Match[str]) -> str:
        if not match["table"]:
            raise SourceError(f"no table or number belongs to {match[0].strip()!r}")
        comment = match[0][: match.start("table") - match.start()]
        return comment + _rewrite_table(match["lines"], match["table"], results)

    def sentence(match: re.Match[str]) -> str:
        slot = _Slot(match, results.measurement(match["key"]).value)
        return slot.text + match["comment"]

    text = _MACHINES.sub(lambda _: "<!-- machines -->\n" + results.machines(), text)
    text = _IN_TABLE.sub(table, text)
    n_comments = text.count("<!-- measured:")
    n_known = len(_IN_TABLE.findall(text)) + len(_IN_SENTENCE.findall(text))
    if n_comments != n_known:
        raise SourceError(f"{n_comments - n_known} comments follow no number and precede no table")
    return _IN_SENTENCE.sub(sentence, text)


def pages(root: Path = ROOT) -> list[Path]:
    """The pages whose numbers are checked; pages of results are written with the results."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def main() -> None:
    """Write the numbers of all pages."""
    results = Results()
    for path in pages():
        old = path.read_text(encoding="utf-8")
        try:
            new = rewrite(old, results)
        except SourceError as error:
            raise SystemExit(f"Error: {path.relative_to(ROOT)}: {error}") from error
        if new != old:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
