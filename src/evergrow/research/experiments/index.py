"""The list of what a folder of results holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from evergrow.foundation.atomic import written_whole
from evergrow.research.experiments.catalogue import PAPERS, Paper

__all__ = ["write_index"]

_INTRODUCTION = """# Results

Every table and figure of the papers that was measured, beside what the paper says of it. A claim
agrees, differs, or cannot be decided on these data."""

# What a reader must know of a result beside its verdicts.
_MARKS = {"quick": "**a quick run**", "own_data": "on your own data"}


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
        content = _read(record)
        if content is None:
            continue
        agrees = [finding["agrees"] for finding in content["findings"]]
        counts = (agrees.count(True), agrees.count(False), agrees.count(None))
        said = "".join(f", {word}" for key, word in _MARKS.items() if content.get(key))
        lines.append(f"| [{title}]({name}.md){said} | {' | '.join(map(str, counts))} |")
        found.append(name)
    return lines if len(lines) > 2 else []


def _differing(folder: Path, names: list[str]) -> list[str]:
    """Every claim that was not found again, so that nobody has to look for them."""
    return [
        f"- [{name}]({name}.md): {finding['claim']} {finding['here']}"
        for name in names
        for finding in (_read(folder / f"{name}.json") or {"findings": []})["findings"]
        if finding["agrees"] is False
    ]


def _read(record: Path) -> dict[str, Any] | None:
    """What is recorded of an experiment; None if the file is damaged."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        findings = [
            {key: finding[key] for key in ("claim", "here", "agrees")}
            for finding in content["findings"]
        ]
    except (ValueError, KeyError, TypeError):
        return None
    return {**content, "findings": findings}
