"""The report's protocol: a few classes, then two at a time, every strategy beside retraining."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.research.datasets import Dataset, mixture, spirals
from evergrow.research.experiments.contrasts import combined, contrast
from evergrow.research.experiments.experiment import Finding, Run, Source
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.streams import ClassStream, Measured, Retrained, follow

__all__ = [
    "ANYTHING",
    "EXACT",
    "GROWING",
    "INITIAL",
    "KEYS",
    "N_CLASSES",
    "RETRAINED",
    "SPIRALS",
    "STRATEGIES",
    "TIMED",
    "WORDS",
    "all_strategies",
    "make_forest",
    "n_classes_of",
    "run_of",
    "shared",
    "spirals_of",
    "test_work",
]

Array = npt.NDArray[Any]

N_CLASSES = 20
INITIAL = 4
# The report does not say how many: the forests' own default.
N_TREES = 50

RETRAINED = "retrained"
STRATEGIES = ("ULS", "IGT", "RTST", "RTSTQ")
# Those that let the trees grow.
GROWING = STRATEGIES[1:]

# One or two seeds cannot tell how far counts and times are off.
ANYTHING = float("inf")

KEYS = ("data", "forest", "initial", "chunk", "strategy", "n_classes", "seed")
EXACT = ("accuracy", "relative", "comparisons")
TIMED = ("update_seconds", "training_seconds", "test_seconds")

# The report stops at this gain and names no smallest leaf.
PARAMETERS: Mapping[str, Any] = {"min_gain": 0.001, "min_samples_leaf": 5}


def _square_roots(data: Dataset) -> Dataset:
    """Counts of visual words as forests like them: one frequent word must not outweigh the rest."""
    from dataclasses import replace

    if min(data.X_train.min(), data.X_test.min()) < 0:
        return data
    train, test = (np.sqrt(X.astype(np.float32)) for X in (data.X_train, data.X_test))
    return replace(data, X_train=train, X_test=test)


SPIRALS = {"spirals": Source(None, spirals)}
WORDS = {
    "cifar100_words1000": Source(
        "cifar100_words1000.npz", lambda: mixture(N_CLASSES, 48, 80, 40), _square_roots
    )
}


def make_forest(kind: str, n_trees: int, lab: Lab, seed: int) -> Any:
    """An empty forest whose nodes split by thresholds, planes of SVMs or class means."""
    from evergrow import AxisForestClassifier, NCMForestClassifier, SVMForestClassifier

    kinds = {"axis": AxisForestClassifier, "SVM": SVMForestClassifier, "NCM": NCMForestClassifier}
    return kinds[kind](n_trees, n_jobs=lab.n_jobs, random_state=seed, **PARAMETERS)


def _strategy(name: str) -> Any:
    from evergrow import IGT, RTST, ULS

    strategies = {
        "ULS": ULS(),
        "IGT": IGT(),
        "RTST": RTST(nodes="uniform"),
        "RTSTQ": RTST(nodes="quality"),
    }
    return strategies[name]


def n_classes_of(lab: Lab) -> int:
    """Classes that a stream ends with."""
    return min(N_CLASSES, len(lab.dataset(lab.names[0]).classes))


def run_of(lab: Lab, forest: str, seed: int, **setting: Any) -> dict[str, Any]:
    """A run with what all of the report's have in common."""
    if n_classes_of(lab) <= INITIAL:
        raise ValueError(
            f"{lab.dataset(lab.names[0]).name!r} has {n_classes_of(lab)} classes; this experiment "
            f"begins with {INITIAL} and needs at least {INITIAL + 1}"
        )
    return {
        "data": lab.names[0],
        "forest": forest,
        "initial": INITIAL,
        "chunk": 2,
        "seed": seed,
        "n_trees": lab.scaled(N_TREES, 10),
        **setting,
    }


def spirals_of(lab: Lab, run: Run) -> Dataset:
    """The spirals of a seed, or the user's own data."""
    if not lab.is_built_in(run["data"]):
        return lab.dataset(run["data"])
    n_train, n_test = lab.scaled((500, 100), (100, 50))
    return spirals(N_CLASSES, n_train, n_test, random_state=run["seed"])


def _order(lab: Lab, run: Run, data: Dataset) -> list[Any]:
    """Arms of a spiral come in the order of their angles, other classes at random."""
    if data.name == "spirals" and lab.is_built_in(run["data"]):
        return list(data.classes[:N_CLASSES])
    return list(np.random.default_rng(run["seed"]).permutation(data.classes)[:N_CLASSES])


def all_strategies(
    lab: Lab, run: Run, data: Dataset, measure_at: Sequence[int] | None = None
) -> list[Row]:
    """Every strategy and retraining, one after another through the same stream.

    Numbers of classes in ``measure_at`` that the data do not reach are left out; without any the
    end of the stream is measured.
    """
    order = _order(lab, run, data)
    stream = ClassStream(run["initial"], run["chunk"], order=order, random_state=run["seed"])
    sizes = stream.sizes(len(order))
    if measure_at is not None:
        sizes = [size for size in measure_at if size in sizes] or sizes[-1:]
    stream = ClassStream(run["initial"], run["chunk"], order=order, measure_at=sizes)

    def empty() -> Any:
        return make_forest(run["forest"], run["n_trees"], lab, run["seed"])

    # What only the first forest of a process costs is nobody's training time.
    some = data.X_train[:50]
    empty().fit(some, np.arange(len(some)) % 2).predict(data.X_test[:1])
    baseline = list(_rows(Retrained(empty), data, stream))
    accuracies = {row["n_classes"]: row["accuracy"] for row in baseline}
    found = {RETRAINED: baseline}
    for name in STRATEGIES:
        found[name] = list(_rows(empty().set_params(update=_strategy(name)), data, stream))
    shared = {key: run[key] for key in KEYS if key in run}
    return [
        {
            **shared,
            "strategy": name,
            **row,
            "relative": row["accuracy"] / (accuracies[row["n_classes"]] or np.nan),
        }
        for name, rows in found.items()
        for row in rows
    ]


def _rows(learner: Any, data: Dataset, stream: ClassStream) -> Iterator[dict[str, Any]]:
    order = np.asarray(stream.order)
    for measured in follow(learner, data, stream, ask="measured"):
        yield _row(learner, data, order[: measured.n_classes], measured)


def _row(learner: Any, data: Dataset, known: Array, measured: Measured) -> dict[str, Any]:
    X_test = data.X_test[np.isin(data.y_test, known)]
    train = np.isin(data.y_train, known)
    wrong = np.asarray(learner.predict(data.X_train[train])) != data.y_train[train]
    return {
        "n_classes": measured.n_classes,
        "accuracy": measured.accuracy,
        "test_error": 1 - measured.accuracy,
        "train_error": float(wrong.mean()),
        "comparisons": measured.comparisons,
        "update_seconds": measured.last_seconds,
        "training_seconds": measured.seconds,
        "test_seconds": min(_seconds_to_predict(learner, X_test) for _ in range(3)),
    }


def _seconds_to_predict(learner: Any, X: Array) -> float:
    start = time.perf_counter()
    learner.predict(X)
    return time.perf_counter() - start


def test_work(table: Table, claim: str, *, longer: bool) -> Finding:
    """Whether strategies that grow cost more, or less, to test than retraining does.

    Judged by comparisons, which do not depend on how busy the machine is; ULS adds no node and is
    left out.
    """
    sides = [
        ({"forest": kind, "strategy": name}, {"forest": kind, "strategy": RETRAINED})
        for kind in table.values("forest")
        for name in GROWING
    ]
    more = [contrast(table, "comparisons", *side, few_seeds_noise=ANYTHING) for side in sides]
    said = ", ".join(
        f"{one['forest']} {one['strategy']} {shared(table, 'comparisons', **one):.2f}"
        for one, _ in sides
    )
    return Finding(
        claim,
        f"Here a test sample costs these shares of retraining's comparisons: {said}.",
        combined(each.verdict if longer else each.below(0.0) for each in more),
    )


def shared(table: Table, column: str, **equal: Any) -> float:
    """A strategy's mean as a share of retraining's at the same place."""
    baseline = table.mean(column, **{**equal, "strategy": RETRAINED})
    return table.mean(column, **equal) / baseline if baseline else float("nan")
