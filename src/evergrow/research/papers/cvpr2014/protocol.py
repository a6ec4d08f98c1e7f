"""The paper's protocol: data sets, forests, and streams that start with a few classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from evergrow.estimators.forest import NCMForestClassifier
from evergrow.foundation.errors import InvalidInputError
from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, mixture
from evergrow.research.papers.cvpr2014 import plots
from evergrow.research.papers.settings import NCM_TREES
from evergrow.research.streams import ClassStream, Learner, Measured, Retrained, follow

N_TREES, N_TREES_QUICK = 50, 10
BASELINE = "retrained"
# In the order of how much of a tree they change.
STRATEGIES = ("uls", "igt", "rust", "rtst")
# A baseline does not depend on initial classes and chunks.
BASELINE_KEYS = ("data", "strategy", "seed")
MEASURES = ("accuracy", "relative", "newest", "comparisons", "n_distances")

NOTES = (
    "The data are CIFAR-100 (100 classes of 500 training and 100 test images) instead of ILSVRC "
    "2010, which is not freely available. `features` are 256 numbers per image from a network "
    "trained on ImageNet, which are far stronger than the paper's features. `visual words` are "
    "square roots of counts of 1000 visual words, the paper's kind of features. Without the data "
    "files, both are generated mixtures of Gaussians.",
    "Every seed has another random order of the classes; the paper has one fixed order.",
)


def _check_features(data: Dataset) -> Dataset:
    if data.X_train.ndim != 2:
        raise InvalidInputError(
            f"{data.name!r} is not a table of features: these experiments need an .npz file with "
            "one row of numbers per sample"
        )
    return data


def _take_square_roots(data: Dataset) -> Dataset:
    """Square roots of counts of visual words, whose noise grows with the counts."""
    found = _check_features(data)
    return replace(found, X_train=np.sqrt(found.X_train), X_test=np.sqrt(found.X_test))


def _mixture() -> Dataset:
    return mixture(100, 48, n_train=40, n_test=20, distance=0.45)


SOURCES = {
    "features": ex.Source("cifar100_efflite0_pca256.npz", _mixture, _check_features),
    "words": ex.Source("cifar100_words1000.npz", _mixture, _take_square_roots),
}


def data_names(context: ex.ExperimentContext, *names: str) -> tuple[str, ...]:
    """The named data sets whose files exist; the first data set if there are none."""
    known = [name for name in names if name in context.names]
    real = tuple(name for name in known if not context.is_built_in(name))
    return real or (context.names[0],)


def last_class(context: ex.ExperimentContext, name: str, wanted: int) -> int:
    """Number of classes at the end of a stream: as many as wanted, or all that there are."""
    return min(wanted, len(context.dataset(name).classes))


def initials(
    context: ex.ExperimentContext, name: str, wanted: Sequence[int], end: int, *, to_come: int = 1
) -> list[int]:
    """The numbers of initial classes that leave at least ``to_come`` classes to add."""
    found = [n for n in wanted if n + to_come <= end]
    if not found:
        raise InvalidInputError(
            f"{context.dataset(name).name!r} has {end} classes; this experiment begins with "
            f"{min(wanted)} and needs at least {min(wanted) + to_come}"
        )
    return found


def forest(context: ex.ExperimentContext, seed: int, **parameters: Any) -> NCMForestClassifier:
    """The paper's forest: 50 trees, at least 10 samples in a leaf, square root of the classes."""
    n_trees = context.scaled(N_TREES, N_TREES_QUICK)
    given = {**NCM_TREES, **parameters}
    return NCMForestClassifier(n_trees, n_jobs=context.n_jobs, random_state=seed, **given)


def retrained(context: ex.ExperimentContext, seed: int, **parameters: Any) -> Retrained:
    """The baseline: a forest trained from scratch on all classes seen so far."""
    return Retrained(partial(forest, context, seed, **parameters))


def points(initial: int, end: int, every: int) -> list[int]:
    """Numbers of classes to measure at: the first, multiples of ``every``, and the last.

    >>> points(3, 50, 20)
    [3, 20, 40, 50]
    """
    between = [n for n in range(every, end, every) if n > initial]
    return [*dict.fromkeys((initial, *between, end))]


def baseline_run(data: str, seed: int, at: Sequence[int]) -> ex.Run:
    """A run of the forest that is trained from scratch at these numbers of classes only."""
    place = {"initial": at[0], "end": at[-1], "at": [*at]}
    return {"data": data, "strategy": BASELINE, **place, "seed": seed}


def follow_run(
    context: ex.ExperimentContext,
    run: ex.Run,
    learner: Learner,
    *,
    ask: Literal["always", "measured"] = "measured",
    data: Dataset | None = None,
) -> list[Measured]:
    """Train a learner on the stream of a run, on its data set or on the given one."""
    stream = ClassStream(
        run["initial"],
        run.get("chunk", 1),
        n_classes=run["end"],
        measure_at=run["at"],
        random_state=run["seed"],
    )
    chosen = context.dataset(run["data"]) if data is None else data
    return [*follow(learner, chosen, stream, ask=ask)]


def measure_strategy(
    context: ex.ExperimentContext,
    run: ex.Run,
    keys: Sequence[str],
    *,
    ask: Literal["always", "measured"] = "measured",
    data: Dataset | None = None,
) -> list[ex.Row]:
    """Rows of a run's strategy and parameters on its stream."""
    strategy, seed, parameters = run["strategy"], run["seed"], run.get("parameters", {})
    if strategy == BASELINE:
        learner: Learner = retrained(context, seed, **parameters)
    else:
        learner = forest(context, seed, update=strategy, **parameters)
    measured = follow_run(context, run, learner, ask=ask, data=data)
    return rows_of(run, keys, measured, timed=strategy != BASELINE or ask == "always")


def measure_in_sweep(
    context: ex.ExperimentContext, run: ex.Run, keys: Sequence[str], **options: Any
) -> list[ex.Row]:
    """The same where all settings share one baseline, which has none of their keys."""
    shared = BASELINE_KEYS if run["strategy"] == BASELINE else keys
    return measure_strategy(context, run, shared, **options)


def rows_of(
    run: ex.Run, keys: Sequence[str], measured: Iterable[Measured], *, timed: bool = True
) -> list[ex.Row]:
    """Rows of one learner: the keys of the run, and what was measured.

    Seconds are CPU time of all threads. A baseline that was trained only where it was measured
    has no total time.
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


def relative_to_baseline(table: ex.Table) -> ex.Table:
    """Add the accuracy of each row relative to the retrained forest on the same classes."""

    def place(row: ex.Row) -> tuple[Any, ...]:
        return row["data"], row.get("n_train"), row["seed"], row["n_classes"]

    known = {place(row): row["accuracy"] for row in table if row["strategy"] == BASELINE}
    return ex.Table(
        {**row, "relative": row["accuracy"] / (known.get(place(row)) or np.nan)} for row in table
    )


def last_rows(table: ex.Table) -> Iterator[tuple[str, int, ex.Table]]:
    """For each data set: its name in sentences, the last number of classes, and the rows there."""
    for data in table.values("data"):
        chosen = table.where(data=data)
        end = max(chosen.values("n_classes"))
        yield plots.DATA_NAMES[data], end, chosen.where(n_classes=end)


def judge_last_rows(
    table: ex.Table,
    *,
    judges: Iterable[Callable[[ex.Table, str], ex.Finding]],
    where: str = "On {data}, {end} classes",
) -> list[ex.Finding]:
    """Findings on the last rows of each data set; ``where`` begins what was measured."""
    judging = [*judges]
    return ex.name_repeated(
        (data, judge(last, where.format(data=data, end=end)))
        for data, end, last in last_rows(table)
        for judge in judging
    )


# What the experiments of this paper have in common.
make_experiment = partial(ex.Experiment, sources=SOURCES, timed=("seconds",))
make_relative_experiment = partial(make_experiment, exact=MEASURES, complete=relative_to_baseline)
