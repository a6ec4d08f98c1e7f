"""Rows of measurements, and their means and standard deviations over seeds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Curve:
    """One column over another: mean and standard deviation over seeds.

    Attributes
    ----------
    x : ndarray
        Values of the first column.
    mean : ndarray
        Mean of the other column for each value.
    deviation : ndarray
        Standard deviation of the other column.
    """

    x: npt.NDArray[Any]
    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]


class Table:
    """Rows with named columns.

    Examples
    --------
    >>> from evergrow.research import Table
    >>> table = Table([{"strategy": "igt", "seed": s, "accuracy": 0.5 + 0.1 * s} for s in (0, 1)])
    >>> round(table.where(strategy="igt").mean("accuracy"), 3)
    0.55
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = [dict(row) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def where(self, **equal: Any) -> Table:
        """Return the rows in which these columns have these values."""
        wanted = equal.items()
        return Table(row for row in self.rows if all(row.get(k) == v for k, v in wanted))

    def values(self, column: str) -> list[Any]:
        """Return the distinct values of a column, in order of appearance."""
        return [*dict.fromkeys(row[column] for row in self.rows if column in row)]

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """Return the numbers of a column, without missing ones."""
        found = [row[name] for row in self.rows if row.get(name) is not None]
        return np.array(found, dtype=np.float64)

    def mean(self, name: str, **equal: Any) -> float:
        """Return the mean of a column over the rows with these values; NaN if there are none."""
        found = self.where(**equal).column(name)
        return float(found.mean()) if len(found) else float("nan")

    def deviation(self, name: str, **equal: Any) -> float:
        """Return the standard deviation of a column over these rows; 0 for a single row."""
        found = self.where(**equal).column(name)
        return float(found.std(ddof=1)) if len(found) > 1 else 0.0

    def curve(self, x: str, y: str, **equal: Any) -> Curve:
        """Return one column over another: mean and deviation over all rows with the same `x`."""
        chosen = self.where(**equal)
        points = [p for p in chosen.values(x) if len(chosen.where(**{x: p}).column(y))]
        return Curve(
            np.array(points),
            np.array([chosen.mean(y, **{x: p}) for p in points]),
            np.array([chosen.deviation(y, **{x: p}) for p in points]),
        )

    def to_csv(self, columns: Sequence[str]) -> str:
        """Return the table as CSV text; missing values are empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_shown(row.get(name)) for name in columns] for row in self.rows)
        return text.getvalue()

    @classmethod
    def from_csv(cls, text: str) -> Table:
        r"""Read a table back from the text of :meth:`to_csv`; rows lack their missing values.

        Numbers have the digits that the text has, so writing the table again gives the same text.

        Examples
        --------
        >>> from evergrow.research import Table
        >>> Table.from_csv("strategy,seed,accuracy\nigt,0,0.5\nrust,0,\n").rows
        [{'strategy': 'igt', 'seed': 0, 'accuracy': 0.5}, {'strategy': 'rust', 'seed': 0}]
        """
        columns, *lines = csv.reader(io.StringIO(text), strict=True)
        return cls(
            {name: _value(cell) for name, cell in zip(columns, cells, strict=True) if cell != ""}
            for cells in lines
        )


def _value(cell: str) -> Any:
    """The value that is written like this."""
    if cell in ("True", "False"):
        return cell == "True"
    for kind in (int, float):
        try:
            value = kind(cell)
        except ValueError:
            continue
        if _shown(value) == cell:
            return value
    return cell


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    # Enough digits to draw from, and none that the rounding of another compiler would change.
    return f"{value:.6g}" if isinstance(value, float) else str(value)
