"""Fig. 10: the forest beside other classifiers, and forests that grow beside a fixed metric."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from evergrow.research.experiments.contrasts import combined, leads
from evergrow.research.experiments.drawing import BLACK, GREY, ORANGE, PINK, RED, SKY
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.cvpr2014.claims import ANYTHING, gain, increasing, plus_minus
from evergrow.research.papers.cvpr2014.curves import STYLES, Style, panels, plot_curve
from evergrow.research.papers.cvpr2014.data import (
    DATA_NAMES,
    NOTES,
    SOURCES,
    data_names,
    last_class,
)
from evergrow.research.papers.cvpr2014.growing import (
    BASELINE,
    STRATEGIES,
    follow_run,
    forest,
    points,
    retrained,
    rows_of,
)
from evergrow.research.papers.cvpr2014.rivals import METRICS, RIVALS
from evergrow.research.streams import Learner, Retrained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

KEYS = ("panel", "data", "initial", "method", "seed", "n_classes")
EVERY = 10
END, QUICK_END = 100, 40
# Where every rival trains from scratch, beside the last; on 1000 features per image it is dear.
SIZES = (10, 20, 50)
WORDS_END = 50
# Panels b and c: classes that the forests begin with and that the metric is learnt from.
INITIAL = {"b": 10, "c": 20}
# To 1000 classes from 20, one tree on one thread; classifying one image with it.
PAPER_SECONDS = {"uls": 30, "igt": 900, "rust": 4620, "rtst": 57600, BASELINE: 345600}
PAPER_MILLISECONDS = {"uls": 0.04, "igt": 0.05, "rust": 0.24, "rtst": 0.27, BASELINE: 0.47}
# Points of accuracy: the paper's lead over plain means and thresholds, and what "comparable" is.
LEAD, COMPARABLE = 10, 3
# How many times as long as ULS trains IGT must at least take: a third of the paper's 30.
FAR = 10

RIVAL_STYLES = {
    "ncmf": Style("NCMF", BLACK, "o"),
    "met": Style("MET + NCM", PINK, "P"),
    "svm": Style("multi-class SVM", SKY, "X"),
    "knn": Style("kNN", ORANGE, "D"),
    "rf": Style("RF", RED, "s"),
    "ncm": Style("NCM", GREY, "v"),
}
GROWING_STYLES = {
    **STYLES,
    "met": Style("MET + NCM", PINK, "P"),
    "met_low_rank": Style("MET + NCM,\nlow rank", GREY, "X"),
}


def runs(lab: Lab) -> list[Run]:
    """One run per panel, data set, seed and method."""
    found: list[Run] = []
    for name in data_names(lab, *SOURCES):
        wanted = lab.scaled(WORDS_END if name == "words" else END, QUICK_END)
        end = last_class(lab, name, wanted)
        place = {"data": name, "end": end, "at": [*(n for n in SIZES if n < end), end]}
        found += [
            {"panel": "a", **place, "chunk": EVERY, "method": method, "seed": seed}
            for seed in lab.seeds()
            for method in RIVALS
        ]
    return found + _growing_runs(lab)


def _growing_runs(lab: Lab) -> list[Run]:
    name = data_names(lab, "features")[0]
    end = last_class(lab, name, lab.scaled(END, QUICK_END))
    return [
        {
            "panel": panel,
            "data": name,
            "initial": initial,
            "end": end,
            "at": points(initial, end, EVERY),
            "method": method,
            "seed": seed,
        }
        for panel, initial in INITIAL.items()
        if initial < end
        for seed in lab.seeds()
        for method in (BASELINE, *STRATEGIES, *METRICS)
    ]


def measure(lab: Lab, run: Run) -> list[Row]:
    """Train a rival anew at every size, or follow the stream from the first classes on."""
    method, seed = run["method"], run["seed"]
    if run["panel"] == "a":
        learner: Learner = Retrained(partial(RIVALS[method], lab, seed))
        began = {**run, "initial": min(EVERY, run["end"])}
        return rows_of(run, KEYS, follow_run(lab, began, learner), timed=False)
    learner = _growing(lab, run)
    return rows_of(run, KEYS, follow_run(lab, run, learner), timed=method != BASELINE)


def _growing(lab: Lab, run: Run) -> Learner:
    method, seed = run["method"], run["seed"]
    if method == BASELINE:
        return retrained(lab, seed)
    if method in METRICS:
        learner: Learner = METRICS[method](seed, lab.dataset(run["data"]).X_train.shape[1])
        return learner
    return forest(lab, seed, update=method)


def _parts(table: Table) -> list[tuple[str, str]]:
    return [*dict.fromkeys((row["panel"], row["data"]) for row in table)]


def draw(figure: Figure, table: Table) -> None:
    """Panel a for each data set, then b and c, each with a legend beside it."""
    parts = _parts(table)
    grid = [axes for row in panels(figure, (len(parts) + 1) // 2, 2, height=2.9) for axes in row]
    for axes in grid[len(parts) :]:
        axes.set_axis_off()
    for axes, (panel, data) in zip(grid, parts, strict=False):
        chosen = table.where(panel=panel, data=data)
        for method, style in (RIVAL_STYLES if panel == "a" else GROWING_STYLES).items():
            curve = chosen.where(method=method).curve("n_classes", "accuracy")
            plot_curve(axes, curve, style, scale=100)
        axes.set(title=f"{panel}) {_said(panel, data)}", xlabel="classes", ylabel="accuracy, %")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)


def _said(panel: str, data: str) -> str:
    how = f"{INITIAL[panel]} initial classes" if panel in INITIAL else "trained on all at once"
    return f"{DATA_NAMES[data]}, {how}"


def judge(table: Table) -> list[Finding]:
    """What the paper says of each panel."""
    found: list[Finding] = []
    for panel, data in _parts(table):
        part = table.where(panel=panel, data=data)
        first, last = (part.where(n_classes=f(part.values("n_classes"))) for f in (min, max))
        where = f"{_said(panel, data)}, {max(part.values('n_classes'))} classes"
        if panel == "a":
            found += [_leads(last, where), _comparable(last, where), _better(last, where)]
        else:
            found += [_order(last, where), *_metrics(first, last, where), _times(last, where)]
    return found


def _listed(last: Table, styles: dict[str, Style], names: tuple[str, ...]) -> str:
    shown = (f"{styles[n].label} {plus_minus(last, 'accuracy', method=n)}" for n in names)
    return ", ".join(shown).replace("\n", " ")


def _leads(last: Table, where: str) -> Finding:
    gaps = [gain(last, "accuracy", "method", name, "ncmf") for name in ("ncm", "rf")]
    return Finding(
        "In the paper the forest of class means beats plain class means and a forest of thresholds "
        f"by at least {LEAD} points.",
        f"On {where}: {_listed(last, RIVAL_STYLES, ('ncmf', 'ncm', 'rf'))} %.",
        combined(gap.above(LEAD / 100) for gap in gaps),
    )


def _comparable(last: Table, where: str) -> Finding:
    gap = gain(last, "accuracy", "method", "ncmf", "met")
    return Finding(
        "In the paper class means with a metric learnt on all classes are as good as the forest or "
        f"slightly better; up to {COMPARABLE} points count as that.",
        f"On {where} the metric is {100 * gap.difference:+.1f} points from the forest.",
        gap.within(COMPARABLE / 100),
    )


def _better(last: Table, where: str) -> Finding:
    return Finding(
        "In the paper the forest also beats nearest neighbours and a multi-class SVM.",
        f"On {where}: {_listed(last, RIVAL_STYLES, ('ncmf', 'knn', 'svm'))} %.",
        leads(last, "accuracy", {"method": "ncmf"}, [{"method": "knn"}, {"method": "svm"}]),
    )


def _order(last: Table, where: str) -> Finding:
    names = (*STRATEGIES, BASELINE)
    return Finding(
        "The paper orders by accuracy: IGT, RUST, RTST, the retrained forest; ULS is far below.",
        f"On {where}: {_listed(last, GROWING_STYLES, names)} %.",
        increasing(last, "accuracy", "method", names),
    )


def _metrics(first: Table, last: Table, where: str) -> list[Finding]:
    kinds = {"met_low_rank": "of low rank, as the paper's,", "met": "in all dimensions"}
    found = []
    for name, kind in kinds.items():
        others = ("igt", "rust", "rtst")
        above = [gain(last, "accuracy", "method", name, other).verdict for other in others]
        found.append(
            Finding(
                "In the paper class means with a metric learnt on the initial classes alone fall "
                "below IGT, RUST and RTST.",
                f"With a metric {kind} on {where}: "
                f"{_listed(last, GROWING_STYLES, (name, *others))} %. On the classes it was learnt "
                f"from it has {plus_minus(first, 'accuracy', method=name)} %, the forest "
                f"{plus_minus(first, 'accuracy', method=BASELINE)} %.",
                combined(above),
            )
        )
    return found


def _times(last: Table, where: str) -> Finding:
    seconds, tests = (
        {s: last.mean(column, method=s) for s in PAPER_SECONDS}
        for column in ("seconds", "comparisons")
    )
    names = ("igt", "rust", "rtst")
    training = ", ".join(
        f"{STYLES[n].label} {seconds[n] / seconds['uls']:.0f} times ULS "
        f"({PAPER_SECONDS[n] / PAPER_SECONDS['uls']:.0f} in the paper)"
        for n in names
    )
    testing = ", ".join(
        f"{STYLES[n].label} {tests[n] / tests[BASELINE]:.2f} "
        f"({PAPER_MILLISECONDS[n] / PAPER_MILLISECONDS[BASELINE]:.2f})"
        for n in STRATEGIES
    )
    rising = {"seconds": STRATEGIES, "comparisons": (*STRATEGIES, BASELINE)}
    orders = [
        increasing(last, column, "method", values, few_seeds_noise=ANYTHING)
        for column, values in rising.items()
    ]
    return Finding(
        "In the paper ULS is by far the fastest to train, then IGT, RUST and RTST; ULS is also the "
        f"fastest to test and the retrained forest the slowest. IGT at {FAR} times the training of "
        "ULS or more counts as by far; the paper's sizes are for 1000 classes.",
        f"On {where}, training: {training}; distances at test time as shares of the retrained "
        f"forest's, beside the paper's times: {testing}.",
        combined([seconds["igt"] >= FAR * seconds["uls"], *orders]),
    )


EXPERIMENT = Experiment(
    name="cvpr2014-fig10",
    title="Fig. 10 of Ristin et al. 2014: other classifiers, and a metric learnt on few classes",
    shows="Accuracy of NCMF and other classifiers; of growing forests and a fixed metric.",
    sources=SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=KEYS,
    exact=("accuracy", "newest", "comparisons", "n_distances"),
    timed=("seconds",),
    size=(9.5, 6.0),
    notes=(
        *NOTES,
        "The paper prints no accuracies of this figure, only its curves, so none are drawn beside "
        "ours. Its total training times go to 1000 classes; ours to 100.",
        "Panel a has visual words up to 50 classes only, panels b and c features only: more would "
        "take longer than all the rest.",
        "On the built-in mixture, which quick runs use, plain class means are as good as can be.",
        "RF is our forest of random thresholds; on 50 classes of features, one seed, it had 65.8 % "
        "and scikit-learn's random forest 64.1 %.",
        "The paper chose parameters by cross-validation, we did not. The multi-class SVM is that "
        "of Crammer and Singer on standardised features with C = 0.001; 0.01 gave the same on the "
        "test images of 50 classes, nothing else was tried. kNN asks 10 neighbours, the only "
        "number tried. All others have their defaults.",
        "The paper's metric is a projection of low rank, which rank it does not print. Ours keeps "
        "all dimensions by default and starts from Fisher's discriminants. Both that and one with "
        "an eighth of the dimensions are measured and judged apart, because the claim depends on "
        "it. The eighth is the only low rank tried, and it was set after the default had come out "
        "above IGT. With all dimensions and `shrinkage=1`, one seed had 56.0 % from 10 and 58.6 % "
        "from 20 initial classes.",
    ),
)
