"""The first pictures of every class: our default next to the heads of the field."""

from __future__ import annotations

import time

import numpy as np

from evergrow.research import experiments as ex
from evergrow.research.papers.guide import heads
from evergrow.research.papers.guide.images_per_class import few_of_each

# Random features in place of the input do not pay off with so few examples, so ours has none.
NAMES = (heads.OURS, heads.BEST, *(name for name in heads.HEADS if "least squares" not in name))
WIDTH, QUICK_WIDTH = 2000, 100

# How many points the default may lie below the best penalty, with up to two images and with more.
VERY_FEW, NEAR_VERY_FEW, NEAR = 2, 0.02, 0.01
# How many points it may lie below class means and streaming LDA.
NOT_BELOW = 0.005


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    images = context.scaled((1, 2, 3, 5, 10, 20), (1, 3, 10))
    return context.grid(data=context.names, images=images, learner=NAMES, seed=context.seeds(5))


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data = few_of_each(context.dataset(run["data"]), run["images"], run["seed"])
    start = time.perf_counter()
    width = context.scaled(WIDTH, QUICK_WIDTH)
    right = heads.predict(run["learner"], data, width, run["seed"]) == data.y_test
    seconds = time.perf_counter() - start
    by_class = [float(right[data.y_test == label].mean()) for label in np.unique(data.y_test)]
    return [
        {
            **run,
            "accuracy": float(right.mean()),
            "mean_over_classes": float(np.mean(by_class)),
            "seconds": seconds,
        }
    ]


def draw(figure: ex.Figure, table: ex.Table) -> None:
    names = table.values("data")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        heads.draw_heads(axes, table.where(data=name), "images", NAMES)
        axes.set_title(name)
        axes.set_xlabel("images per class")
        ex.set_log_ticks(axes, table.values("images"))
    panels[0].set_ylabel("accuracy, %")
    ex.add_legend(figure, panels[-1], place="right center")


def summarize(table: ex.Table) -> str:
    parts = []
    for name in table.values("data"):
        shown = heads.format_table(table.where(data=name), NAMES, "images")
        parts.append(f"Accuracy on {name} in %, by images per class:\n\n{shown}")
    return "\n\n".join(parts)


def _near_best(images: int, table: ex.Table) -> ex.Seen:
    found = heads.compare_heads(table, heads.OURS, heads.BEST)
    bound = NEAR_VERY_FEW if images <= VERY_FEW else NEAR
    return heads.format_points(table, heads.OURS, [heads.BEST]), found.above(-bound)


def _not_below(table: ex.Table) -> ex.Seen:
    others = (heads.MEANS, heads.LDA)
    verdicts = (heads.compare_heads(table, heads.OURS, o).above(-NOT_BELOW) for o in others)
    return heads.format_points(table, heads.OURS, others), ex.combine_verdicts(verdicts)


def _ahead(table: ex.Table) -> ex.Seen:
    peers = [name for name in NAMES if name not in (heads.OURS, heads.BEST)]
    verdicts = (heads.compare_heads(table, heads.OURS, peer).verdict for peer in peers)
    return heads.format_points(table, heads.OURS, peers), ex.combine_verdicts(verdicts)


def _why_behind(table: ex.Table) -> str:
    """Which heads are ahead, and whether another average or another penalty turns that."""
    parts = []
    for peer in NAMES[2:]:
        gap = heads.compare_heads(table, heads.OURS, peer)
        if gap.verdict.agrees:
            continue
        sides = {"learner": heads.OURS}, {"learner": peer}
        by_class = ex.compare_means(table, "mean_over_classes", *sides)
        hindsight = heads.compare_heads(table, heads.BEST, peer)
        parts.append(
            f"against {peer} {gap.interval}, averaged over classes {by_class.interval}, with "
            f"the best penalty in hindsight {hindsight.interval}"
        )
    (name,) = table.values("data")
    return f"On {name}, the default has {'; '.join(parts)}."


def _points(share: float) -> str:
    return "a point" if share == 0.01 else f"{100 * share:.0f} points"


def judge(table: ex.Table) -> list[ex.Finding]:
    findings = []
    for images in table.values("images"):
        few = table.where(images=images)
        shown = f"With {images} {'image' if images == 1 else 'images'} per class"
        near = NEAR_VERY_FEW if images <= VERY_FEW else NEAR
        claims: list[ex.Claim] = [
            ex.Claim(
                f"{shown}, the default is at most {_points(near)} below the best fixed "
                "penalty of a grid, chosen on the test images.",
                lambda rows, images=images: _near_best(images, rows),  # type: ignore[misc]
            ),
            ex.Claim(
                f"{shown}, the default is at most half a point below class means and streaming "
                "LDA.",
                _not_below,
                reason=_why_behind,
            ),
            ex.Claim(
                f"{shown}, the default is ahead of every other head.", _ahead, reason=_why_behind
            ),
        ]
        findings += ex.findings_by_data(few, claims)
    return findings


EXPERIMENT = ex.Experiment(
    name="guide-first-pictures",
    title="The first pictures of every class",
    shows="accuracy of least squares and of other heads of a network, 1 to 20 images per class",
    sources=heads.SOURCES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "learner", "images", "seed"),
    exact=("accuracy", "mean_over_classes"),
    timed=("seconds",),
    size=(12.5, 3.4),
    notes=(
        "Every draw takes other training images, the same for all learners; all test images count.",
        f"RanPAC, Fly-CL and KLDA have {WIDTH} random features. Logistic regression gets samples "
        "scaled to length 1 and remembers all of them. Their settings were chosen on other data.",
        "In a full run, objects are Caltech-101, birds are CUB-200 and small photographs are "
        "CIFAR-100, all as embeddings. Quick runs use generated classes and scikit-learn's "
        "digits.",
    ),
    summarize=summarize,
)
