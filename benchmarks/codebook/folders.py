"""Folders of photographs: five classes, then four more."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.codebook.pictures import as_jpeg, pictures
from benchmarks.measure import Figure, report, show_table
from evergrow import ImageClassifier
from evergrow.research.papers.nips2006.photographs import Photographs
from evergrow.vision import find_labelled

LEARNERS = ("rls", "forest")


def run(quick: bool) -> None:
    """Fit on the first folders, add the others, compare with fitting all at once."""
    data = pictures(quick)
    names = [str(name) for name in np.unique(data.classes)]
    first = names[: (5 * len(names) + 8) // 9]
    rows, figures = [], []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write(data, root, first)
        for learner in LEARNERS:
            grown, whole, seconds = _grown_and_whole(root, learner)
            rows.append((learner, *(100 * a for a in (grown, whole)), *seconds))
            # A forest of so few pictures is fitted in the time an update takes to begin.
            bar = 10 if learner == LEARNERS[0] else None
            figures += [
                Figure(f"{learner}: added minus fitted at once, points", 100 * (grown - whole), -1),
                Figure(f"{learner}: fitting all / the update", seconds[2] / seconds[1], bar),
            ]
    show_table(
        f"{len(first)} folders, then {len(names) - len(first)} more; seconds of learning alone",
        ["learner", "added, %", "at once, %", "fit, s", "update, s", "fit of all, s"],
        rows,
    )
    report("codebook", data.name, figures, bars=not quick)


def _write(data: Photographs, root: Path, first: list[str]) -> None:
    for number, (image, name) in enumerate(zip(data.images, data.classes, strict=True)):
        part = ("first" if name in first else "more") if data.trains[number] else "test"
        place = root / part / str(name)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.jpg").write_bytes(as_jpeg(image))
    shutil.copytree(root / "first", root / "all")
    shutil.copytree(root / "more", root / "all", dirs_exist_ok=True)


def _grown_and_whole(root: Path, learner: str) -> tuple[float, float, tuple[float, float, float]]:
    """Accuracies of both, and the seconds of learning itself."""
    grown, whole = (ImageClassifier(learner=learner, random_state=0) for _ in range(2))
    first = _learning(grown.fit(root / "first"))
    update = _learning(grown.partial_fit(root / "more"))
    everything = _learning(whole.fit(root / "all"))
    test = find_labelled(root / "test")
    accuracies = [model.score(test.paths, test.labels) for model in (grown, whole)]
    return accuracies[0], accuracies[1], (first, update, everything)


def _learning(model: ImageClassifier) -> float:
    report = model.report_
    assert report is not None
    return report.seconds_learning
