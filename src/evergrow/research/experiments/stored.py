"""The tables and the record of an experiment as they are stored: written, and read back.

Claims are judged by the numbers that the files hold, so that measuring and rendering again give the
same pages.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.foundation.errors import InvalidInputError
from evergrow.research.experiments.experiment import Experiment
from evergrow.research.experiments.table import Table

# What a page needs to know of how the results were measured.
_RECORD = (
    "experiment",
    "quick",
    "own_data",
    "n_jobs",
    "n_seeds",
    "seeds",
    "data",
    "versions",
    "processor",
    "n_cores",
)


@dataclass(frozen=True)
class Stored:
    """The measurements of an experiment.

    Attributes
    ----------
    tables : mapping of str to str
        CSV files: their names and texts.
    table : Table
        The rows of all of them, with the digits that they have there.
    record : mapping
        Versions, processor and hashes of the data.
    """

    tables: Mapping[str, str]
    table: Table
    record: Mapping[str, Any]


def store(experiment: Experiment, table: Table, record: Mapping[str, Any]) -> Stored:
    """The measurements as they will be read back."""
    files = _files(experiment)
    tables = {name: table.to_csv(columns) for name, columns in files.items()}
    kept = _join(experiment, tables)
    for row, measured in zip(kept, table, strict=True):
        row.update({name: measured[name] for name in experiment.drawn if name in measured})
    return Stored(tables, kept, {**record, "n_rows": len(kept)})


def read_stored(experiment: Experiment, folder: str | os.PathLike[str]) -> Stored:
    """Read the measurements of an experiment; raises an error if they do not fit together."""
    target = Path(folder)
    record = _read_record(experiment, _read(target, f"{experiment.name}.json"))
    tables = {name: _read(target, name) for name in _files(experiment)}
    table = _join(experiment, tables)
    for what, here, there in (
        ("rows", len(table), record.get("n_rows", len(table))),
        ("seeds", sorted(table.values("seed")), record["seeds"]),
    ):
        if here != there:
            raise InvalidInputError(
                f"{experiment.name}.csv and {experiment.name}.json are of different runs, such as "
                f"a quick one and a full one: the {what} are {here} in the table and {there} in "
                "the record"
            )
    return Stored(tables, table, {**record, "n_rows": len(table)})


def has_results(experiment: Experiment, folder: str | os.PathLike[str]) -> bool:
    """Whether any file of its results is in a folder."""
    names = (f"{experiment.name}.json", *_files(experiment))
    return any((Path(folder) / name).exists() for name in names)


def _files(experiment: Experiment) -> dict[str, tuple[str, ...]]:
    """The CSV files of an experiment, and their columns."""
    files = {f"{experiment.name}.csv": experiment.columns}
    if experiment.timed:
        files[f"{experiment.name}-timings.csv"] = (*experiment.keys, *experiment.timed)
    return files


def _read(folder: Path, name: str) -> str:
    path = folder / name
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{str(path)!r} does not exist: measure the experiment first, without --render"
        ) from None
    except UnicodeDecodeError as error:
        raise _damaged(name, "it is not text") from error


def _damaged(name: str, why: str) -> InvalidInputError:
    return InvalidInputError(f"{name} is damaged: {why}")


def _read_record(experiment: Experiment, text: str) -> dict[str, Any]:
    name = f"{experiment.name}.json"
    try:
        record = json.loads(text)
    except ValueError as error:
        raise _damaged(name, str(error)) from error
    if not isinstance(record, dict):
        raise _damaged(name, "it is not a record")
    missing = [key for key in _RECORD if key not in record]
    if missing:
        raise _damaged(name, f"it lacks {', '.join(missing)}")
    if record["experiment"] != experiment.name:
        raise InvalidInputError(f"{name} is the record of {record['experiment']}")
    return {key: value for key, value in record.items() if key != "findings"}


def _join(experiment: Experiment, tables: Mapping[str, str]) -> Table:
    """The rows of all CSV files; those of the same place have the same keys."""
    rows: list[dict[str, Any]] = []
    for name, columns in _files(experiment).items():
        found = _parse(name, tables[name], columns)
        if not rows:
            rows = found.rows
            continue
        keys = (
            [{k: row.get(k) for k in experiment.keys} for row in side] for side in (rows, found)
        )
        one, other = keys
        if one != other:
            raise InvalidInputError(
                f"{experiment.name}.csv and {name} are of different runs: their columns "
                f"{', '.join(experiment.keys)} differ"
            )
        rows = [{**row, **more} for row, more in zip(rows, found, strict=True)]
    return Table(rows)


def _parse(name: str, text: str, columns: tuple[str, ...]) -> Table:
    heads = text.partition("\n")[0].split(",")
    missing = [column for column in columns if column not in heads]
    if missing:
        raise InvalidInputError(
            f"{name} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}: measure "
            "the experiment again"
        )
    try:
        return Table.from_csv(text)
    except (ValueError, csv.Error) as error:
        raise _damaged(name, str(error)) from error
