"""The learners to choose from, and how their curves look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from evergrow import NCMClassifier, NCMForestClassifier, RLSClassifier
from evergrow.research import experiments as ex
from evergrow.research.datasets import mixture
from evergrow.research.streams import Retrained

Make = Callable[[ex.ExperimentContext, int], Any]

# The data of experiments on features of images.
FEATURES = {
    "features": ex.Source("cifar100_efflite0_pca256.npz", partial(mixture, 20, 64, 100, 20))
}

# As installed: it grows its leaves, and trees that fall behind are grown again.
FOREST = "forest"
RETRAINED = "forest, retrained"


def _forest(context: ex.ExperimentContext, seed: int, **options: Any) -> NCMForestClassifier:
    return NCMForestClassifier(n_jobs=context.n_jobs, random_state=seed, **options)


LEARNERS: dict[str, Make] = {
    "least squares": lambda _, seed: RLSClassifier(random_state=seed),
    "least squares, random features": lambda context, seed: RLSClassifier(
        n_random_features=context.scaled(2000, 200), random_state=seed
    ),
    "class means": lambda *_: NCMClassifier(),
    "streaming LDA": lambda *_: NCMClassifier(metric="mahalanobis"),
    FOREST: _forest,
    "forest, IGT without refresh": partial(_forest, update="igt", refresh=0.0),
    "forest, RTST": partial(_forest, update="rtst", refresh=0.0),
    RETRAINED: lambda context, seed: Retrained(partial(_forest, context, seed)),
}


# Choosing penalty and recoding again evaluates the holdout for every class.
FIXED_SQUARES = "least squares, choices fixed"
_MORE: dict[str, Make] = {
    FIXED_SQUARES: lambda _, seed: RLSClassifier(
        regularization=1.0, recoding=0.5, random_state=seed
    ),
}


def learner_of(context: ex.ExperimentContext, name: str, seed: int) -> Any:
    """A new, untrained learner."""
    return {**LEARNERS, **_MORE}[name](context, seed)


def draw_curves(axes: ex.Axes, table: ex.Table, x: str, y: str, *, scale: float = 1.0) -> None:
    """One curve per learner, with the same colour and marker in all figures."""
    for i, name in enumerate((*LEARNERS, *_MORE)):
        curve = table.curve(x, y, learner=name)
        if not len(curve.x):
            continue
        axes.errorbar(
            curve.x,
            scale * curve.mean,
            scale * curve.deviation,
            color=ex.COLOURS[i % len(ex.COLOURS)],
            marker=ex.MARKERS[i % len(ex.MARKERS)],
            linestyle="-" if i < len(ex.COLOURS) else "--",
            capsize=2,
            label=name,
        )


def best(table: ex.Table, names: Sequence[str], column: str = "accuracy") -> tuple[str, float]:
    """The learner with the highest mean, and that mean."""
    means = {name: table.mean(column, learner=name) for name in names}
    found = max((name for name in means if means[name] == means[name]), key=means.__getitem__)
    return found, means[found]


def draw_panels(
    figure: ex.Figure, table: ex.Table, x: str, panels: Sequence[tuple[str, str, float, str]]
) -> list[ex.Axes]:
    """Panels side by side: column, label, factor and scale of the y axis of each; one legend."""
    row = list(figure.subplots(1, len(panels)))
    for axes, (column, label, factor, kind) in zip(row, panels, strict=True):
        draw_curves(axes, table, x, column, scale=factor)
        axes.set_yscale(kind)
        axes.set_xlabel("classes known")
        axes.set_ylabel(label)
    ex.add_legend(figure, row[-1], place="right center")
    return row
