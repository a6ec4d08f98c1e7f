"""The list of what a folder of results holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from evergrow.experiments.catalogue import PAPERS, Paper
from evergrow.files import written_whole

__all__ = ["write_index"]

_INTRODUCTION = """# Results

Every table and figure of the papers that was measured, beside what the paper says of it. A claim
agrees, differs, or cannot be decided on these data."""


def write_index(folder: str | os.PathLike[str]) -> Path:
    """Write ``index.md`` over the experiments whose results lie in a folder."""
    target = Path(folder)
    parts = [_INTRODUCTION]
    found: list[str] = []
    for paper in PAPERS:
        lines = _lines(paper, target, found)
        if lines:
            parts += [f"## {paper.citation}", "\n".join(lines)]
    differing = _differing(target, found)
    if differing:
        parts += ["## Where it differs", "\n".join(differing)]
    parts.append("\n".join(["```{toctree}", ":hidden:", "", *found, "```"]))
    with written_whole(target / "index.md") as file:
        file.write(("\n\n".join(parts) + "\n").encode())
    return target / "index.md"


def _lines(paper: Paper, folder: Path, found: list[str]) -> list[str]:
    lines = ["| | agrees | differs | open |", "|---|---|---|---|"]
    for name in paper.names:
        page, record = folder / f"{name}.md", folder / f"{name}.json"
        if not (page.exists() and record.exists()):
            continue
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        agrees = [f["agrees"] for f in _findings(record)]
        counts = (agrees.count(True), agrees.count(False), agrees.count(None))
        lines.append(f"| [{title}]({name}.md) | {' | '.join(map(str, counts))} |")
        found.append(name)
    return lines if len(lines) > 2 else []


def _differing(folder: Path, names: list[str]) -> list[str]:
    """Every claim that was not found again, so that nobody has to look for them."""
    return [
        f"- [{name}]({name}.md): {finding['claim']} {finding['here']}"
        for name in names
        for finding in _findings(folder / f"{name}.json")
        if finding["agrees"] is False
    ]


def _findings(record: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(record.read_text(encoding="utf-8"))["findings"]
    return found
