"""One new class of few images next to many classes of hundreds."""

from __future__ import annotations

import numpy as np

from evergrow import NCMClassifier, RLSClassifier
from evergrow.research import experiments as ex
from evergrow.research.papers.guide import heads
from evergrow.research.papers.guide.images_per_class import few_of_each
from evergrow.research.peers import StreamingLDAClassifier

PAPER = "least squares, choices of the paper"
NAMES = (heads.OURS, PAPER, heads.MEANS, heads.LDA)
# Images of each of the other classes.
MANY, QUICK_MANY = 450, 60
# How far the default may lie below.
NOT_BELOW = 0.005


def _make(name: str, seed: int) -> RLSClassifier | NCMClassifier | StreamingLDAClassifier:
    if name == PAPER:
        return RLSClassifier(selection="paper", scoring="regression", random_state=seed)
    made: RLSClassifier | NCMClassifier | StreamingLDAClassifier = heads.HEADS[name](0, seed)
    return made


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return context.grid(data=context.names, learner=NAMES, seed=context.seeds(5))


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    """Teach all classes but one, then the images of that one class, a few at a time."""
    seed = run["seed"]
    data = few_of_each(context.dataset(run["data"]), context.scaled(MANY, QUICK_MANY), seed)
    new = np.random.default_rng(seed).choice(data.classes)
    mine, tested = data.y_train == new, data.y_test == new
    model = _make(run["learner"], seed).fit(data.X_train[~mine], data.y_train[~mine])
    rows: list[ex.Row] = []
    known = 0
    for images in context.scaled((1, 3, 10, 50), (1, 3, 10)):
        part = np.flatnonzero(mine)[known:images]
        model.partial_fit(data.X_train[part], data.y_train[part])
        known = images
        right = model.predict(data.X_test) == data.y_test
        rows.append(
            {
                **run,
                "images": images,
                "new_class": float(right[tested].mean()),
                "others": float(right[~tested].mean()),
            }
        )
    return rows


def draw(figure: ex.Figure, table: ex.Table) -> None:
    panels = figure.subplots(1, 2)
    for axes, column, title in zip(
        panels, ("new_class", "others"), ("the new class", "the others"), strict=True
    ):
        heads.draw_heads(axes, table, "images", NAMES, column)
        axes.set_title(title)
        axes.set_xlabel("images of the new class")
        ex.set_log_ticks(axes, table.values("images"))
    panels[0].set_ylabel("accuracy, %")
    ex.add_legend(figure, panels[-1], place="right center")


def summarize(table: ex.Table) -> str:
    parts = []
    for column, title in (("new_class", "the new class"), ("others", "all other classes")):
        rows = ex.Table([{**row, "accuracy": row[column]} for row in table])
        shown = heads.format_table(rows, NAMES, "images")
        parts.append(f"Accuracy on {title} in %, by images of the new class:\n\n{shown}")
    return "\n\n".join(parts)


def judge(table: ex.Table) -> list[ex.Finding]:
    findings = []
    for images in table.values("images"):
        few = table.where(images=images)
        sides: list[ex.Row] = [{"learner": name} for name in (heads.OURS, PAPER)]
        new, others = (ex.compare_means(few, column, *sides) for column in ("new_class", "others"))
        findings.append(
            ex.Finding(
                f"With {images} {'image' if images == 1 else 'images'} of a new class, the default "
                "knows it and the other classes at least as well as the choices of the paper do "
                "(at most half a point less).",
                f"Its lead is {100 * new.mean:+.1f} points on the new class and "
                f"{100 * others.mean:+.1f} on the others.",
                ex.combine_verdicts(gap.above(-NOT_BELOW) for gap in (new, others)),
            )
        )
    return findings


EXPERIMENT = ex.Experiment(
    name="guide-new-class",
    title="One new class next to many",
    shows="accuracy on a new class of 1 to 50 images and on the classes of 450 next to it",
    sources={"small photographs": heads.SOURCES["small photographs"]},
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "learner", "images", "seed"),
    exact=("new_class", "others"),
    timed=(),
    size=(9.5, 3.2),
    notes=(
        "Every draw has another new class and other images. The choices of the paper are those "
        "of Camoriano et al.: they hold out every sixth image to choose parameters, and score "
        "classes by plain regression.",
        f"In a full run, the data are embeddings of CIFAR-100, with {MANY} images of each of the "
        "99 other classes. Quick runs use scikit-learn's digits.",
    ),
    summarize=summarize,
)
