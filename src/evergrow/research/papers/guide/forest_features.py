"""What a forest does to its features: scaled, whitened, as they are, or after a learnt metric."""

from __future__ import annotations

import time
from typing import Any

from sklearn.pipeline import make_pipeline

from evergrow import NCMForestClassifier, NCMMetric
from evergrow.research import experiments as ex
from evergrow.research.datasets import digits
from evergrow.research.papers.guide import heads
from evergrow.research.papers.report.protocol import WORDS
from evergrow.research.streams import ClassStream, follow

AUTO, SCALE, NONE = 'standardize="auto"', 'standardize="scale"', 'standardize="none"'
METRIC = "a learnt metric in front"
NAMES = (AUTO, SCALE, NONE, METRIC)
SOURCES = {
    **heads.SOURCES,
    "words": WORDS["cifar100_words1000"],
    "pixels": ex.Source("mnist.npz", digits),
}
# Classes that a stream begins with; 0 for all classes at once.
INITIAL, QUICK_INITIAL = (0, 3, 10, 20), (0, 3)
CHUNK = 10
# How far "auto" may lie below.
NOT_BELOW = 0.003


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    seeds = context.seeds(5)
    at_once = context.grid(data=context.names, learner=NAMES, initial=[0], seed=seeds)
    begun = context.scaled(INITIAL, QUICK_INITIAL)[1:]
    named = [name for name in context.names if len(context.dataset(name).classes) > begun[-1]]
    return at_once + context.grid(data=named, learner=(AUTO, SCALE), initial=begun, seed=seeds)


def _make(context: ex.ExperimentContext, name: str, seed: int) -> Any:
    n_trees = context.scaled(50, 10)
    forest = NCMForestClassifier(n_trees, n_jobs=context.n_jobs, random_state=seed)
    forest.set_params(standardize={SCALE: "scale", NONE: "none"}.get(name, "auto"))
    return make_pipeline(NCMMetric(random_state=seed), forest) if name == METRIC else forest


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data, model = context.dataset(run["data"]), _make(context, run["learner"], run["seed"])
    start = time.perf_counter()
    if run["initial"] == 0:
        model.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - start
        accuracy = float((model.predict(data.X_test) == data.y_test).mean())
    else:
        n_classes = len(data.classes)
        stream = ClassStream(
            run["initial"], CHUNK, repetitions=run["seed"] + 1, measure_at=[n_classes]
        )
        (last,) = follow(model, data, stream, run["seed"], ask="measured")
        accuracy, seconds = last.accuracy, last.seconds
    kind = (model[-1] if run["learner"] == METRIC else model).standardize_
    return [{**run, "features": kind, "accuracy": accuracy, "seconds": seconds}]


def draw(figure: ex.Figure, table: ex.Table) -> None:
    names = table.values("data")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        rows = table.where(data=name)
        places = table.values("initial")
        for place, learner in enumerate(NAMES):
            for at, initial in enumerate(places):
                few = rows.where(learner=learner, initial=initial)
                if len(few):
                    axes.errorbar(
                        at + 0.15 * (place - 1.5),
                        100 * few.mean("accuracy"),
                        100 * few.deviation("accuracy"),
                        color=ex.COLOURS[place],
                        marker=ex.MARKERS[place],
                        capsize=2,
                        label=learner if at == 0 else None,
                    )
        axes.set_xticks(range(len(places)), ["all" if n == 0 else str(n) for n in places])
        axes.set_title(name)
        axes.set_xlabel("classes at first")
    panels[0].set_ylabel("accuracy, %")
    ex.add_legend(figure, panels[-1], place="right center")


def judge(table: ex.Table) -> list[ex.Finding]:
    def look(rows: ex.Table) -> ex.Seen:
        gap = heads.compare_heads(rows, AUTO, SCALE)
        kinds = '" or "'.join(map(str, rows.where(learner=AUTO).values("features")))
        return f'{100 * gap.mean:+.1f} points; "auto" chose "{kinds}"', gap.above(-NOT_BELOW)

    findings = []
    for initial in table.values("initial"):
        start = "all classes at once" if initial == 0 else f"{initial} classes at first"
        claim = (
            f'With {start}, `standardize="auto"` is at most {100 * NOT_BELOW:.1f} points below '
            '`standardize="scale"`.'
        )
        findings += ex.findings_by_data(table.where(initial=initial), [ex.Claim(claim, look)])
    return findings


def summarize(table: ex.Table) -> str:
    parts = []
    for initial in table.values("initial"):
        start = "All classes at once" if initial == 0 else f"{initial} classes, then ten at a time"
        rows = table.where(initial=initial)
        names = [name for name in NAMES if len(rows.where(learner=name))]
        parts.append(f"{start}, accuracy in %:\n\n{heads.format_table(rows, names, 'data')}")
    return "\n\n".join(parts)


EXPERIMENT = ex.Experiment(
    name="guide-forest-features",
    title="Features of a forest",
    shows="accuracy of forests whose features are scaled, whitened, as they are, or learnt",
    sources=SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "learner", "initial", "seed"),
    exact=("features", "accuracy"),
    timed=("seconds",),
    size=(13.5, 3.0),
    notes=(
        "Forests have 50 trees. The transform of the features is chosen on the first classes, "
        "and again while these are few. Streams add ten classes at a time, in another "
        "order for every seed.",
        "In a full run objects are Caltech-101, birds CUB-200, small photographs CIFAR-100 and "
        "pixels MNIST; words are square roots of counts of visual words on CIFAR-100. Quick runs "
        "use generated classes and scikit-learn's digits.",
    ),
    summarize=summarize,
)
