"""The files of a comparison: the page, the CSV table and the JSON record."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evergrow.foundation.atomic import atomic_write
from evergrow.research.comparison.page import render_page
from evergrow.research.comparison.table import COLUMNS, notes_on

if TYPE_CHECKING:
    from evergrow.research.comparison.comparison import Comparison
    from evergrow.research.comparison.result import Standing


def write(folder: Path, found: Comparison) -> None:
    """Write the page, the table and the record, each atomically."""
    files = {
        "comparison.html": render_page(found),
        "comparison.csv": _as_csv(found),
        "comparison.json": json.dumps(_plain(_as_json(found)), indent=2, allow_nan=False) + "\n",
    }
    for name, content in files.items():
        with atomic_write(folder / name) as file:
            file.write(content.encode())


def _as_csv(found: Comparison) -> str:
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["learner", "title", "shown", *(column.name for column in COLUMNS), "said"])
    for shown, standings in (("all", found.standings), ("subsample", found.on_sample)):
        for standing in standings:
            values = [_format(column.value(standing)) for column in COLUMNS]
            learner = standing.learner
            rows.writerow([learner.name, learner.title, shown, *values, notes_on(standing)])
    return written.getvalue()


def _format(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else f"{value:.6g}"


def _as_json(found: Comparison) -> dict[str, Any]:
    return {
        **found.record,
        "facts": vars(found.facts),
        "sample": None if found.sample_facts is None else vars(found.sample_facts),
        "advice": [
            {
                "need": advice.need,
                "learner": None if advice.choice is None else advice.choice.learner.name,
                "reason": advice.reason,
            }
            for advice in found.advice
        ],
        "remarks": list(found.remarks),
        "learners": [_learner(each) for each in found.standings],
        "on_sample": [_learner(each) for each in found.on_sample],
    }


def _learner(standing: Standing) -> dict[str, Any]:
    return {
        "learner": standing.learner.name,
        "title": standing.learner.title,
        "package": standing.learner.factory.package,
        "code": standing.learner.factory.code,
        **{column.name: column.value(standing) for column in COLUMNS},
        "said": notes_on(standing),
        "results": [result.to_json() for result in standing.results],
    }


def _plain(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by null."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
