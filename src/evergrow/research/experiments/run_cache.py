"""Finished runs on disk, so that an interrupted experiment can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evergrow.research.experiments.table import Row


@dataclass(frozen=True)
class CachedRun:
    """The rows of a run, and how it was measured: seconds, workers and environment, if known."""

    rows: list[dict[str, Any]]
    about: dict[str, Any]


class RunCache:
    """A file with one line of JSON per finished run: its setting, its rows and how it was measured.

    A truncated line, as after a power failure, is ignored: its run is measured again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runs: dict[str, CachedRun] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read()

    def _read(self) -> None:
        text = self._path.read_text(encoding="utf-8", errors="replace")
        for line in text.splitlines():
            try:
                record = json.loads(line)
                self._runs[_key(record["setting"])] = _cached_run(record)
            except (ValueError, KeyError, TypeError):
                continue
        if text and not text.endswith("\n"):
            # The next run starts on a line of its own.
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def get(self, setting: Mapping[str, Any]) -> CachedRun | None:
        """A finished run, or None if it is not in the cache."""
        return self._runs.get(_key(setting))

    def add(
        self,
        setting: Mapping[str, Any],
        rows: Sequence[Row],
        **about: Any,
    ) -> CachedRun:
        """Write a finished run to disk and return it as it will be read back.

        ``about`` says how it was measured, as plain values.
        """
        content = {"setting": dict(setting), "rows": [dict(row) for row in rows], **about}
        # NumPy scalars become Python numbers.
        line = json.dumps(content, default=lambda value: value.item())
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        found = _cached_run(json.loads(line))
        self._runs[_key(setting)] = found
        return found

    def clear(self) -> None:
        """Remove every run."""
        self._runs.clear()
        self._path.unlink(missing_ok=True)


def _key(setting: Mapping[str, Any]) -> str:
    return json.dumps(dict(setting), sort_keys=True)


def _cached_run(record: Mapping[str, Any]) -> CachedRun:
    rows = [dict(row) for row in record["rows"]]
    about = {name: record[name] for name in record if name not in ("setting", "rows")}
    return CachedRun(rows, about)
