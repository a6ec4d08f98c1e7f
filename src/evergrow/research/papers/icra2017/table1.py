"""Table I of Camoriano 2017: naive, rebalanced and recoded least squares on a new class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset
from evergrow.research.papers.icra2017 import protocol

COUNTS = (1, 5, 10, 50, 100, 500)
# Numbers of examples by which claims about few examples are judged.
FEW = (1, 5, 10)
NAIVE, REBALANCED, RECODED, AUTO, OURS = METHODS = (
    "naive",
    "rebalanced",
    "recoded",
    "auto",
    "ours",
)
LOOKS = {
    NAIVE: (ex.BLACK, "X", "naive"),
    REBALANCED: (ex.ORANGE, "s", "rebalanced (batch only)"),
    RECODED: (ex.BLUE, "o", "recoded"),
    AUTO: (ex.GREEN, "^", 'recoding "auto", paper\'s rule'),
    OURS: (ex.RED, "D", "ours, by leave-one-out"),
}
# Accuracy on the new class below which it counts as ignored.
IGNORED = 0.05
# Names of data sets of digits: the paper's findings on digits and on objects differ.
DIGITS = ("mnist", "digits")
# Position of the new class in each data set; in the paper it is digit 8.
PLACES = {"mnist": 8, "cifar100": 27, "caltech101": 50}
# With one example of the new class the lead of recoding on CIFAR-100 is small: more seeds.
N_SEEDS = {"cifar100": 20}

# Runs that show what a claim depends on: what is varied on which data, and its values. Penalties
# are multiples of the mean square of the features times the number of examples; places are
# positions of other new classes.
VARIED: dict[str, dict[str, tuple[float, ...]]] = {
    "mnist": {"penalty": (0.01, 0.1, 1.0, 10.0)},
    "cifar100": {"recoding": (0.6, 0.7, 0.8, 0.9, 1.0)},
    "caltech101": {"n_components": (16, 32, 64, 256), "place": (5, 15, 25, 35, 45)},
}

# Table I in percent, by the examples of the new class: over all classes and on the new one, each
# naive, rebalanced, recoded.
PRINTED = {
    "mnist": {
        1: ((79.2, 79.7, 79.7), (0.0, 7.4, 9.5)),
        5: ((79.1, 82.5, 80.3), (0.0, 39.6, 17.5)),
        10: ((79.2, 83.6, 81.0), (0.0, 49.5, 25.1)),
        50: ((79.2, 85.5, 83.9), (0.0, 73.5, 49.1)),
        100: ((79.2, 85.9, 85.1), (2.0, 75.5, 62.7)),
    },
    "cifar100_efflite0_pca256": {
        1: ((77.6, 76.8, 77.7), (0.0, 0.4, 8.0)),
        5: ((77.6, 77.9, 78.6), (0.0, 8.1, 38.5)),
        10: ((77.6, 78.3, 78.9), (0.0, 23.7, 49.6)),
        50: ((77.7, 80.0, 80.0), (5.4, 73.9, 75.0)),
        100: ((78.6, 80.2, 80.1), (39.1, 85.9, 86.5)),
        500: ((80.2, 80.1, 80.1), (89.3, 93.8, 94.8)),
    },
    "caltech101_efflite0_224": {
        1: ((80.4, 78.6, 83.3), (0.0, 62.0, 72.2)),
        5: ((80.4, 83.0, 83.9), (0.0, 91.7, 99.9)),
        10: ((80.4, 83.8, 83.6), (2.8, 94.7, 100.0)),
        50: ((82.3, 84.3, 83.5), (96.6, 100.0, 100.0)),
        100: ((82.4, 84.4, 83.5), (100.0, 100.0, 100.0)),
        500: ((82.3, 84.1, 84.1), (100.0, 100.0, 100.0)),
    },
}
# What the paper measured where we have other data.
PAPERS_DATA = {
    "mnist": "MNIST",
    "cifar100_efflite0_pca256": "iCubWorld28, fc7 of CaffeNet",
    "caltech101_efflite0_224": "RGB-D, fc6 of CaffeNet",
}
PUBLISHED: tuple[ex.Row, ...] = tuple(
    {
        "data": name,
        "n_new": n_new,
        "method": method,
        # Ours next to it are those of the table, where nothing is varied.
        "varied": None,
        "paper's data": PAPERS_DATA[name],
        "total": total / 100,
        "new_class": new / 100,
    }
    for name, block in PRINTED.items()
    for n_new, (totals, news) in block.items()
    for method, total, new in zip(METHODS, totals, news, strict=False)
)


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    runs: list[ex.Run] = []
    for name in context.names:
        seeds = context.seeds(N_SEEDS.get(name, 5))
        runs += context.grid(data=[name], seed=seeds)
        runs += context.grid(data=[name], seed=seeds, part=[OURS])
        if context.data is None:
            for what, values in VARIED[name].items():
                some = context.scaled(values, values[-1:])
                runs += context.grid(data=[name], seed=context.seeds(), part=[what], value=some)
    return runs


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data = context.dataset(run["data"])
    if run.get("part") == "n_components":
        data = _principal_components(data, run["value"])
    place = run["value"] if run.get("part") == "place" else PLACES[run["data"]]
    task = protocol.task_in(context, data, run, place)
    rows = _PARTS[run.get("part")](context, run, task)
    # Rows of the paper's table have no varied setting.
    varied = {"varied": run.get("part") if "value" in run else None, "value": run.get("value")}
    shared = {"data": protocol.shown_name(context, data), "seed": run["seed"], **varied}
    return [{**shared, **row} for row in rows]


def _row(count: int, method: str, model: Any, task: protocol.NewClassTask) -> ex.Row:
    return {"n_new": count, "method": method, **protocol.accuracies(model, task)}


def _measure_table(
    context: ex.ExperimentContext, run: ex.Run, task: protocol.NewClassTask
) -> list[ex.Row]:
    """The methods of the paper, by its rule for the penalty."""
    from evergrow.estimators.linear import RebalancedRLSClassifier

    recoded = protocol.setup_of(context, run["data"]).recoding
    settings: dict[str, Any] = {NAIVE: 0.0, RECODED: recoded, AUTO: "auto"}
    rows: list[ex.Row] = []
    for method, recoding in settings.items():
        for count, model in protocol.learn_new_class(task, COUNTS, run["seed"], recoding):
            rows.append(_row(count, method, model, task))
    for count in task.counts(COUNTS):
        batch = RebalancedRLSClassifier(selection="paper", random_state=run["seed"])
        batch.fit(*task.with_new(count))
        rows.append(_row(count, REBALANCED, batch, task))
    return rows


def _measure_ours(
    context: ex.ExperimentContext, run: ex.Run, task: protocol.NewClassTask
) -> list[ex.Row]:
    """The classifier with its defaults."""
    del context
    from evergrow import RLSClassifier

    model = RLSClassifier(random_state=run["seed"])
    taught = protocol.teach_new_class(model, task, COUNTS)
    return [_row(count, OURS, model, task) for count, model in taught]


def _measure_penalty(
    context: ex.ExperimentContext, run: ex.Run, task: protocol.NewClassTask
) -> list[ex.Row]:
    """Recoding and rebalancing with the same penalty, compared with the mean weight."""
    from evergrow import RLSClassifier
    from evergrow.estimators.linear import RebalancedRLSClassifier

    X, y = task.known
    square = float(np.square(X - X.mean(axis=0), dtype=np.float64).sum() / X.shape[1])
    recoded = RLSClassifier(
        regularization=run["value"] * square,
        recoding=protocol.setup_of(context, run["data"]).recoding,
        scoring="regression",
    )
    rows = [
        _row(count, RECODED, model, task)
        for count, model in protocol.teach_new_class(recoded, task, FEW)
    ]
    # Rebalancing weighs an example by one over the share of its class, the number of classes on
    # average.
    weight = len(np.unique(y)) + 1
    for count in task.counts(FEW):
        batch = RebalancedRLSClassifier(regularization=run["value"] * square * weight)
        rows.append(_row(count, REBALANCED, batch.fit(*task.with_new(count)), task))
    return rows


def _measure_recoding(
    context: ex.ExperimentContext, run: ex.Run, task: protocol.NewClassTask
) -> list[ex.Row]:
    """Another recoding than the paper's."""
    del context
    taught = protocol.learn_new_class(task, FEW, run["seed"], run["value"])
    return [_row(count, RECODED, model, task) for count, model in taught]


def _measure_both(
    context: ex.ExperimentContext, run: ex.Run, task: protocol.NewClassTask
) -> list[ex.Row]:
    """Plain and recoded least squares on fewer features, or with another new class."""
    recoded = protocol.setup_of(context, run["data"]).recoding
    return [
        _row(count, method, model, task)
        for method, recoding in ((NAIVE, 0.0), (RECODED, recoded))
        for count, model in protocol.learn_new_class(task, FEW, run["seed"], recoding)
    ]


_PARTS: dict[
    str | None,
    Callable[[ex.ExperimentContext, ex.Run, protocol.NewClassTask], list[ex.Row]],
] = {
    None: _measure_table,
    OURS: _measure_ours,
    "penalty": _measure_penalty,
    "recoding": _measure_recoding,
    "n_components": _measure_both,
    "place": _measure_both,
}


def _principal_components(data: Dataset, n: int) -> Dataset:
    """The data as its first principal components."""
    X = data.X_train.astype(np.float64)
    mean = X.mean(axis=0)
    X -= mean
    _, vectors = np.linalg.eigh(X.T @ X)
    kept = vectors[:, ::-1][:, :n]
    test = (data.X_test - mean) @ kept
    return replace(data, X_train=(X @ kept).astype(np.float32), X_test=test.astype(np.float32))


def draw(figure: ex.Figure, table: ex.Table) -> None:
    table = table.where(varied=None)
    names = table.values("data")
    rows = figure.subplots(2, len(names), squeeze=False, sharex="col")
    for name, panels in zip(names, rows.T, strict=True):
        for axes, column in zip(panels, ("new_class", "total"), strict=True):
            for method in METHODS:
                _draw_method(axes, table.where(data=name, method=method), column, method)
            _draw_printed(axes, ex.Table(PUBLISHED).where(data=name), column)
            counts = sorted(table.where(data=name).values("n_new"))
            ex.set_log_ticks(axes, counts)
        panels[0].set_title(name)
        panels[1].set_xlabel("examples of the new class")
    rows[0][0].set_ylabel("accuracy, new class, %")
    rows[1][0].set_ylabel("accuracy, all classes, %")
    ex.add_legend(figure, rows[0][0], columns=5)


def _draw_method(axes: ex.Axes, table: ex.Table, column: str, method: str) -> None:
    colour, marker, label = LOOKS[method]
    curve = table.curve("n_new", column)
    axes.errorbar(
        curve.x,
        100 * curve.mean,
        100 * curve.deviation,
        color=colour,
        marker=marker,
        capsize=2,
        elinewidth=0.8,
        label=label,
    )


def _draw_printed(axes: ex.Axes, printed: ex.Table, column: str) -> None:
    for method in printed.values("method"):
        colour, marker, _ = LOOKS[method]
        curve = printed.where(method=method).curve("n_new", column)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markerfacecolor": "none"}
        label = "paper, its data" if method == NAIVE else None
        axes.plot(curve.x, 100 * curve.mean, linestyle=":", linewidth=1, label=label, **look)


def judge(table: ex.Table) -> list[ex.Finding]:
    findings = []
    for name in table.values("data"):
        mine = table.where(data=name)
        found = protocol.rows_while_rare(
            mine.where(varied=None), {"method": NAIVE}, {"method": RECODED}
        )
        if not len(found):
            continue
        varied = ex.Table(row for row in mine if row.get("varied") is not None)
        findings += [
            _ignored(name, found, varied),
            _recoding_helps(name, found),
            _total(name, found, varied),
        ]
        # The paper's claim about rebalancing differs between digits and objects.
        if not protocol.is_own_data(name):
            findings.append(_beside_rebalanced(name, found, varied))
    return protocol.without_idle_reasons(findings)


def _at(table: ex.Table, wanted: int) -> int:
    """The largest measured number of new examples up to this one."""
    return int(max(n for n in table.values("n_new") if n <= wanted))


def _few(table: ex.Table) -> ex.Table:
    return ex.Table(row for row in table if row["n_new"] in FEW)


def _printed(name: str, n: int, column: str, *methods: str) -> str:
    """The paper's numbers for this setting as text."""
    rows = ex.Table(PUBLISHED).where(data=name, n_new=n)
    if not len(rows):
        return ""
    numbers = (f"{method} {100 * rows.mean(column, method=method):.1f}" for method in methods)
    data = "" if name in DIGITS else f" ({PAPERS_DATA[name].partition(',')[0]})"
    return f"{', '.join(numbers)} % at {n}{data}"


def _ignored(name: str, table: ex.Table, varied: ex.Table) -> ex.Finding:
    n = _at(table, 10)
    share = ex.compare_each_seed(
        table.where(method=NAIVE, n_new=n),
        lambda rows: rows.mean("new_class"),
        name=f"accuracy on the new class with {n} examples",
    )
    return ex.Finding(
        f"{ex.say_value('data', name)}: the paper finds that plain least squares ignore a class "
        f"with few examples (less than {100 * IGNORED:.0f} % right).",
        f"Here, with {n} examples, {100 * share.mean:.1f} % of the new class are classified "
        "correctly.",
        share.below(IGNORED),
        printed=_printed(name, n, "new_class", NAIVE),
        reason=_by_features(varied, table),
    )


def _by_features(varied: ex.Table, table: ex.Table) -> str:
    """How plain least squares depend on the number of features, where that was measured."""
    found = varied.where(varied="n_components")
    sizes = sorted(found.values("value"))
    if not sizes:
        return ""
    by_size = [*(found.where(value=size) for size in sizes), table]
    shares = {
        n: [round(100 * rows.mean("new_class", method=NAIVE, n_new=n)) for rows in by_size]
        for n in _few(table).values("n_new")
    }
    told = "; ".join(
        f"{_listed(each)} % at {n} example{'s' if n > 1 else ''}" for n, each in shares.items()
    )
    return (
        f"It depends on the number of features. With the first {_listed(sizes)} principal "
        f"components, and with all features, the accuracy on the new class is {told}."
    )


def _total_by_class(varied: ex.Table, table: ex.Table) -> str:
    """How the effect of recoding on all classes depends on which class is new."""
    other = varied.where(varied="place")
    if not len(other):
        return ""
    sides = {"method": RECODED}, {"method": NAIVE}
    columns = ("new_class", "others", "total")
    new, others, total = (ex.compare_means(table, column, *sides) for column in columns)
    theirs = [ex.compare_means(other, column, *sides) for column in columns]
    found, of_others = (100 * rows.mean("new_class", method=NAIVE) for rows in (table, other))
    # Over all classes, accuracy is a mean of both, weighed by this share.
    share = (total.mean - others.mean) / (new.mean - others.mean)
    return (
        f"The new class is only {100 * share:.1f} % of the test samples, and plain least squares "
        f"already recognise {found:.0f} % of it. Recoding adds {100 * new.mean:.1f} points on the "
        f"new class and changes the others by {100 * others.mean:+.1f}. With "
        f"{len(other.values('value'))} other classes as the new one, each in turn, plain least "
        f"squares recognise {of_others:.0f} %; recoding adds {100 * theirs[0].mean:.1f} points, "
        f"changes the others by {100 * theirs[1].mean:+.1f} and the total by {theirs[2].interval}."
    )


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _recoding_helps(name: str, table: ex.Table) -> ex.Finding:
    gains = {
        n: ex.compare_means(
            table.where(n_new=n), "new_class", {"method": RECODED}, {"method": NAIVE}
        )
        for n in table.values("n_new")
    }
    n = _at(table, 10)
    recoded = table.mean("new_class", method=RECODED, n_new=n)
    least = min(gains, key=lambda count: gains[count].mean)
    by_count = ", ".join(f"{100 * gain.mean:+.1f}" for gain in gains.values())
    return ex.Finding(
        f"{ex.say_value('data', name)}: the paper finds recoding above plain least squares on the "
        "new class for every number of examples.",
        f"Here recoding recognises {100 * recoded:.1f} % of the new class with {n} examples. Its "
        f"lead is smallest with {least} example{'s' if least > 1 else ''}: "
        f"{100 * gains[least].mean:.1f} points.",
        ex.combine_verdicts(gain.verdict for gain in gains.values()),
        printed=_printed(name, n, "new_class", RECODED, NAIVE),
        reason=f"With {', '.join(map(str, gains))} examples the lead is {by_count} points.",
    )


def _total(name: str, table: ex.Table, varied: ex.Table) -> ex.Finding:
    lead = ex.compare_means(table, "total", {"method": RECODED}, {"method": NAIVE})
    leads = [
        table.mean("total", method=RECODED, n_new=n) - table.mean("total", method=NAIVE, n_new=n)
        for n in table.values("n_new")
    ]
    return ex.Finding(
        f"{ex.say_value('data', name)}: the paper finds that recoding raises the accuracy over all "
        "classes too.",
        "Here the accuracy over all classes changes by "
        f"{100 * lead.mean:+.2f} points on average over the numbers of examples; the smallest "
        f"change is {100 * min(leads):+.2f}.",
        lead.verdict,
        printed=_printed(name, _at(table, 10), "total", RECODED, NAIVE),
        reason=_total_by_class(varied, table),
    )


def _beside_rebalanced(name: str, table: ex.Table, varied: ex.Table) -> ex.Finding:
    few = _few(table)
    sides = {"method": RECODED}, {"method": REBALANCED}
    recoded, batch = (few.mean("new_class", **side) for side in sides)
    robots = name not in DIGITS
    one, other = sides if robots else sides[::-1]
    claim = (
        "recoding above rebalancing on the new class, most with few examples"
        if robots
        else "rebalancing, which needs all examples each time, above recoding on the new class"
    )
    return ex.Finding(
        f"{ex.say_value('data', name)}: the paper finds {claim}"
        + (" on the robots' data" if robots else "")
        + f" (we compare the mean over {_numbers_of_examples(few)}).",
        f"Here recoding recognises {100 * recoded:.1f} % of the new class and rebalancing "
        f"{100 * batch:.1f} %.",
        ex.compare_means(few, "new_class", one, other).verdict,
        printed=_printed(name, _at(table, 10), "new_class", RECODED, REBALANCED),
        reason=_by_penalty(varied) or _by_recoding(varied, batch),
    )


def _numbers_of_examples(table: ex.Table) -> str:
    *some, last = sorted(table.values("n_new"))
    return f"{', '.join(map(str, some))} and {last} examples" if some else f"{last} examples"


def _by_penalty(varied: ex.Table) -> str:
    found = varied.where(varied="penalty")
    if not len(found):
        return ""
    values = sorted(found.values("value"))
    leads = [
        ex.compare_means(
            found.where(value=value), "new_class", {"method": REBALANCED}, {"method": RECODED}
        )
        for value in values
    ]
    return (
        "It depends on the penalty. With the same penalty for both methods, "
        f"{_listed(values)} times the mean square of the features times the number of examples, "
        "the accuracy of rebalancing minus that of recoding is "
        f"{', '.join(lead.interval for lead in leads)}."
    )


def _by_recoding(varied: ex.Table, rebalanced: float) -> str:
    found = varied.where(varied="recoding")
    if not len(found):
        return ""
    values = sorted(found.values("value"))
    new, others = (
        ", ".join(f"{100 * found.mean(column, value=value):.1f}" for value in values)
        for column in ("new_class", "others")
    )
    return (
        "It depends on the recoding, which is the paper's choice for its own data. With a recoding "
        f"of {_listed(values)}, {new} % of the new class are recognised (rebalancing: "
        f"{100 * rebalanced:.1f} %), and {others} % of the other classes."
    )


EXPERIMENT = ex.Experiment(
    name="icra2017-table1",
    title="Camoriano 2017, table I: a new class with few examples",
    shows="accuracy on the new class and over all classes, for naive, rebalanced and recoded least "
    "squares",
    sources=protocol.SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "n_new", "method", "varied", "value", "seed"),
    exact=("total", "new_class", "others"),
    published=PUBLISHED,
    size=(9.0, 5.2),
    notes=(
        *protocol.DATA_NOTES,
        "A class with as many examples as the others is not a rare one, and recoding changes "
        "nothing: such numbers are measured and drawn, but no claim is judged by them. The user's "
        "own data, given by `--data`, are not compared with the paper's numbers.",
        "In our copy of the paper some row labels are damaged, and we inferred them from the "
        "numbers. MNIST: 1, 5, 10, = and 1000 are read as 1, 5, 10, 50 and 100; a row for 500 is "
        "missing. iCubWorld28: 1, 5, 10, = and 700 are read in the same way, and the next row, "
        "labelled RGB-D, 1, is its row for 500. RGB-D: the six rows labelled 5, 10, =, 500, 100 "
        "and 500 are read as 1, 5, 10, 50, 100 and 500.",
        "The paper's numbers for robots are of other objects and features than ours, and are "
        "shown to compare the ranking of the methods, not the accuracies.",
        "Recoding is 0.7 (MNIST), 0.6 (CIFAR-100) and 0.7 (Caltech-101), as in the paper for its "
        "three data sets. As in the paper, each method chooses its penalty on every 6th example. "
        "Unlike the paper, it then learns these examples too. The figure has two more methods. "
        "`auto` chooses the recoding by the paper's rule. `ours` is `RLSClassifier` with its "
        "defaults: cosine scores, and penalty and recoding by leave-one-out. No claim is judged "
        "by `ours`.",
        "Rows with a value in the column `varied` are not the paper's table: they vary the "
        "penalty, the recoding, the number of features or the new class, to show what a claim "
        "depends on.",
    ),
)
