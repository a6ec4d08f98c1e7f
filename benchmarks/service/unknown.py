"""How many things of classes that were never taught are offered as new, at how many false alarms.

``python -m benchmarks.service.unknown FILE.svg`` draws the curve.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.data import Array, Split, mixture, object_features
from benchmarks.measure import Figure, report, show_table
from evergrow.workspace import Lesson, Workspace

__all__ = ["Outcome", "curve", "run"]

# Known classes, the others are never taught; and the random choices of them.
_N_KNOWN = 60
_SEEDS = range(3)
# Share of false alarms that the bar is set for, and those of the curve.
_PROMISED = 0.1
_PROMISES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)


@dataclass(frozen=True, eq=False)
class Outcome:
    """One choice of known classes: shares over the promised false alarms.

    Attributes
    ----------
    offered, alarms : ndarray of shape (n_promises,)
        Share of unknown things that are offered as new, and of known ones that are too.
    accuracy : float
        Share of known things that get the right name.
    measured : float or None
        False alarms that the workspace says there are, at the share it was made with.
    """

    offered: Array
    alarms: Array
    accuracy: float
    measured: float | None


def curve(split: Split, n_known: int, seed: int) -> Outcome:
    """Teach some of the classes to a workspace, then ask it about all."""
    classes = np.random.default_rng(seed).permutation(np.unique(split.y))[:n_known]
    taught, known = np.isin(split.y, classes), np.isin(split.y_test, classes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workspace"
        with Workspace.create(path, features=None, false_alarms=_PROMISED) as workspace:
            pairs = zip(split.X[taught], split.y[taught].tolist(), strict=True)
            workspace.teach([Lesson(row, f"class {label}") for row, label in pairs])
            found = workspace.assess()
            answers = workspace.predict(split.X_test)
    if found is None or found.limits is None:
        raise RuntimeError("too few examples to tell what is unknown")
    novelty = np.array([answer.novelty for answer in answers])
    calibration = found.limits.calibration(found.limits.class_ids, _PROMISED)
    # At the share it was made with, what it says itself.
    refused = np.array(
        [
            [not answer.known for answer in answers]
            if promised == _PROMISED
            else novelty > calibration.level(promised)
            for promised in _PROMISES
        ]
    )
    labels = np.array([answer.label for answer in answers])
    right = labels == np.array([f"class {label}" for label in split.y_test.tolist()])
    return Outcome(
        refused[:, ~known].mean(axis=1),
        refused[:, known].mean(axis=1),
        float(right[known].mean()),
        found.measured_false_alarms,
    )


def run(quick: bool) -> None:
    """Caltech features with 60 known classes carry the bar."""
    outcomes, name = _outcomes(quick)
    offered = 100 * np.mean([outcome.offered for outcome in outcomes], axis=0)
    alarms = 100 * np.mean([outcome.alarms for outcome in outcomes], axis=0)
    rows = [
        (f"{100 * promised:g} %", float(alarms[i]), float(offered[i]))
        for i, promised in enumerate(_PROMISES)
    ]
    show_table(
        f"service: the unknown, {name}, mean of {len(outcomes)} choices of classes",
        ["false alarms promised", "false alarms %", "offered as unknown %"],
        rows,
    )
    place = _PROMISES.index(_PROMISED)
    measured = [outcome.measured for outcome in outcomes if outcome.measured is not None]
    figures = [
        Figure("unknown things offered as unknown %", float(offered[place]), 75),
        Figure("false alarms %, promised 10", float(alarms[place])),
        Figure("false alarms % as the workspace measures them", 100 * float(np.mean(measured))),
        Figure("accuracy % on known things", 100 * float(np.mean([o.accuracy for o in outcomes]))),
    ]
    report("service", name, figures, bars=not quick)


def _outcomes(quick: bool) -> tuple[list[Outcome], str]:
    split, n_known = object_features(), _N_KNOWN
    if quick:
        split, n_known = mixture(2000, 64, 40, n_test=2000), 20
    return [curve(split, n_known, seed) for seed in _SEEDS], f"{split.name}, {n_known} known"


@click.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--quick", is_flag=True, help="Small generated data, to try the drawing.")
def main(path: Path, quick: bool) -> None:
    """Measure and draw the curve into the SVG file PATH."""
    import matplotlib.pyplot as plt

    from evergrow.drawing import BLUE, ORANGE, STYLE

    outcomes, name = _outcomes(quick)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(4.4, 3.0))
        for outcome in outcomes:
            axes.plot(100 * outcome.alarms, 100 * outcome.offered, ".-", color=BLUE, alpha=0.4)
        means = [
            100 * np.mean([getattr(outcome, part) for outcome in outcomes], axis=0)
            for part in ("alarms", "offered")
        ]
        axes.plot(*means, "o-", color=BLUE, label="mean of three choices of classes")
        place = _PROMISES.index(_PROMISED)
        axes.plot(means[0][place], means[1][place], "s", color=ORANGE, label="10 % promised")
        axes.set(
            xlabel="known things called unknown (%)",
            ylabel="unknown things called unknown (%)",
            title=name,
            ylim=(0, 100),
        )
        axes.legend(loc="lower right")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
