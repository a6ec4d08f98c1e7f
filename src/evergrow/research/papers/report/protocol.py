"""The report's protocol: a few classes, then two at a time; all strategies and retraining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.foundation.errors import InvalidInputError
from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, mixture, spirals
from evergrow.research.papers.settings import TREES
from evergrow.research.streams import ClassStream, Measured, Retrained, follow

N_CLASSES = 20
INITIAL = 4
# The report does not say how many; this is the default of our forests.
N_TREES = 50

RETRAINED = "retrained"
FORESTS = ("NCM", "SVM")
STRATEGIES = ("ULS", "IGT", "RTST", "RTSTQ")
# Strategies that add nodes.
GROWING = STRATEGIES[1:]

# A run may vary one setting, to find out what a claim depends on: its name and its value.
VARIED = ("varied", "value")
KEYS = ("data", "forest", "initial", "chunk", *VARIED, "strategy", "n_classes", "seed")
EXACT = ("accuracy", "relative", "comparisons")
TIMED = ("update_seconds", "training_seconds", "test_seconds")

# The report gives this least gain, but no minimum number of samples in a leaf. It grows no tree
# again.
PARAMETERS: Mapping[str, Any] = {**TREES, "min_gain": 0.001, "min_samples_leaf": 5}


def _take_square_roots(data: Dataset) -> Dataset:
    """Square roots of counts, so that one frequent word does not outweigh the others."""
    if min(data.X_train.min(), data.X_test.min()) < 0:
        return data
    train, test = (np.sqrt(X.astype(np.float32)) for X in (data.X_train, data.X_test))
    return replace(data, X_train=train, X_test=test)


SPIRALS = {"spirals": ex.Source(None, spirals)}
WORDS = {
    "cifar100_words1000": ex.Source(
        "cifar100_words1000.npz", lambda: mixture(N_CLASSES, 48, 80, 40), _take_square_roots
    )
}


def make_forest(kind: str, n_trees: int, context: ex.ExperimentContext, seed: int) -> Any:
    """An empty forest whose nodes split by thresholds, linear SVMs or class means."""
    from evergrow import AxisForestClassifier, NCMForestClassifier, SVMForestClassifier

    kinds = {"axis": AxisForestClassifier, "SVM": SVMForestClassifier, "NCM": NCMForestClassifier}
    parameters = {**PARAMETERS, **({"n_centroids": "sqrt"} if kind == "NCM" else {})}
    return kinds[kind](n_trees, n_jobs=context.n_jobs, random_state=seed, **parameters)


def _strategy(name: str, share: float | None = None) -> Any:
    from evergrow import IGT, RTST, ULS

    strategies = {
        "ULS": ULS(),
        "IGT": IGT(),
        "RTST": RTST(share=share, nodes="uniform"),
        "RTSTQ": RTST(share=share, nodes="quality"),
    }
    return strategies[name]


def n_classes_of(context: ex.ExperimentContext) -> int:
    """Number of classes at the end of a stream."""
    return min(N_CLASSES, len(context.dataset(context.names[0]).classes))


def run_of(context: ex.ExperimentContext, forest: str, seed: int, **setting: Any) -> ex.Run:
    """A run with the settings that all experiments of the report share."""
    if n_classes_of(context) <= INITIAL:
        raise InvalidInputError(
            f"{context.dataset(context.names[0]).name!r} has {n_classes_of(context)} classes; this "
            f"experiment begins with {INITIAL} and needs at least {INITIAL + 1}"
        )
    return {
        "data": context.names[0],
        "forest": forest,
        "initial": INITIAL,
        "chunk": 2,
        "seed": seed,
        "n_trees": context.scaled(N_TREES, 10),
        **setting,
    }


def varied_runs(
    context: ex.ExperimentContext,
    forest: str,
    varied: str,
    values: Sequence[Any],
    strategies: Sequence[str] = (),
    **setting: Any,
) -> list[ex.Run]:
    """Runs of some strategies, and of retraining, in which one setting has other values.

    ``varied`` is "share", the share of the nodes that RTST chooses, "n_train", the number of
    training samples per class, "initial" (the run must have it too), or a parameter of the forest.
    """
    return [
        {
            **run_of(context, forest, seed, **setting),
            "varied": varied,
            "value": value,
            "strategies": [*strategies],
        }
        for seed in context.seeds()
        for value in values
    ]


def measured_as_usual(table: ex.Table) -> ex.Table:
    """The rows of runs in which nothing is varied."""
    return table.where(varied=None)


def spirals_of(context: ex.ExperimentContext, run: ex.Run) -> Dataset:
    """The spirals of a seed, or the user's own data."""
    if not context.is_built_in(run["data"]):
        return context.dataset(run["data"])
    n_train, n_test = context.scaled((500, 100), (100, 50))
    return spirals(N_CLASSES, n_train, n_test, random_state=run["seed"])


def _order(context: ex.ExperimentContext, run: ex.Run, data: Dataset) -> list[Any]:
    """The order of the classes: arms of a spiral by their angle, other classes at random."""
    if data.name == "spirals" and context.is_built_in(run["data"]):
        return list(data.classes[:N_CLASSES])
    return list(np.random.default_rng(run["seed"]).permutation(data.classes)[:N_CLASSES])


def all_strategies(
    context: ex.ExperimentContext,
    run: ex.Run,
    data: Dataset,
    measure_at: Sequence[int] | None = None,
) -> list[ex.Row]:
    """Rows of all strategies and of retraining on the same stream.

    Numbers of classes in ``measure_at`` that the data do not reach are left out; if none is left,
    the end of the stream is measured.
    """
    varied = {run["varied"]: run["value"]} if "varied" in run else {}
    # The number of initial classes is a setting of the run as well.
    varied.pop("initial", None)
    if "n_train" in varied:
        data = data.per_class(varied.pop("n_train"))
    share, n_trees = varied.pop("share", None), varied.pop("n_estimators", run["n_trees"])
    order = _order(context, run, data)
    stream = ClassStream(run["initial"], run["chunk"], order=order, random_state=run["seed"])
    sizes = stream.sizes(len(order))
    if measure_at is not None:
        sizes = [size for size in measure_at if size in sizes] or sizes[-1:]
    stream = ClassStream(run["initial"], run["chunk"], order=order, measure_at=sizes)

    def empty() -> Any:
        made = make_forest(run["forest"], n_trees, context, run["seed"])
        return made.set_params(**varied)

    # Warm up: the first forest of a process must not be charged for one-time costs.
    some = data.X_train[:50]
    empty().fit(some, np.arange(len(some)) % 2).predict(data.X_test[:1])
    baseline = list(_rows(Retrained(empty), data, stream))
    accuracies = {row["n_classes"]: row["accuracy"] for row in baseline}
    found = {RETRAINED: baseline}
    for name in run.get("strategies", STRATEGIES):
        found[name] = list(_rows(empty().set_params(update=_strategy(name, share)), data, stream))
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
        "test_seconds": min(ex.time_call(learner.predict, X_test) for _ in range(3)),
    }


def measure_spirals(
    context: ex.ExperimentContext, run: ex.Run, measure_at: Sequence[int] | None = None
) -> list[ex.Row]:
    """Rows of all strategies on the spirals of the run's seed."""
    return all_strategies(context, run, spirals_of(context, run), measure_at)


def ncm_runs(context: ex.ExperimentContext) -> list[ex.Run]:
    """One run of NCM forests per seed."""
    return [run_of(context, "NCM", seed) for seed in context.seeds()]


def compare_strategies(
    table: ex.Table, one: str, other: str, column: str = "relative"
) -> ex.Difference:
    """How much more accurate one strategy is than another, relative to retraining."""
    return ex.compare_means(table, column, {"strategy": one}, {"strategy": other})


def shares_of_retraining(table: ex.Table, column: str) -> dict[tuple[str, str], float]:
    """The mean of each forest and strategy, relative to retraining."""
    return {
        (kind, name): relative_to_retraining(table, column, forest=kind, strategy=name)
        for kind in FORESTS
        for name in STRATEGIES
    }


def compare_with_retraining(table: ex.Table, column: str, forest: str, name: str) -> ex.Difference:
    """How many times the time or count of retraining a strategy needs, over the seeds."""
    found = ex.compare_ratios(
        table.where(forest=forest), column, {"strategy": name}, {"strategy": RETRAINED}
    )
    what = "time of the last step" if column == "update_seconds" else column
    return replace(found, name=f"{what}, {forest} {name} against retrained")


def judge_test_work(table: ex.Table, claim: str, *, longer: bool, reason: str = "") -> ex.Finding:
    """Whether strategies that add nodes cost more, or less, to test than retraining.

    Comparisons decide, because they do not depend on the load of the machine. ULS adds no nodes
    and is left out.
    """
    kinds = table.values("forest")
    more = [
        compare_with_retraining(table, "comparisons", kind, name)
        for kind in kinds
        for name in GROWING
    ]
    shown = ", ".join(
        f"{kind} {name} {share:.2f}"
        for (kind, name), share in shares_of_retraining(table, "comparisons").items()
        if kind in kinds and name in GROWING
    )
    decision = ex.combine_verdicts(each.verdict if longer else each.below(0.0) for each in more)
    return ex.Finding(
        claim,
        f"Here a test sample costs these shares of retraining's comparisons: {shown}.",
        decision,
        reason=reason,
    )


def explain_share(table: ex.Table, column: str, what: str) -> str:
    """What RTST and RTSTQ need relative to retraining, by the share of the nodes they choose."""
    end = table.where(n_classes=max(table.values("n_classes"), default=0))
    varied = end.where(varied="share")
    # The share of all other runs comes last.
    tried = {share: varied.where(value=share) for share in varied.values("value")}
    tried[TREES["update_fraction"]] = measured_as_usual(end)
    said = []
    for kind in varied.values("forest"):
        for name in ("RTST", "RTSTQ"):
            where = {"forest": kind, "strategy": name}
            found = [
                f"{relative_to_retraining(at, column, **where):.2f} with {share:g} "
                f"({100 * at.mean('relative', **where):.1f} %)"
                for share, at in tried.items()
            ]
            said.append(f"{kind} {name} {', '.join(found)}")
    if not said:
        return ""
    return (
        "The report does not say which share of the nodes RTST chooses, and the claim depends on "
        f"it. By the share, the {what} relative to retraining is, and in brackets the relative "
        f"accuracy: {'; '.join(said)}."
    )


def relative_to_retraining(table: ex.Table, column: str, **equal: Any) -> float:
    """The mean of a strategy divided by that of retraining in the same setting."""
    baseline = table.mean(column, **{**equal, "strategy": RETRAINED})
    return table.mean(column, **equal) / baseline if baseline else float("nan")


# What the experiments of the report on streams have in common.
make_experiment = partial(ex.Experiment, keys=KEYS, exact=EXACT, timed=TIMED)
