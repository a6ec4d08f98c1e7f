"""Learners trained on the same draw of labels, and rows of their accuracies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2015.data import samples, shown_name
from evergrow.research.papers.cvpr2015.learners import LEARNERS
from evergrow.research.papers.cvpr2015.levels import Draw, TwoLevels, draw

# A learner by name, the columns of its row, and its parameters.
Entry = tuple[str, ex.Row, Mapping[str, Any]]

# Runs that show what a claim depends on have this column; tables and figures leave them out.
CHECK = "check"

# Limits the time on birds, which needs the most epochs; CIFAR-100 stops earlier by itself.
_MAX_EPOCHS = 15


# Dimensions of the metric of low rank that explains verdicts on metrics.
LOW_RANK = 64


def methods(names: Iterable[str]) -> list[Entry]:
    """Learners with default parameters; the column "method" holds the name."""
    return [(name, {"method": name}, {}) for name in names]


def main_rows(table: ex.Table) -> ex.Table:
    """The rows of the table or figure itself, without those that only explain a verdict."""
    return ex.Table(row for row in table if CHECK not in row)


def on_main_rows(look: Callable[[ex.Table], ex.Seen]) -> Callable[[ex.Table], ex.Seen]:
    """The same judgement, without the rows that only explain a verdict."""
    return lambda table: look(main_rows(table))


def check_rows(table: ex.Table, check: Any) -> ex.Table:
    """The rows that explain a verdict."""
    return ex.Table(row for row in table if CHECK in row and row[CHECK] == check)


def checked(method: str, setting: str) -> str:
    """The name of a method in rows that explain a verdict, so that no table mixes them."""
    return f"{method}, {setting}"


def compare(
    context: ex.ExperimentContext,
    run: ex.Run,
    entries: Iterable[Entry],
    *,
    fine: float = 0.5,
    coarse: float = 0.5,
    metric: str = "none",
    rank: int | None = None,
) -> list[ex.Row]:
    """Rows of learners that are trained on the same samples and labels.

    ``fine`` and ``coarse`` are the shares of the samples with fine labels and with coarse labels
    only; ``metric`` names the part of them that a metric is learnt on, and ``rank`` the number of
    its dimensions, None for as many as the features have.
    """
    data, seed = samples(context, run), run["seed"]
    train, test = apply_metric(metric, draw(data, seed, fine, coarse), data, seed, rank)
    options: dict[str, Any] = {
        "n_trees": run["trees"],
        "seed": seed,
        "n_jobs": context.n_jobs,
        "has_metric": metric != "none",
    }
    name = shown_name(context, run["data"])
    return [
        {
            **run,
            "data": name,
            **own,
            **evaluate(learner, train, test, parameters=parameters, **options),
        }
        for learner, own, parameters in entries
    ]


def evaluate(
    name: str,
    train: Draw,
    data: TwoLevels,
    *,
    n_trees: int,
    seed: int,
    n_jobs: int,
    parameters: Mapping[str, Any] | None = None,
    has_metric: bool = False,
) -> dict[str, float]:
    """Accuracy on both levels, comparisons per tree and test sample, and seconds of training.

    As in the paper, accuracy is the mean over classes. With ``has_metric`` the learner keeps the
    scale of the features.
    """
    from sklearn.metrics import balanced_accuracy_score

    learner = LEARNERS[name]
    given = learner.keeping_scale(parameters or {}) if has_metric else (parameters or {})
    model = learner.make(n_trees, seed, n_jobs, **given)
    values = {"seconds": ex.time_call(learner.fit, model, train)}
    fine, coarse = learner.predict(model, data.X_test, data.parents)
    if fine is not None:
        values["accuracy"] = float(balanced_accuracy_score(data.fine_test, fine))
    values["coarse_accuracy"] = float(balanced_accuracy_score(data.coarse_test, coarse))
    if hasattr(model, "comparisons"):
        values["comparisons"] = float(model.comparisons(data.X_test))
    return values


def apply_metric(
    metric: str, train: Draw, data: TwoLevels, seed: int, rank: int | None = None
) -> tuple[Draw, TwoLevels]:
    """Transform training and test samples by a metric that is learnt on a part of the draw."""
    from evergrow import NCMMetric

    if metric == "none":
        return train, data
    rows, labels = METRIC_PARTS[metric](train)
    rank = None if rank is None else min(rank, train.X.shape[1])
    learner = NCMMetric(n_components=rank, max_iter=_MAX_EPOCHS, random_state=seed)
    learnt = learner.fit(train.X[rows], labels[rows])
    return (
        replace(train, X=learnt.transform(train.X)),
        replace(data, X_test=learnt.transform(data.X_test)),
    )


# The samples that a metric is learnt from, and their labels.
METRIC_PARTS: dict[str, Callable[[Draw], tuple[Array, Array]]] = {
    "coarse": lambda train: (~train.known, train.coarse),
    "fine": lambda train: (train.known, train.fine),
    "all": lambda train: (np.ones(len(train.fine), dtype=bool), train.fine),
}


def published_rows(
    numbers: Mapping[str, Sequence[float]], settings: Sequence[ex.Row], column: str = "accuracy"
) -> list[ex.Row]:
    """Percentages of a published table as rows: a line per method, a setting per column."""
    return [
        {"method": method, **setting, column: round(value / 100, 6)}
        for method, line in numbers.items()
        for setting, value in zip(settings, line, strict=True)
    ]


def relative_to(
    rows: Iterable[ex.Row], baseline: ex.Row, within: Sequence[str], column: str = "accuracy"
) -> list[ex.Row]:
    """Add "relative": a column divided by its value in the baseline.

    The baseline of a row has the same values in the columns ``within``.
    """
    table = ex.Table(rows)
    found: list[ex.Row] = []
    for row in table:
        same = {name: row[name] for name in within if name in row}
        below = table.mean(column, **(same | dict(baseline)))
        found.append({**row, "relative": row[column] / below if column in row else None})
    return found
