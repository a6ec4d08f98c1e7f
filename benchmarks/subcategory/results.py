"""What was measured, kept in a file, so that a long series can be stopped and taken up again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Array
from benchmarks.measure import show_table

__all__ = ["Results", "Summary", "Values"]

Values = dict[str, float]


class Results:
    """A file of lines, one per run: its setting and the numbers that were measured.

    A setting that is there already is not measured again: delete the file after a change of the
    code that is measured. Without a folder nothing is kept.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._known: dict[str, Values] = {}
        self._folder = folder
        self._path = None if folder is None else folder / "results.jsonl"
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._read(self._path)

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        text = path.read_text()
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                # Stopped in the middle of writing; it will be measured again.
                continue
            self._known[_key(record["setting"])] = record["values"]
        if text and not text.endswith("\n"):
            path.write_text(text + "\n")

    def __len__(self) -> int:
        return len(self._known)

    def of(self, setting: Mapping[str, Any], measure: Callable[[], Values]) -> Values:
        """The numbers of a setting: those kept, or measured now, printed and kept."""
        key = _key(setting)
        if key not in self._known:
            self._known[key] = measure()
            self._keep(setting, self._known[key])
            # The first few numbers show how it goes; a curve has dozens.
            some = [*self._known[key].items()][:6]
            shown = ", ".join(f"{name} {value:.5g}" for name, value in some)
            print(f"{', '.join(f'{k} {v}' for k, v in setting.items())}: {shown}", flush=True)
        return self._known[key]

    def show(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        notes: Sequence[str] = (),
    ) -> None:
        """Print a table and notes on it, and keep them in Markdown beside the runs."""
        show_table(title, columns, rows)
        print(*notes, sep="\n", flush=True)
        if self._folder is not None:
            name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
            (self._folder / f"{name}.md").write_text(_markdown(title, columns, rows, notes))

    def _keep(self, setting: Mapping[str, Any], values: Values) -> None:
        if self._path is None:
            return
        with self._path.open("a") as file:
            file.write(json.dumps({"setting": dict(setting), "values": values}) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _markdown(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str]
) -> str:
    def line(cells: Sequence[object]) -> str:
        shown = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells)
        return f"| {' | '.join(shown)} |"

    rule = "|---" * len(columns) + "|"
    items = [f"- {note}" for note in notes]
    return "\n".join([title, "", line(columns), rule, *map(line, rows), "", *items, ""])


def _key(setting: Mapping[str, Any]) -> str:
    return json.dumps(setting, sort_keys=True)


@dataclass(frozen=True)
class Summary:
    """Runs with different seeds."""

    runs: tuple[Values, ...]

    def each(self, name: str) -> Array:
        """One number of every run."""
        return np.array([run[name] for run in self.runs])

    def mean(self, name: str) -> float:
        """Mean over seeds."""
        return float(self.each(name).mean())

    def deviation(self, name: str) -> float:
        """Standard deviation over seeds; 0 for a single one."""
        return float(self.each(name).std(ddof=1)) if len(self.runs) > 1 else 0.0

    def percent(self, name: str = "accuracy") -> str:
        """Mean and deviation in percent, for a table."""
        return f"{100 * self.mean(name):.2f} ± {100 * self.deviation(name):.2f}"
