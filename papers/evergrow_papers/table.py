"""Rows of measurements: choosing them, their means over seeds, and their CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Row = Mapping[str, Any]
# Chooses one value of a column from all that were measured, such as the last number of classes.
Choice = Callable[[Sequence[Any]], Any]
# Any value of a column: lifts a choice that a shared setting makes.
ANY: Any = object()


def first(values: Sequence[Any]) -> Any:
    """The smallest value that was measured."""
    return min(values)


def last(values: Sequence[Any]) -> Any:
    """The largest value that was measured."""
    return max(values)


def at_most(bound: float) -> Choice:
    """The largest value that was measured up to a bound."""
    return lambda values: max(value for value in values if value <= bound)


class Table:
    """Rows with named columns.

    Examples
    --------
    >>> from evergrow_papers.table import Table, last
    >>> table = Table([{"strategy": "igt", "n": n, "accuracy": 0.5 + n / 8} for n in (1, 2)])
    >>> table.mean("accuracy", strategy="igt"), table.mean("accuracy", n=last)
    (0.6875, 0.75)
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = [dict(row) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def where(self, **wanted: Any) -> Table:
        """Return the rows in which these columns have these values.

        A tuple means any of its values, None a missing value, and a function such as
        :func:`last` chooses one value from those of the rows that all other columns select. ``ANY``
        means any value.
        """
        plain = {k: v for k, v in wanted.items() if not callable(v) and v is not ANY}
        rows = [row for row in self.rows if all(_is(row.get(k), v) for k, v in plain.items())]
        found = Table(rows)
        for name, choose in wanted.items():
            if callable(choose):
                values = [value for value in found.values(name) if value is not None]
                if not values:
                    return Table([])
                chosen = choose(values)
                found = Table(row for row in found if row.get(name) == chosen)
        return found

    def values(self, column: str) -> list[Any]:
        """Return the distinct values of a column, in order of appearance."""
        return [*dict.fromkeys(row[column] for row in self.rows if column in row)]

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """Return the numbers of a column, without missing ones."""
        found = [row[name] for row in self.rows if row.get(name) is not None]
        return np.array(found, dtype=np.float64)

    def mean(self, name: str, **wanted: Any) -> float:
        """Return the mean of a column over the rows with these values; NaN if there are none."""
        found = self.where(**wanted).column(name)
        return float(found.mean()) if len(found) else float("nan")

    def deviation(self, name: str, **wanted: Any) -> float:
        """Return the standard deviation of a column over these rows; 0 for a single row."""
        found = self.where(**wanted).column(name)
        return float(found.std(ddof=1)) if len(found) > 1 else 0.0

    def to_csv(self, columns: Sequence[str]) -> str:
        """Return the table as CSV text; missing values are empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_shown(row.get(name)) for name in columns] for row in self.rows)
        return text.getvalue()

    @classmethod
    def from_csv(cls, text: str) -> Table:
        r"""Read a table from the text of :meth:`to_csv`; rows lack their missing values.

        Examples
        --------
        >>> from evergrow_papers.table import Table
        >>> Table.from_csv("strategy,seed,accuracy\nigt,0,0.5\nrust,0,\n").rows
        [{'strategy': 'igt', 'seed': 0, 'accuracy': 0.5}, {'strategy': 'rust', 'seed': 0}]
        """
        columns, *lines = csv.reader(io.StringIO(text), strict=True)
        return cls(
            {name: _value(cell) for name, cell in zip(columns, cells, strict=True) if cell != ""}
            for cells in lines
        )


def _is(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, tuple) else value == wanted


def _value(cell: str) -> Any:
    if cell in ("True", "False"):
        return cell == "True"
    for kind in (int, float):
        try:
            value = kind(cell)
        except ValueError:
            continue
        # "1e3" and "007" stay text, so that writing the table again gives the same file.
        if _shown(value) == cell:
            return value
    return cell


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    # Enough digits to draw from, and none that the rounding of another compiler would change.
    return f"{value:.6g}" if isinstance(value, float) else str(value)
