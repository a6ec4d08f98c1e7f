"""Folders of photographs on the command line: five classes, then four more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.codebook.protocol import Photographs, photographs
from benchmarks.measure import Figure, report, show_table

__all__ = ["run"]

LEARNERS = ("rls", "forest")


def run(quick: bool) -> None:
    """Fit on the first folders, add the others, compare with fitting all at once."""
    data = photographs(quick)
    names = [str(name) for name in np.unique(data.classes)]
    first = names[: (5 * len(names) + 8) // 9]
    rows, figures = [], []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write(data, root, first)
        for learner in LEARNERS:
            grown, whole, seconds = _grown_and_whole(root, learner)
            rows.append((learner, *(100 * a for a in (grown, whole)), *seconds))
            figures += [
                Figure(f"{learner}: added minus fitted at once, points", 100 * (grown - whole), -1),
                Figure(f"{learner}: learning the first / the update", seconds[0] / seconds[1], 10),
            ]
    show_table(
        f"evergrow fit on {len(first)} folders, add on {len(names) - len(first)} more",
        ["learner", "added, %", "at once, %", "fit, s", "update, s", "fit of all, s"],
        rows,
    )
    report("codebook", data.name, figures, bars=not quick)


def _write(data: Photographs, root: Path, first: list[str]) -> None:
    from PIL import Image

    for number, (image, name) in enumerate(zip(data.images, data.classes, strict=True)):
        part = ("first" if name in first else "more") if data.trains[number] else "test"
        place = root / part / str(name)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number}.jpg", quality=90)
    shutil.copytree(root / "first", root / "all")
    shutil.copytree(root / "more", root / "all", dirs_exist_ok=True)


def _grown_and_whole(root: Path, learner: str) -> tuple[float, float, tuple[float, float, float]]:
    """Accuracies of both, and the seconds of learning itself."""
    grown, whole = str(root / f"grown-{learner}.evergrow"), str(root / f"whole-{learner}.evergrow")
    options = ["--learner", learner, "--seed", "0"]
    fitted = _evergrow(root, "fit", str(root / "first"), "-o", grown, *options)
    added = _evergrow(root, "add", grown, str(root / "more"))
    at_once = _evergrow(root, "fit", str(root / "all"), "-o", whole, *options)
    seconds = tuple(float(answer["seconds_learning"]) for answer in (fitted, added, at_once))
    accuracies = [
        float(_evergrow(root, "evaluate", model, str(root / "test"))["accuracy"])
        for model in (grown, whole)
    ]
    return accuracies[0], accuracies[1], (seconds[0], seconds[1], seconds[2])


def _evergrow(root: Path, *arguments: str) -> dict[str, Any]:
    """Run a command as a user does and read what it says as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "evergrow", *arguments, "--json"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "EVERGROW_CACHE": str(root / "cache")},
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
