"""Finished runs on disk, so that an interrupted experiment can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evergrow.research.experiments.table import Row


class RunCache:
    """A file with one line of JSON per finished run: its setting and its rows.

    A truncated line, as after a power failure, is ignored: its run is measured again.
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
            # The next run starts on a line of its own.
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def get(self, setting: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """Rows of a run, or None if it is not in the cache."""
        return self._rows.get(_key(setting))

    def add(self, setting: Mapping[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Write a finished run to disk and return its rows as they will be read back."""
        content = {"setting": dict(setting), "rows": [dict(row) for row in rows]}
        # NumPy scalars become Python numbers.
        line = json.dumps(content, default=lambda value: value.item())
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        found: list[dict[str, Any]] = json.loads(line)["rows"]
        self._rows[_key(setting)] = found
        return found

    def clear(self) -> None:
        """Remove every run."""
        self._rows.clear()
        self._path.unlink(missing_ok=True)


def _key(setting: Mapping[str, Any]) -> str:
    return json.dumps(dict(setting), sort_keys=True)
