"""The learners to choose from, and how their curves look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evergrow import RUST, NCMClassifier, NCMForestClassifier, RLSClassifier
from evergrow.research.experiments.drawing import COLOURS, MARKERS
from evergrow.research.streams import Retrained

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evergrow.research.experiments.lab import Lab
    from evergrow.research.experiments.table import Table

__all__ = ["FIXED_SQUARES", "LEARNERS", "best", "draw_curves", "learner_of"]

Make = Callable[["Lab", int], Any]

RECOMMENDED_FOREST = "forest, RUST with refresh"


def _forest(**options: Any) -> Make:
    return lambda lab, seed: NCMForestClassifier(n_jobs=lab.n_jobs, random_state=seed, **options)


def _retrained(lab: Lab, seed: int) -> Retrained:
    return Retrained(lambda: _forest()(lab, seed))


LEARNERS: dict[str, Make] = {
    "least squares": lambda _, seed: RLSClassifier(random_state=seed),
    "least squares, random features": lambda lab, seed: RLSClassifier(
        n_random_features=lab.scaled(2000, 200), random_state=seed
    ),
    "class means": lambda *_: NCMClassifier(),
    "streaming LDA": lambda *_: NCMClassifier(metric="mahalanobis"),
    "forest, IGT": _forest(update="igt"),
    RECOMMENDED_FOREST: _forest(update=RUST(share=0.3), refresh=0.1),
    "forest, RTST": _forest(update="rtst"),
    "forest, retrained": _retrained,
}


# Choosing penalty and recoding again scores held-out examples against every class.
FIXED_SQUARES = "least squares, choices fixed"
_MORE: dict[str, Make] = {
    FIXED_SQUARES: lambda _, seed: RLSClassifier(
        regularization=1.0, recoding=0.5, random_state=seed
    ),
}


def learner_of(lab: Lab, name: str, seed: int) -> Any:
    """A learner that has learnt nothing yet."""
    return {**LEARNERS, **_MORE}[name](lab, seed)


def draw_curves(axes: Axes, table: Table, x: str, y: str, *, scale: float = 1.0) -> None:
    """One curve per learner, each with its own colour and shape for all pictures."""
    for i, name in enumerate((*LEARNERS, *_MORE)):
        curve = table.curve(x, y, learner=name)
        if not len(curve.x):
            continue
        axes.errorbar(
            curve.x,
            scale * curve.mean,
            scale * curve.deviation,
            color=COLOURS[i % len(COLOURS)],
            marker=MARKERS[i % len(MARKERS)],
            linestyle="-" if i < len(COLOURS) else "--",
            capsize=2,
            label=name,
        )


def best(table: Table, names: Sequence[str], column: str = "accuracy") -> tuple[str, float]:
    """Which of these learners has the highest mean, and that mean."""
    means = {name: table.mean(column, learner=name) for name in names}
    found = max((name for name in means if means[name] == means[name]), key=means.__getitem__)
    return found, means[found]
