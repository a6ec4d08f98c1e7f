"""The files of a comparison: a page, a table, and all that was measured."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evergrow.foundation.atomic import written_whole
from evergrow.research.comparison.columns import COLUMNS, said_of
from evergrow.research.comparison.page import page

if TYPE_CHECKING:
    from evergrow.research.comparison.comparing import Comparison
    from evergrow.research.comparison.result import Standing

__all__ = ["write"]


def write(folder: Path, found: Comparison) -> None:
    """Write page, table and record, each whole or not at all."""
    files = {
        "comparison.html": page(found),
        "comparison.csv": _as_csv(found),
        "comparison.json": json.dumps(_plain(_as_json(found)), indent=2, allow_nan=False) + "\n",
    }
    for name, content in files.items():
        with written_whole(folder / name) as file:
            file.write(content.encode())


def _as_csv(found: Comparison) -> str:
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["learner", "title", "shown", *(column.name for column in COLUMNS), "said"])
    for shown, standings in (("all", found.standings), ("subsample", found.on_sample)):
        for standing in standings:
            values = [_shown(column.value(standing)) for column in COLUMNS]
            contender = standing.contender
            rows.writerow([contender.name, contender.title, shown, *values, said_of(standing)])
    return written.getvalue()


def _shown(value: float | str) -> str:
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
                "learner": None if advice.choice is None else advice.choice.contender.name,
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
        "learner": standing.contender.name,
        "title": standing.contender.title,
        "package": standing.contender.recipe.package,
        "code": standing.contender.recipe.code,
        **{column.name: column.value(standing) for column in COLUMNS},
        "said": said_of(standing),
        "results": [result.to_json() for result in standing.results],
    }


def _plain(value: Any) -> Any:
    """The same with null for what is not a number, which JSON cannot say."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
