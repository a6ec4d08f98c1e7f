"""Timing, child processes, this machine's speed, and the tables that a benchmark shows."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

THREADS = 2

# What was shown since the last `take_tables`: the content of a result file.
_tables: list[dict[str, Any]] = []

# Calls a function named by its module and prints its result as the last line.
_CHILD = """
import importlib, json, sys
module, _, name = sys.argv[1].partition(":")
print(json.dumps(getattr(importlib.import_module(module), name)(*json.loads(sys.argv[2]))))
"""


def median_seconds(
    work: Callable[[], Any], repeat: int = 3, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Median time of a few runs, by the wall clock unless told otherwise."""
    times = []
    for _ in range(repeat):
        start = clock()
        work()
        times.append(clock() - start)
    return statistics.median(times)


def cpu_seconds(work: Callable[[], Any], repeat: int = 1) -> float:
    """Median processor time of all threads, which other programs disturb least."""
    return median_seconds(work, repeat, time.process_time)


def call_in_child(function: str, *arguments: object) -> Any:
    """Result of ``"package.module:function"`` in a process whose memory nothing else has raised."""
    command = [sys.executable, "-c", _CHILD, function, json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{function} ended with exit code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def sgemm_rate(threads: int = THREADS, size: int = 4096) -> float:
    """Single-precision operations per second of a large matrix product: the roofline."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    with threadpool_limits(threads):
        np.matmul(a, b, out=out)
        return 2.0 * size**3 / median_seconds(lambda: np.matmul(a, b, out=out), 5)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, and record it."""
    shown = [[_plain(cell) for cell in row] for row in rows]
    _tables.append({"title": title, "columns": [*columns], "rows": shown})
    table = Table(title=title)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in shown:
        table.add_row(*(format_cell(cell) for cell in row))
    Console(width=110).print(table)


def show_figures(title: str, figures: Mapping[str, float]) -> None:
    """Print and record single numbers, as a table of names and values."""
    show_table(title, ["", "measured"], [*figures.items()])


def take_tables() -> list[dict[str, Any]]:
    """Return the tables recorded since the last call."""
    tables = [*_tables]
    _tables.clear()
    return tables


def to_markdown(record: Mapping[str, Any]) -> str:
    """The tables of a result file for the documentation, with machine and date."""
    parts = []
    for table in record["tables"]:
        rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
        lines = [f"| {' | '.join(format_cell(cell) for cell in row)} |" for row in rows]
        parts.append("\n".join([f"**{table['title']}**", "", *lines]))
    machine = record["machine"]
    run = f"python -m benchmarks {record['benchmark']} --only {record['part']}"
    where = f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}"
    # A note says what about stored results is not as the command measures today.
    note = f" {record['note']}" if "note" in record else ""
    parts.append(f"`{run}`: {where}; {record['date']}.{note}")
    return "\n\n".join(parts) + "\n"


def format_cell(cell: object) -> str:
    """A cell with four digits if it is a fraction, and all digits of larger numbers."""
    if isinstance(cell, float):
        return f"{cell:.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return "" if cell is None else str(cell).replace("|", "\\|")


def _plain(cell: object) -> object:
    """Make a cell fit for JSON, numbers to six digits."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, float):
        return float(f"{cell:.6g}")
    return cell if isinstance(cell, int | str | None) else str(cell)
