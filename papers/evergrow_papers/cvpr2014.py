"""Ristin, Guillaumin, Gall, Van Gool: NCM forests that learn new classes, CVPR 2014.

Classes arrive one after the other; forests of class means update their trees in four ways, from
ULS, which changes only leaves, to RTST, which grows subtrees again. The baseline is a forest that
is trained from scratch on all classes seen so far.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from evergrow import AxisForestClassifier, NCMClassifier, NCMForestClassifier, NCMMetric
from evergrow.compare import ClassStream, Dataset, Measured, Retrained, follow
from evergrow.compare.stream import Learner
from evergrow_papers.claims import (
    Claim,
    Compare,
    Verdict,
    Words,
    best,
    each_seed,
    increasing,
    points,
    times,
)
from evergrow_papers.data import mixture, take_square_roots
from evergrow_papers.figures import Panel, Panels
from evergrow_papers.frame import Context, Experiment, Run, Source
from evergrow_papers.settings import NCM_TREES, TREES, UPDATES
from evergrow_papers.table import ANY, Row, Table, first, last

CITATION = (
    "Ristin, Guillaumin, Gall, Van Gool: Incremental Learning of NCM Forests for Large-Scale "
    "Image Classification, CVPR 2014"
)
ILLUSTRATIONS = {
    "cvpr2014-fig1": "a drawing of how one tree classifies an image",
    "cvpr2014-fig2": "a drawing of the four ways to update a tree",
}
WORDS = Words(
    settings={
        "chunk": "{} classes at a time",
        "initial": "{} classes at first",
        "n_classes": "{} classes",
        "panel": "{}",
        "share": "{} of the nodes",
    },
    values={
        "data": {"words": "visual words"},
        "panel": {
            "a": "a) all classes at once",
            "b": "b) 10 initial classes",
            "c": "c) 20 initial classes",
        },
        "strategy": {name: name.upper() for name in ("uls", "igt", "rust", "rtst")},
        "method": {
            **{name: name.upper() for name in ("uls", "igt", "rust", "rtst", "svm", "rf", "ncm")},
            "knn": "kNN",
            "met": "MET + NCM",
            "met_low_rank": "MET + NCM of low rank",
            "ncmf": "NCMF",
        },
    },
    quantities={
        "relative": "relative accuracy",
        "comparisons": "distances per tree\nand test image",
        "seconds": "training so far, CPU s",
        "n_classes": "classes",
        "initial": "initial classes",
        "min_samples_leaf": "samples in a leaf, at least",
        "share": "share of the nodes",
    },
    shares=("accuracy", "relative", "share"),
)

N_TREES, N_TREES_QUICK = 50, 10
# The paper's stream: from 3 classes to 50.
PAPER_INITIAL, PAPER_END = 3, 50
BASELINE = "retrained"
# In the order of how much of a tree they change.
STRATEGIES = ("uls", "igt", "rust", "rtst")
GROWTH = (*STRATEGIES, BASELINE)
EXACT = ("accuracy", "newest", "comparisons", "n_distances")
RELATIVE = ("accuracy", "relative", "newest", "comparisons", "n_distances")
CURVES = (*reversed(GROWTH),)


def _mixture() -> Dataset:
    return mixture(100, 48, n_train=40, n_test=20, distance=0.45)


SOURCES = {
    "features": Source("cifar100_efflite0_pca256.npz", _mixture),
    "words": Source("cifar100_words1000.npz", _mixture, take_square_roots),
}


def data_names(context: Context, *names: str) -> tuple[str, ...]:
    """The named data sets whose files exist; the first data set if there are none."""
    known = [name for name in names if name in context.names]
    return tuple(n for n in known if not context.is_built_in(n)) or (context.names[0],)


def last_class(context: Context, name: str, wanted: int) -> int:
    """Number of classes at the end of a stream: as many as wanted, or all that there are."""
    return min(wanted, len(context.dataset(name).classes))


def sizes(initial: int, end: int, every: int) -> list[int]:
    """Numbers of classes to measure at: the first, multiples of ``every``, and the last.

    >>> sizes(3, 50, 20)
    [3, 20, 40, 50]
    """
    between = [n for n in range(every, end, every) if n > initial]
    return [*dict.fromkeys((initial, *between, end))]


def baseline_run(data: str, seed: int, at: Sequence[int]) -> Run:
    """A run of the forest that is trained from scratch at these numbers of classes only."""
    place = {"initial": at[0], "end": at[-1], "at": [*at]}
    return {"data": data, "strategy": BASELINE, **place, "seed": seed}


def forest(context: Context, seed: int, **parameters: Any) -> NCMForestClassifier:
    """The paper's forest: 50 trees, at least 10 samples in a leaf, square root of the classes."""
    n_trees = context.scaled(N_TREES, N_TREES_QUICK)
    given = {"n_jobs": context.n_jobs, "random_state": seed, **NCM_TREES}
    return NCMForestClassifier(n_trees, **given).set_params(**parameters)


def retrained(context: Context, seed: int, **parameters: Any) -> Retrained:
    """The baseline: a forest trained from scratch on all classes seen so far."""
    return Retrained(partial(forest, context, seed, **parameters))


def follow_run(
    context: Context,
    run: Run,
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
    context: Context,
    run: Run,
    keys: Sequence[str],
    *,
    ask: Literal["always", "measured"] = "measured",
    data: Dataset | None = None,
    shared: bool = False,
) -> list[Row]:
    """Rows of a run's strategy and parameters on its stream.

    With ``shared`` all settings share one baseline, whose rows have none of their keys.
    """
    strategy, seed, parameters = run["strategy"], run["seed"], run.get("parameters", {})
    if strategy == BASELINE:
        learner: Learner = retrained(context, seed, **parameters)
        keys = ("data", "strategy", "seed") if shared else keys
    else:
        learner = forest(context, seed, update=UPDATES[strategy], **parameters)
    measured = follow_run(context, run, learner, ask=ask, data=data)
    return rows_of(run, keys, measured, timed=strategy != BASELINE or ask == "always")


def rows_of(
    run: Run, keys: Sequence[str], measured: Iterable[Measured], *, timed: bool = True
) -> list[Row]:
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


def relative_to_baseline(table: Table) -> Table:
    """Add the accuracy of each row relative to the retrained forest on the same classes."""

    def place(row: Row) -> tuple[Any, ...]:
        return row["data"], row.get("n_train"), row["seed"], row["n_classes"]

    known = {place(row): row["accuracy"] for row in table if row["strategy"] == BASELINE}
    return Table(
        {**row, "relative": row["accuracy"] / (known.get(place(row)) or np.nan)} for row in table
    )


# What the experiments of this paper have in common.
_experiment = partial(
    Experiment, sources=SOURCES, timed=("seconds",), where={"n_classes": last}, each=("data",)
)
_relative_experiment = partial(_experiment, exact=RELATIVE, complete=relative_to_baseline)


# --- Fig. 3: the number of class means that a node compares a sample with

SUBSETS = {"logarithm": "log2", "square root": "sqrt", "a fifth": 0.2}


def _fig3_runs(context: Context) -> list[Run]:
    found: list[Run] = []
    for name in data_names(context, *SOURCES):
        end = last_class(context, name, context.scaled(100, 50))
        at = sizes(min(10, end), end, 20)
        found += [
            {**baseline_run(name, seed, at), "subset": subset}
            for seed in context.seeds()
            for subset in SUBSETS
        ]
    return found


def _fig3_measure(context: Context, run: Run) -> list[Row]:
    learner = retrained(context, run["seed"], splits__n_centroids=SUBSETS[run["subset"]])
    measured = follow_run(context, run, learner)
    rows = rows_of(run, FIG3.keys, measured)
    # The time of training from scratch is that of the last step.
    return [{**row, "seconds": m.last_seconds} for row, m in zip(rows, measured, strict=True)]


def _trade_off(table: Table) -> list[Verdict | None]:
    """Whether the square root brings more of the gain of a fifth than of its distances."""

    def beyond(rows: Table) -> float:
        gains, costs = (
            [rows.mean(c, subset=s) - rows.mean(c, subset="logarithm") for s in SUBSETS]
            for c in ("accuracy", "comparisons")
        )
        return gains[1] - costs[1] / costs[2] * gains[2]

    whole = points("accuracy", "subset", "a fifth", "logarithm").verdict(table)
    needed = [table.mean("comparisons", subset=s) for s in SUBSETS]
    if not whole.agrees or needed != sorted({*needed}):
        # Nothing to trade.
        return [None]
    return [each_seed(table, beyond, name="gain beyond the share of the further distances").above()]


FIG3 = _experiment(
    name="cvpr2014-fig3",
    title="Fig. 3 of Ristin et al. 2014: classes per node",
    shows="Accuracy and test time of forests by the number of class means in a node.",
    runs=_fig3_runs,
    measure=_fig3_measure,
    claims={
        "accuracy": Claim(
            "Nodes with a fifth of all classes are more accurate than nodes with the square root "
            "of their number, and these more than nodes with the logarithm.",
            increasing("accuracy", "subset", [*SUBSETS]),
        ),
        "test time": Claim(
            "A fifth of the classes takes much longer at test time than the square root (at least "
            "1.5 times).",
            [times("comparisons", "subset", "a fifth", "square root", above=1.5)],
        ),
        "trade-off": Claim(
            "The square root is a good trade-off: from the logarithm to a fifth, it brings a "
            "larger share of the gain in accuracy than of the additional distances.",
            _trade_off,
        ),
    },
    figure=Panels(
        [
            Panel("n_classes", "accuracy", "subset", [*SUBSETS]),
            Panel("n_classes", "comparisons", "subset", [*SUBSETS], options={"ylim": (0, None)}),
        ],
        rows=("data",),
    ),
    keys=("data", "subset", "seed", "n_classes"),
    exact=("accuracy", "comparisons"),
)


# --- Fig. 4: the minimum number of samples in a leaf

LEAVES = (2, 5, 10, 20, 50)


def _fig4_runs(context: Context) -> list[Run]:
    found: list[Run] = []
    for name in data_names(context, "features"):
        end = last_class(context, name, context.scaled(50, 20))
        for seed in context.seeds():
            for n_samples in LEAVES:
                setting = {
                    "min_samples_leaf": n_samples,
                    "parameters": {"min_samples_leaf": n_samples},
                }
                run = {**baseline_run(name, seed, [end]), **setting}
                found += [run, {**run, "strategy": "rust", "initial": PAPER_INITIAL}]
    return found


def _influence(table: Table) -> list[Verdict]:
    """Whether leaves change RUST by at most a point more than the forest trained at once."""

    def excess(rows: Table) -> float:
        spreads = [
            rows.mean("accuracy", strategy=s, min_samples_leaf=LEAVES[0])
            - rows.mean("accuracy", strategy=s, min_samples_leaf=LEAVES[-1])
            for s in ("rust", BASELINE)
        ]
        return abs(spreads[0]) - abs(spreads[1])

    return [each_seed(table, excess, name="influence on RUST against trained at once").below(0.01)]


FIG4_KEYS = ("data", "strategy", "min_samples_leaf", "seed", "n_classes")
FIG4 = _experiment(
    name="cvpr2014-fig4",
    title="Fig. 4 of Ristin et al. 2014: samples in a leaf",
    shows="Accuracy and test time by the least samples of a leaf, trained at once and with RUST.",
    runs=_fig4_runs,
    measure=partial(measure_strategy, keys=FIG4_KEYS),
    claims={
        "small leaves": Claim(
            "Smaller leaves make forests more accurate and slower to test.",
            [
                points("accuracy", "min_samples_leaf", first, last),
                times("comparisons", "min_samples_leaf", first, last),
            ],
            where={"strategy": BASELINE},
        ),
        "influence": Claim(
            "The influence on RUST is limited as well (at most 1 point more than on the forest "
            "trained at once).",
            _influence,
        ),
    },
    figure=Panels(
        [
            Panel("min_samples_leaf", y, "strategy", CURVES, ticks="measured")
            for y in ("accuracy", "comparisons")
        ]
    ),
    keys=FIG4_KEYS,
    exact=EXACT,
)


# --- Fig. 5: the update strategies compared with retraining, over the number of classes

PAPER_RELATIVE = {"uls": 0.267, "igt": 0.807, "rust": 0.881, "rtst": 0.912}
# Differences from the printed levels that count as the same: the smallest between two of them.
NEAR = 0.031
# Initial and last classes. Retraining 100 times on 1000 features would take longer than all else.
STRETCHES = {"features": ((10, 100), (3, 50)), "words": ((3, 50),)}
# Training samples per class, besides all, that show what levels and savings depend on.
N_TRAIN, QUICK_N_TRAIN = (50, 150), (20,)


def _fig5_runs(context: Context) -> list[Run]:
    found: list[Run] = []
    for name in data_names(context, *STRETCHES):
        stretches = context.scaled(STRETCHES[name], ((10, 40), (3, 30)))
        for initial, wanted in stretches:
            end = last_class(context, name, wanted)
            if initial >= end > PAPER_INITIAL:
                continue
            place = {"initial": initial, "end": end, "at": sizes(initial, end, 10)}
            whole = [
                {"data": name, **place, "strategy": strategy, "seed": seed}
                for seed in context.seeds()
                for strategy in (BASELINE, *STRATEGIES)
            ]
            found += whole
            if initial == PAPER_INITIAL and name == context.names[0]:
                found += [
                    {**run, "at": [initial, end], "n_train": n}
                    for n in context.scaled(N_TRAIN, QUICK_N_TRAIN)
                    for run in whole
                ]
    return found


def _fig5_measure(context: Context, run: Run) -> list[Row]:
    """Learn all classes; the baseline is trained from scratch at every class, for its time."""
    data = context.dataset(run["data"])
    chosen = data.per_class(run["n_train"]) if "n_train" in run else data
    return measure_strategy(context, run, FIG5.keys, ask="always", data=chosen)


def _widening(table: Table) -> list[Verdict]:
    """Whether the ratio of the training times of RTST and RUST grows over the second half."""
    sizes = table.values("n_classes")
    middle, end = sizes[len(sizes) // 2], max(sizes)

    def growth(rows: Table) -> float:
        ratios = [
            rows.mean("seconds", strategy="rtst", n_classes=n)
            / rows.mean("seconds", strategy="rust", n_classes=n)
            for n in (end, middle)
        ]
        return math.log(ratios[0] / ratios[1])

    return [each_seed(table, growth, unit="times", name="growth of the ratio").above()]


def _on_paper_stream(**where: Any) -> dict[str, Any]:
    """A claim on the paper's stream from 3 classes; only at 50 classes it can be decided."""
    return {
        "where": {**USUAL, "initial": PAPER_INITIAL, **where},
        "each": ("data", "initial"),
        "decides": lambda table: max(table.values("n_classes")) == PAPER_END,
    }


# Slower and faster side, and the printed factor.
SAVINGS = ((BASELINE, "igt", 25.0), (BASELINE, "rust", 5.0), ("rtst", "rust", 2.0))
USUAL: Row = {"n_train": None}
FIG5 = _relative_experiment(
    name="cvpr2014-fig5",
    title="Fig. 5 of Ristin et al. 2014: ways to update a forest",
    shows="Accuracy, test time and training time of ULS, IGT, RUST and RTST as classes come.",
    runs=_fig5_runs,
    measure=_fig5_measure,
    claims={
        "order": Claim(
            "Accuracy grows in the order ULS, IGT, RUST, RTST, retrained forest.",
            increasing("relative", "strategy", GROWTH),
            where=USUAL,
            each=("data", "initial"),
        ),
        "levels": Claim(
            "At 50 classes the strategies keep the printed shares of the accuracy; up to 3.1 "
            "points, the smallest difference between two of them, count as the same.",
            [
                Compare("relative", {"strategy": s}, level, within=NEAR)
                for s, level in PAPER_RELATIVE.items()
            ],
            **_on_paper_stream(),
        ),
        "uls test time": Claim(
            "ULS keeps its test time (at most 1.1 times more or less).",
            [times("comparisons", "n_classes", last, first, within=1.1)],
            printed="constant",
            **_on_paper_stream(strategy="uls", n_classes=ANY),
        ),
        "igt test time": Claim(
            "IGT tests three times faster than the retrained forest.",
            [times("comparisons", "strategy", BASELINE, "igt", above=3.0)],
            printed="3 times",
            **_on_paper_stream(),
        ),
        "savings": Claim(
            "IGT trains 25 times faster than retraining, RUST 5 times faster, and RUST twice as "
            "fast as RTST.",
            [times("seconds", "strategy", slow, fast, above=n) for slow, fast, n in SAVINGS],
            printed="25, 5 and 2 times",
            **_on_paper_stream(),
        ),
        "widening": Claim(
            "The gap between the training times of RTST and RUST widens with the classes.",
            _widening,
            printed="the gap widens",
            where={**USUAL, "n_classes": ANY},
            each=("data", "initial"),
        ),
    },
    figure=Panels(
        [
            Panel("n_classes", "relative", "strategy", CURVES, where=USUAL),
            Panel(
                "n_classes",
                "relative",
                "strategy",
                # ULS is far below the others and would compress their scale.
                CURVES[:-1],
                where=USUAL,
                ylabel="the same, without ULS",
            ),
            Panel("n_classes", "comparisons", "strategy", CURVES, where=USUAL),
            Panel(
                "n_classes", "seconds", "strategy", CURVES, where=USUAL, options={"yscale": "log"}
            ),
        ],
        rows=("data", "initial"),
    ),
    keys=("data", "n_train", "initial", "strategy", "seed", "n_classes"),
    published=tuple(
        {"data": data, "initial": PAPER_INITIAL, "n_classes": PAPER_END, **row}
        for data in SOURCES
        for row in (
            *({"strategy": s, "relative": r} for s, r in PAPER_RELATIVE.items()),
            {"strategy": "igt", "accuracy": 0.349},
        )
    ),
)


# --- Fig. 6: the share of the nodes that RTST and RUST update

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
CHANGING = ("rtst", "rust")


def _fig6_runs(context: Context) -> list[Run]:
    found: list[Run] = []
    for name in data_names(context, "features"):
        end = last_class(context, name, context.scaled(50, 20))
        for seed in context.seeds():
            whole = {**baseline_run(name, seed, [end]), "initial": PAPER_INITIAL}
            found += [whole, {**whole, "strategy": "igt"}]
            found += [
                {**whole, "strategy": s, "share": p, "parameters": {"update__share": p}}
                for s in CHANGING
                for p in SHARES
            ]
    return found


def _fig6_measure(context: Context, run: Run) -> list[Row]:
    """Learn all classes; the baseline is trained from scratch at every class, for its time."""
    ask: Any = "always" if run["strategy"] == BASELINE else "measured"
    return measure_strategy(context, run, FIG6.keys, ask=ask, shared=True)


def _same_as_igt(table: Table) -> list[bool]:
    igt = [*table.where(strategy="igt").column("accuracy")]
    return [[*table.where(strategy=s, share=0.0).column("accuracy")] == igt for s in CHANGING]


FIG6 = _relative_experiment(
    name="cvpr2014-fig6",
    title="Fig. 6 of Ristin et al. 2014: share of the nodes that change",
    shows="Accuracy, test time and training time of RTST and RUST by the share of chosen nodes.",
    runs=_fig6_runs,
    measure=_fig6_measure,
    claims={
        "as igt": Claim("RTST and RUST are IGT when they change no node.", _same_as_igt),
        "rising": Claim(
            "Changing more nodes is more accurate and takes longer.",
            [
                compare(column, "share", 1.0, 0.0, where={"strategy": s})
                for s in CHANGING
                for column, compare in (("relative", points), ("seconds", times))
            ],
        ),
        "all nodes": Claim(
            "RTST comes to the retrained forest when it changes all nodes, slightly below for the "
            "features' scaling, and RUST stays below RTST; at most 2 points below count as that.",
            [
                Compare(
                    "relative",
                    {"strategy": "rtst", "share": 1.0},
                    {"strategy": BASELINE},
                    above=-0.02,
                ),
                points("relative", "strategy", "rtst", "rust", where={"share": 1.0}),
            ],
        ),
        "rust faster": Claim(
            "RUST trains faster than RTST with the same share.",
            [times("seconds", "strategy", "rtst", "rust")],
            printed="2 times faster with 0.8",
            where={"share": 0.8},
        ),
    },
    figure=Panels(
        [
            Panel("share", y, "strategy", (BASELINE, *CHANGING), level=BASELINE)
            for y in ("relative", "comparisons", "seconds")
        ]
    ),
    keys=("data", "strategy", "share", "seed", "n_classes"),
)


# --- Fig. 7: RUST from different numbers of initial classes

FIG7_KEYS = ("data", "strategy", "initial", "seed", "n_classes")
INITIALS = (3, 5, 10, 20)
MEASURED = (30, 40, 50)
FIG7_RELATIVE = {3: 0.881, 20: 0.927}
# Seeds of all numbers of initial classes, and of those that decide the claim.
N_SEEDS, N_DECIDING = 5, 12


def _fig7_runs(context: Context) -> list[Run]:
    found: list[Run] = []
    for name in data_names(context, *SOURCES):
        at = [*dict.fromkeys(last_class(context, name, n) for n in MEASURED)]
        begun = [n for n in INITIALS if n < at[0]]
        for seed in context.seeds(N_DECIDING):
            few = seed >= N_SEEDS
            baseline = baseline_run(name, seed, at[-1:] if few else at)
            found.append(baseline)
            deciding = [n for n in begun if n in FIG7_RELATIVE or not few]
            found += [{**baseline, "strategy": "rust", "initial": n} for n in deciding]
    return found


FIG7_GAIN = "88.1 % with 3, 92.7 % with 20; the text says about 4.5 points"


def _reaches_the_end(table: Table) -> bool:
    """Whether enough classes were added: of fewer, nearly all would be initial ones."""
    return table.values("n_classes") == [MEASURED[-1]]


FIG7 = _relative_experiment(
    name="cvpr2014-fig7",
    title="Fig. 7 of Ristin et al. 2014: initial classes",
    shows="Accuracy and test time of RUST by the number of classes it begins with.",
    runs=_fig7_runs,
    measure=partial(measure_strategy, keys=FIG7_KEYS, shared=True),
    claims={
        "gain": Claim(
            "RUST is more accurate with 20 initial classes than with 3.",
            [points("relative", "initial", 20, 3)],
            printed=FIG7_GAIN,
            decides=_reaches_the_end,
        ),
        "small gain": Claim(
            "This gain is small (at most the printed 4.6 points).",
            [points("relative", "initial", 20, 3, below=0.046)],
            printed=FIG7_GAIN,
            decides=_reaches_the_end,
        ),
    },
    figure=Panels(
        [
            Panel("initial", y, "n_classes", MEASURED, where={"strategy": "rust"})
            for y in ("relative", "comparisons")
        ],
        rows=("data",),
    ),
    keys=FIG7_KEYS,
    published=tuple(
        {"data": d, "strategy": "rust", "initial": n, "n_classes": 50, "relative": r}
        for d in SOURCES
        for n, r in FIG7_RELATIVE.items()
    ),
)


# --- Fig. 8: RUST over random orders of the same classes

# The paper's bound: standard deviation over the orders, relative to the mean.
SPREAD = 0.1
# Seconds are shown only, since their deviation is partly that of the machine.
SPREADING = {
    "relative": "accuracy",
    "comparisons": "test time",
    "n_distances": "training distances",
}


def _fig8_runs(context: Context) -> list[Run]:
    found: list[Run] = []
    for name in data_names(context, "features"):
        end = last_class(context, name, context.scaled(50, 25))
        begun = [n for n in INITIALS if n < end]
        for seed in context.seeds(10, 3):
            found.append(baseline_run(name, seed, [end]))
            for initial in begun:
                at = sizes(initial, end, 10)
                found.append({**baseline_run(name, seed, at), "strategy": "rust"})
    return found


def _fig8_measure(context: Context, run: Run) -> list[Row]:
    data, end = context.dataset(run["data"]), run["end"]
    # All orders have the same classes, so that only the order differs.
    shared = data.of_classes(ClassStream(end).ordered(data.classes)[:end])
    return measure_strategy(context, run, FIG8.keys, data=shared, shared=True)


def _spreads(table: Table) -> list[Verdict]:
    """Whether the largest relative deviation is below the bound, by the interval of chi-square."""
    n_orders = len(table.values("seed"))
    spreads = {
        name: max(
            table.deviation(column, initial=n) / table.mean(column, initial=n)
            for n in table.values("initial")
        )
        for column, name in SPREADING.items()
    }
    name, spread = max(spreads.items(), key=lambda item: item[1])
    if n_orders < 3:
        return [Verdict(None)]
    from scipy.stats import chi2

    freedom = n_orders - 1
    low, high = (spread * (freedom / chi2.ppf(p, freedom)) ** 0.5 for p in (0.975, 0.025))
    agrees = True if high < SPREAD else False if low > SPREAD else None
    text = (
        f"deviation of the {name}: {100 * spread:.1f} % ({100 * low:.1f} to {100 * high:.1f}, "
        f"{n_orders} orders); needed: below {100 * SPREAD:.0f} %"
    )
    return [Verdict(agrees, text)]


FIG8 = _relative_experiment(
    name="cvpr2014-fig8",
    title="Fig. 8 of Ristin et al. 2014: orders of the classes",
    shows="Accuracy, test time and training time of RUST over random orders of the same classes.",
    runs=_fig8_runs,
    measure=_fig8_measure,
    claims={
        "orders": Claim(
            "The deviation over ten orders of the classes never exceeds a tenth of the mean.",
            _spreads,
            printed="at most 10 %",
            where={"strategy": "rust"},
        )
    },
    figure=Panels(
        [
            # From zero, so that the deviations are seen relative to the means.
            *(
                Panel(
                    "initial",
                    y,
                    "strategy",
                    ["rust"],
                    {"n_classes": last},
                    options={"ylim": (0, None)},
                )
                for y in ("relative", "comparisons")
            ),
            Panel(
                "n_classes",
                "seconds",
                "strategy",
                ["rust"],
                {"initial": INITIALS[0]},
                xlabel="classes, 3 initial",
            ),
        ]
    ),
    keys=("data", "strategy", "initial", "seed", "n_classes"),
)


# --- Fig. 9: RUST with several new classes at a time

CHUNKS = (1, 5, 10)
FIG9_KEYS = ("data", "strategy", "chunk", "seed", "n_classes")


def _fig9_runs(context: Context) -> list[Run]:
    found: list[Run] = []
    for name in data_names(context, *SOURCES):
        end = last_class(context, name, context.scaled(50, 30))
        at = sizes(10, end, 10)
        chunks = [chunk for chunk in CHUNKS if chunk < end - 10]
        for seed in context.seeds(N_DECIDING):
            few = seed >= N_SEEDS
            baseline = baseline_run(name, seed, [10, end] if few else at)
            grown = {**baseline, "strategy": "rust"}
            found.append(baseline)
            deciding = [chunk for chunk in chunks if chunk in CHUNKS[:2] or not few]
            found += [{**grown, "chunk": chunk} for chunk in deciding]
            found.append({**grown, "chunk": end - 10, "at": [10, end]})
    return found


def _large_chunks(table: Table) -> list[Verdict | None]:
    """Whether all at once gain, and five at a time less than half of that."""
    if 5 not in table.values("chunk"):
        return [None]

    def beyond_half(rows: Table) -> float:
        one, five, every = (rows.mean("relative", chunk=chunk) for chunk in (1, 5, last))
        return (every - one) / 2 - (five - one)

    name = "half the gain of all at once against that of five at a time"
    return [
        points("relative", "chunk", last, 1).verdict(table, WORDS),
        each_seed(table, beyond_half, name=name).above(),
    ]


FIG9 = _relative_experiment(
    name="cvpr2014-fig9",
    title="Fig. 9 of Ristin et al. 2014: several classes at a time",
    shows="Accuracy, test time and training time of RUST by the number of classes per update.",
    runs=_fig9_runs,
    measure=partial(measure_strategy, keys=FIG9_KEYS, shared=True),
    claims={
        "large chunks": Claim(
            "Only large chunks of classes are more accurate than one class at a time. Five classes "
            "at a time must gain less than half of what all at once gain.",
            _large_chunks,
            where={"strategy": "rust"},
        ),
        "five": Claim(
            "Five classes at a time already shorten training.",
            [times("seconds", "chunk", 1, 5)],
            where={"strategy": "rust"},
        ),
    },
    figure=Panels(
        [
            Panel("n_classes", y, "chunk", (*CHUNKS, 20, 40))
            for y in ("relative", "comparisons", "seconds")
        ],
        rows=("data",),
    ),
    keys=FIG9_KEYS,
)


# --- Fig. 10: other classifiers, and incremental forests with a metric learnt on few classes

# Panels b and c: initial classes of the forests, which the metric is learnt from.
FIG10_INITIAL = {"b": 10, "c": 20}
# Another stream for the ratio of both times, to as many times its initial classes as in the paper.
TIMES, TIMES_INITIAL = "times", 2
# More seeds where differences on words are close to the paper's bounds.
CLOSE_IN_A = {"ncmf": 10, "rf": 10, "ncm": 10}
CLOSE_IN_STREAMS = {"igt": 15, "met": 15, "rtst": 10, BASELINE: 10}


def _multiclass_svm(_: Context, seed: int) -> Any:
    """Crammer and Singer's linear SVM on standardised features."""
    # On 50 classes of features a tenfold C is as accurate and trains three times as long.
    svm = LinearSVC(C=0.001, multi_class="crammer_singer", max_iter=100, random_state=seed)
    return make_pipeline(StandardScaler(), svm)


def _metric_means(seed: int, n_components: int | None = None) -> NCMClassifier:
    """Class means with a metric learnt from the first classes: MET + NCM."""
    return NCMClassifier(metric=NCMMetric(n_components, random_state=seed))


# Trained on all classes at once; each is made from the context and a seed.
CLASSIFIERS: dict[str, Callable[[Context, int], Any]] = {
    "ncmf": forest,
    "met": lambda _, seed: _metric_means(seed),
    "svm": _multiclass_svm,
    "knn": lambda context, _: KNeighborsClassifier(10, algorithm="brute", n_jobs=context.n_jobs),
    "rf": lambda context, seed: AxisForestClassifier(
        context.scaled(N_TREES, N_TREES_QUICK), n_jobs=context.n_jobs, random_state=seed, **TREES
    ),
    "ncm": lambda *_: NCMClassifier(),
}
METRICS = ("met_low_rank", "met")


def _fig10_end(context: Context, name: str) -> int:
    return last_class(context, name, context.scaled(50 if name == "words" else 100, 40))


def _fig10_runs(context: Context) -> list[Run]:
    names = data_names(context, *SOURCES)
    found: list[Run] = []
    for name in names:
        end = _fig10_end(context, name)
        place = {"data": name, "end": end, "at": [*(n for n in (10, 20, 50) if n < end), end]}
        batch = {"panel": "a", **place, "chunk": 10}
        methods = [*CLASSIFIERS]
        found += [{**batch, "method": m, "seed": s} for s in context.seeds() for m in methods]
        if name == "words" and not context.quick and context.n_seeds is None:
            close = {**batch, "at": [end]}
            found += [{**close, "method": m, "seed": s} for s in range(5, 10) for m in CLOSE_IN_A]
    for name in names:
        end = _fig10_end(context, name)
        streams = [
            {
                "panel": letter,
                "data": name,
                "initial": initial,
                "end": end,
                "at": sizes(initial, end, 10),
                "method": method,
                "seed": seed,
            }
            for letter, initial in FIG10_INITIAL.items()
            if initial < end
            for seed in context.seeds()
            for method in (BASELINE, *STRATEGIES, *METRICS)
        ]
        found += streams
        if name == "words" and not context.quick and context.n_seeds is None:
            found += [
                {**run, "seed": seed}
                for run in streams
                if run["seed"] == 0
                for seed in range(5, CLOSE_IN_STREAMS.get(str(run["method"]), 0))
            ]
        if name == context.names[0] and end > TIMES_INITIAL:
            place = {"data": name, "initial": TIMES_INITIAL, "end": end, "at": [TIMES_INITIAL, end]}
            found += [
                {"panel": TIMES, **place, "method": method, "seed": seed}
                for seed in context.seeds()
                for method in ("uls", "igt")
            ]
    return found


def _fig10_measure(context: Context, run: Run) -> list[Row]:
    """Train a classifier from scratch at every size, or follow the stream."""
    method, seed = run["method"], run["seed"]
    if run["panel"] == "a":
        learner: Learner = Retrained(partial(CLASSIFIERS[method], context, seed))
        began = {**run, "initial": min(10, run["end"])}
        with warnings.catch_warnings():
            # The predictions of the SVM settle long before the tolerance of its solver is met.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return rows_of(run, FIG10.keys, follow_run(context, began, learner), timed=False)
    if method == BASELINE:
        learner = retrained(context, seed)
    elif method in METRICS:
        # The paper's metric has a low rank: ours has one dimension for eight features.
        rank = max(2, context.dataset(run["data"]).X_train.shape[1] // 8)
        learner = cast(Learner, _metric_means(seed, rank if method == "met_low_rank" else None))
    else:
        learner = forest(context, seed, update=UPDATES[method])
    measured = follow_run(context, run, learner)
    return rows_of(run, FIG10.keys, measured, timed=method != BASELINE)


def _streams(**options: Any) -> dict[str, Any]:
    """A claim on each stream of panels b and c, at its end."""
    return {"where": {"panel": (*FIG10_INITIAL,), **options}, "each": ("data", "initial")}


def _in_batch(parts: Sequence[Compare]) -> dict[str, Any]:
    return {"parts": parts, "where": {"panel": "a"}}


def _fixed_metric(method: str, kind: str) -> Claim:
    return Claim(
        "Class means with a metric learnt on the initial classes alone fall below IGT, RUST and "
        f"RTST (here with a metric {kind}).",
        [points("accuracy", "method", other, method) for other in STRATEGIES[1:]],
        **_streams(),
    )


FIG10 = _experiment(
    name="cvpr2014-fig10",
    title="Fig. 10 of Ristin et al. 2014: other classifiers, and a metric learnt on few classes",
    shows="Accuracy of NCMF and other classifiers; of growing forests and a fixed metric.",
    runs=_fig10_runs,
    measure=_fig10_measure,
    claims={
        "lead": Claim(
            "The forest of class means beats plain class means and a forest of thresholds by at "
            "least 10 points.",
            **_in_batch(best("accuracy", "method", "ncmf", ("ncm", "rf"), above=0.1)),
            printed="at least 10 points",
        ),
        "comparable": Claim(
            "Class means with a metric learnt on all classes are as good as the forest or slightly "
            "better (at most 3 points).",
            **_in_batch([points("accuracy", "method", "met", "ncmf", within=0.03)]),
        ),
        "better": Claim(
            "The forest also beats nearest neighbours and a multi-class SVM.",
            **_in_batch(best("accuracy", "method", "ncmf", ("knn", "svm"))),
        ),
        "order": Claim(
            "Accuracy grows in the order IGT, RUST, RTST, retrained forest, and ULS is far below.",
            increasing("accuracy", "method", GROWTH),
            **_streams(),
        ),
        "low rank": _fixed_metric("met_low_rank", "of an eighth of the dimensions"),
        "metric": _fixed_metric("met", "in all dimensions"),
        "times": Claim(
            "ULS is the fastest to train, then IGT, RUST and RTST; ULS is also the fastest to test "
            "and the retrained forest the slowest.",
            [
                *increasing("seconds", "method", STRATEGIES, unit="times"),
                *increasing("comparisons", "method", GROWTH, unit="times"),
            ],
            printed="30 s, 15 min, 77 min, 16 h; 0.04, 0.05, 0.24, 0.27, 0.47 ms",
            **_streams(),
        ),
        "uls far faster": Claim(
            "ULS is by far the fastest to train, with a thirtieth of the time of IGT for 1000 "
            "classes (here: IGT takes at least 10 times as long).",
            [times("seconds", "method", "igt", "uls", above=10.0)],
            printed="30 s against 15 min",
            **_streams(),
        ),
    },
    figure=Panels(
        [
            Panel(
                "n_classes",
                "accuracy",
                "method",
                (*CURVES, *CLASSIFIERS, "met_low_rank"),
                {"panel": ("a", *FIG10_INITIAL)},
            )
        ],
        rows=("panel", "data"),
        n_columns=2,
    ),
    keys=("panel", "data", "initial", "method", "seed", "n_classes"),
    exact=EXACT,
)
