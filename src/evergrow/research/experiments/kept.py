"""Runs that are done, kept on disk, so that an experiment can be stopped and taken up again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evergrow.research.experiments.table import Row

__all__ = ["KeptRuns"]


class KeptRuns:
    """A file with one line of JSON per finished run: its setting and its rows.

    A line that was cut short, as by a loss of power, is dropped: its run is done again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, list[dict[str, Any]]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read()

    def _read(self) -> None:
        text = self._path.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            try:
                record = json.loads(line)
                self._rows[_key(record["setting"])] = [dict(row) for row in record["rows"]]
            except (ValueError, KeyError, TypeError):
                continue
        if text and not text.endswith("\n"):
            # What follows begins a line of its own.
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def find(self, setting: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """The rows of a run, or None if it is not done."""
        return self._rows.get(_key(setting))

    def keep(self, setting: Mapping[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Write a finished run to disk; gives its rows as they will be read back."""
        content = {"setting": dict(setting), "rows": [dict(row) for row in rows]}
        line = json.dumps(content, default=_plain)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        found: list[dict[str, Any]] = json.loads(line)["rows"]
        self._rows[_key(setting)] = found
        return found

    def drop(self) -> None:
        """Forget every run."""
        self._rows.clear()
        self._path.unlink(missing_ok=True)


def _key(setting: Mapping[str, Any]) -> str:
    return json.dumps(dict(setting), sort_keys=True)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item()
