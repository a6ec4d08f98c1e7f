"""How many examples of unknown classes are predicted as unknown, at which false alarms."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.data import Array, Split, mixture, object_features
from benchmarks.linear.rejection import known_classes
from benchmarks.measure import Figure, report, show_table
from evergrow.workspace import NewExample, Workspace

# Share of false alarms that the bar is set for, and those of the curve.
_PROMISED = 0.1
_PROMISES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)


def run(quick: bool) -> None:
    """Caltech features with 60 known classes carry the bar; mean of three choices of them."""
    split, n_known = (mixture(2000, 64, 40, n_test=2000), 20) if quick else (object_features(), 60)
    found = [_curve(split, n_known, seed) for seed in range(3)]
    offered, alarms = (100 * np.mean([curves[i] for curves, _ in found], axis=0) for i in (0, 1))
    title = f"{split.name}, {n_known} known"
    show_table(
        f"service: the unknown, {title}",
        ["false alarms promised", "false alarms %", "offered as unknown %"],
        [
            (f"{100 * promised:g} %", float(alarms[i]), float(offered[i]))
            for i, promised in enumerate(_PROMISES)
        ],
    )
    place = _PROMISES.index(_PROMISED)
    accuracy = 100 * float(np.mean([right for _, right in found]))
    figures = [
        Figure("unknown things offered as unknown %", float(offered[place]), 75),
        Figure("false alarms %, promised 10", float(alarms[place])),
        Figure("accuracy % on known things", accuracy),
    ]
    report("service", title, figures, bars=not quick)


def _curve(split: Split, n_known: int, seed: int) -> tuple[Array, float]:
    """Shares of unknown and of known things offered as new, and of known ones named rightly."""
    taught, known = known_classes(split, n_known, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workspace"
        with Workspace.create(path, features=None, false_alarms=_PROMISED) as workspace:
            pairs = zip(split.X[taught], split.y[taught].tolist(), strict=True)
            workspace.teach([NewExample(row, f"class {label}") for row, label in pairs])
            found = workspace.assess()
            answers = workspace.predict(split.X_test)
    if found is None or found.limits is None:
        raise RuntimeError("too few examples to tell what is unknown")
    novelty = np.array([answer.novelty for answer in answers])
    calibration = found.limits.calibration(found.limits.class_ids, _PROMISED)
    refused = np.array([novelty > calibration.level(promised) for promised in _PROMISES])
    # At the share it was made with, what it says itself.
    refused[_PROMISES.index(_PROMISED)] = [not answer.known for answer in answers]
    labels = np.array([answer.top[0][0] for answer in answers])
    right = labels == np.array([f"class {label}" for label in split.y_test.tolist()])
    shares = np.array([refused[:, ~known].mean(axis=1), refused[:, known].mean(axis=1)])
    return shares, float(right[known].mean())
