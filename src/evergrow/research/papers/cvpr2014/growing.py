"""The paper's protocol: a few classes to begin with, then one after another, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.research.datasets import Dataset
from evergrow.research.experiments.experiment import Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.streams import ClassStream, Learner, Measured, Retrained, follow

__all__ = [
    "BASELINE",
    "MEASURES",
    "N_TREES",
    "N_TREES_QUICK",
    "STRATEGIES",
    "baseline_run",
    "follow_run",
    "forest",
    "measure_in_sweep",
    "measure_strategy",
    "points",
    "relative_to_baseline",
    "retrained",
    "rows_of",
    "stream_of",
]

N_TREES = 50
N_TREES_QUICK = 10

BASELINE = "retrained"
# From the least to the most that changes in a tree.
STRATEGIES = ("uls", "igt", "rust", "rtst")

# What tells rows of a baseline apart that knows no initial classes and no chunks.
BASELINE_KEYS = ("data", "strategy", "seed")
MEASURES = ("accuracy", "relative", "newest", "comparisons", "n_distances")


def forest(lab: Lab, seed: int, **parameters: Any) -> NCMForestClassifier:
    """The paper's forest: 50 trees, at least 10 samples in a leaf, square root of the classes."""
    n_trees = lab.scaled(N_TREES, N_TREES_QUICK)
    return NCMForestClassifier(n_trees, n_jobs=lab.n_jobs, random_state=seed, **parameters)


def retrained(lab: Lab, seed: int, **parameters: Any) -> Retrained:
    """The baseline: a forest trained from scratch on everything seen so far."""
    return Retrained(partial(forest, lab, seed, **parameters))


def points(initial: int, end: int, every: int) -> list[int]:
    """Numbers of classes to measure at: the first, round ones on the way, and the last.

    >>> points(3, 50, 20)
    [3, 20, 40, 50]
    """
    between = [n for n in range(every, end, every) if n > initial]
    return [*dict.fromkeys((initial, *between, end))]


def stream_of(run: Run) -> ClassStream:
    """The stream that a run asks for."""
    return ClassStream(
        run["initial"],
        run.get("chunk", 1),
        n_classes=run["end"],
        measure_at=run["at"],
        random_state=run["seed"],
    )


def baseline_run(data: str, seed: int, at: Sequence[int]) -> Run:
    """A run of the forest that is trained from scratch at so many classes, and only there."""
    place = {"initial": at[0], "end": at[-1], "at": [*at]}
    return {"data": data, "strategy": BASELINE, **place, "seed": seed}


def follow_run(
    lab: Lab,
    run: Run,
    learner: Learner,
    *,
    ask: Literal["always", "measured"] = "measured",
    data: Dataset | None = None,
) -> list[Measured]:
    """Take a learner through the stream of a run, on its data set or on another."""
    chosen = lab.dataset(run["data"]) if data is None else data
    return [*follow(learner, chosen, stream_of(run), ask=ask)]


def measure_strategy(
    lab: Lab,
    run: Run,
    keys: Sequence[str],
    *,
    ask: Literal["always", "measured"] = "measured",
    data: Dataset | None = None,
) -> list[Row]:
    """Follow a run's stream with its strategy and parameters; rows of what was measured."""
    strategy, seed, parameters = run["strategy"], run["seed"], run.get("parameters", {})
    if strategy == BASELINE:
        learner: Learner = retrained(lab, seed, **parameters)
    else:
        learner = forest(lab, seed, update=strategy, **parameters)
    measured = follow_run(lab, run, learner, ask=ask, data=data)
    return rows_of(run, keys, measured, timed=strategy != BASELINE or ask == "always")


def measure_in_sweep(lab: Lab, run: Run, keys: Sequence[str], **options: Any) -> list[Row]:
    """The same where one baseline stands beside every setting, and bears the keys of none."""
    shared = BASELINE_KEYS if run["strategy"] == BASELINE else keys
    return measure_strategy(lab, run, shared, **options)


def rows_of(
    run: Run, keys: Sequence[str], measured: Iterable[Measured], *, timed: bool = True
) -> list[Row]:
    """Rows of one learner: what the run says of it, and what was measured.

    Seconds are processor time of all threads. A baseline that trained only where it was measured
    has no total time to speak of.
    """
    told = {key: run[key] for key in keys if key in run}
    return [
        {
            **told,
            "n_classes": m.n_classes,
            "accuracy": m.accuracy,
            "newest": m.newest,
            "comparisons": m.comparisons,
            "n_distances": m.n_distances if timed else None,
            "seconds": m.cpu_seconds if timed else None,
        }
        for m in measured
    ]


def relative_to_baseline(table: Table) -> Table:
    """Add each row's accuracy as a share of the retrained forest's on the same classes."""
    known = {_place(row): row["accuracy"] for row in table if row["strategy"] == BASELINE}
    return Table({**row, "relative": _share(row["accuracy"], known, _place(row))} for row in table)


def _place(row: Row) -> tuple[Any, ...]:
    return row["data"], row["seed"], row["n_classes"]


def _share(accuracy: float, known: dict[tuple[Any, ...], float], place: tuple[Any, ...]) -> float:
    baseline = known.get(place, np.nan)
    return accuracy / baseline if baseline else float("nan")
