"""Methods beside each other on one draw, and the numbers that the paper prints for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evergrow.research.experiments.experiment import Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2015.levels import draw
from evergrow.research.papers.cvpr2015.sources import called, samples
from evergrow.research.papers.cvpr2015.trials import attempt, through_metric

__all__ = ["Entry", "compare", "methods", "printed", "relative_to"]

# A contender by name, the columns of its row, and its parameters.
Entry = tuple[str, Row, Mapping[str, Any]]


def methods(names: Iterable[str]) -> list[Entry]:
    """Contenders as they are, told apart by the column "method"."""
    return [(name, {"method": name}, {}) for name in names]


def compare(
    lab: Lab,
    run: Run,
    contenders: Iterable[Entry],
    *,
    fine: float = 0.5,
    coarse: float = 0.5,
    metric: str = "none",
) -> list[dict[str, Any]]:
    """Rows of contenders that are shown the same.

    ``fine`` and ``coarse`` are the shares of the samples that come with fine labels and with
    coarse ones only, ``metric`` names the part of them that a metric is learnt on.
    """
    data, seed = samples(lab, run), run["seed"]
    shown, seen = through_metric(metric, draw(data, seed, fine, coarse), data, seed)
    return [
        {
            **run,
            "data": called(lab, run["data"]),
            **own,
            **attempt(
                name,
                shown,
                seen,
                n_trees=run["trees"],
                seed=seed,
                n_jobs=lab.n_jobs,
                parameters=parameters,
            ),
        }
        for name, own, parameters in contenders
    ]


def printed(
    numbers: Mapping[str, Sequence[float]], settings: Sequence[Row], column: str = "accuracy"
) -> list[dict[str, Any]]:
    """Percentages of a printed table as rows: a line per method, a setting per column."""
    return [
        {"method": method, **setting, column: round(value / 100, 6)}
        for method, line in numbers.items()
        for setting, value in zip(settings, line, strict=True)
    ]


def relative_to(
    rows: Iterable[Row], baseline: Row, within: Sequence[str], column: str = "accuracy"
) -> list[dict[str, Any]]:
    """Rows with "relative": a column as a share of that of the baseline.

    The baseline of a row has the same values in the columns ``within``.
    """
    table = Table(rows)
    found = []
    for row in table:
        same = {name: row[name] for name in within if name in row}
        below = table.mean(column, **(same | dict(baseline)))
        found.append({**row, "relative": row[column] / below if column in row else None})
    return found
