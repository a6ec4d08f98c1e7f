"""Timing, child processes, this machine's speed, and the form in which figures are printed."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

THREADS = 2

# What was shown since the last `take_records`: the content of a result file.
_tables: list[dict[str, object]] = []
_figures: list[dict[str, object]] = []

# Calls a function named by its module and prints its result as the last line.
_CHILD = """
import importlib, json, sys
module, _, name = sys.argv[1].partition(":")
print(json.dumps(getattr(importlib.import_module(module), name)(*json.loads(sys.argv[2]))))
"""


@dataclass(frozen=True)
class Figure:
    """One measured number, with the bar it must meet if there is one."""

    name: str
    value: float
    bar: float | None = None
    sense: Literal["at least", "at most"] = "at least"

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None without a bar."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.sense == "at least" else self.value <= self.bar


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


def start_child(function: str, *arguments: object) -> subprocess.Popen[str]:
    """Begin to call ``"package.module:function"`` in a process of its own."""
    command = [sys.executable, "-c", _CHILD, function, json.dumps(arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def call_in_child(function: str, *arguments: object) -> Any:
    """Result of a call in a process of its own, whose memory nothing else has raised."""
    process = start_child(function, *arguments)
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{function} ended with exit code {process.returncode}")
    return json.loads(output.splitlines()[-1])


def sgemm_rate(threads: int = THREADS, size: int = 4096) -> float:
    """Single-precision operations per second of a large matrix product: the roofline."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    with threadpool_limits(threads):
        np.matmul(a, b, out=out)
        return 2.0 * size**3 / median_seconds(lambda: np.matmul(a, b, out=out), 5)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table for people, and record it."""
    _tables.append({"title": title, "columns": [*columns], "rows": [_plain(row) for row in rows]})
    _print_table(title, columns, rows)


def take_records() -> dict[str, list[dict[str, object]]]:
    """Return the tables and figures recorded since the last call."""
    records = {"tables": [*_tables], "figures": [*_figures]}
    _tables.clear()
    _figures.clear()
    return records


def _plain(row: Sequence[object]) -> list[object]:
    """Make the cells of a row fit for JSON, numbers to six digits."""
    cells = (cell.item() if isinstance(cell, np.generic) else cell for cell in row)
    return [
        float(f"{cell:.6g}")
        if isinstance(cell, float)
        else cell
        if isinstance(cell, int | str | None)
        else str(cell)
        for cell in cells
    ]


def _print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    table = Table(title=title)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=110).print(table)


def report(benchmark: str, data: str, figures: Sequence[Figure], *, bars: bool = True) -> None:
    """Print and record the figures, one JSON line each; bars are for full runs only."""
    if not bars:
        figures = [replace(figure, bar=None) for figure in figures]
    rows = [
        (
            figure.name,
            figure.value,
            "" if figure.bar is None else f"{figure.sense} {figure.bar:g}",
            {None: "", True: "met", False: "MISSED"}[figure.met],
        )
        for figure in figures
    ]
    _print_table(f"{benchmark}: {data}", ["figure", "value", "bar", ""], rows)
    for figure in figures:
        line: dict[str, object] = {"benchmark": benchmark, "data": data, "figure": figure.name}
        line |= {"value": float(f"{figure.value:.6g}"), "sense": figure.sense}
        line |= {"bar": figure.bar, "met": figure.met}
        _figures.append(line)
        print(json.dumps(line), flush=True)
