"""Linear heads on features of images: ours, those of the field, and how they are compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from evergrow import NCMClassifier, RLSClassifier
from evergrow.foundation.arrays import Array
from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, digits, mixture
from evergrow.research.peers import (
    FlyCLClassifier,
    KLDAClassifier,
    RanPACClassifier,
    StreamingLDAClassifier,
)

# From the number of random features and a seed to an untrained classifier.
Make = Callable[[int, int], Any]

OURS = "least squares"
OURS_RANDOM = "least squares, random features"
OURS_AUTO = "least squares, as many random features as help"
MEANS, LDA = "class means", "streaming LDA"
RANPAC = "RanPAC"
BEST = "best fixed penalty in hindsight"

HEADS: dict[str, Make] = {
    OURS: lambda _, seed: RLSClassifier(random_state=seed),
    OURS_RANDOM: lambda width, seed: RLSClassifier(n_random_features=width, random_state=seed),
    OURS_AUTO: lambda _, seed: RLSClassifier(n_random_features="auto", random_state=seed),
    MEANS: lambda *_: NCMClassifier(),
    LDA: lambda *_: StreamingLDAClassifier(),
    RANPAC: lambda width, seed: RanPACClassifier(width, random_state=seed),
    "Fly-CL": lambda width, seed: FlyCLClassifier(width, random_state=seed),
    "KLDA": lambda width, seed: KLDAClassifier(width, random_state=seed),
    "logistic regression": lambda *_: make_pipeline(
        Normalizer(), LogisticRegression(C=10.0, max_iter=200)
    ),
}

# Penalties to look back on, relative to the variance of the features summed over the examples.
PENALTIES: tuple[float, ...] = tuple(10.0 ** (k / 2) for k in range(-7, 5))

SOURCES = {
    "objects": ex.Source("caltech101_efflite0_224.npz", partial(mixture, 20, 64, 20, 20)),
    "birds": ex.Source("cub200_efflite0_224.npz", partial(mixture, 30, 48, 20, 10, distance=0.5)),
    "small photographs": ex.Source("cifar100_efflite0_pca256.npz", digits),
}


def predict(head: str, data: Dataset, width: int, seed: int) -> Array:
    """Train a head on all training samples and predict the test samples."""
    if head == BEST:
        return predict_by_best_penalty(data)
    model = HEADS[head](width, seed)
    with warnings.catch_warnings():
        # One example of each of many classes looks like a regression to scikit-learn.
        warnings.filterwarnings("ignore", "The number of unique classes")
        model.fit(data.X_train, data.y_train)
    predicted: Array = model.predict(data.X_test)
    return predicted


def predict_by_best_penalty(data: Dataset) -> Array:
    """Predict with the fixed penalty that is best on the test samples; no learner can know it."""
    unit = float(data.X_train.var(axis=0, dtype=np.float64).mean()) * len(data.y_train)
    model = RLSClassifier(regularization=unit, recoding=0.0).fit(data.X_train, data.y_train)
    found: list[Array] = []
    for penalty in PENALTIES:
        model.set_params(regularization=penalty * unit)
        found.append(model.predict(data.X_test))
    return max(found, key=lambda predicted: float(np.mean(predicted == data.y_test)))


def compare_heads(table: ex.Table, one: str, other: str) -> ex.Difference:
    """How much more accurate one head is than another, from draws that both had."""
    return ex.compare_means(table, "accuracy", {"learner": one}, {"learner": other})


def format_points(table: ex.Table, one: str, others: Iterable[str]) -> str:
    """The difference to each of the others in points, as text."""
    found = {other: 100 * compare_heads(table, one, other).mean for other in others}
    return ", ".join(f"{ex.say_signed(gap)} against {other}" for other, gap in found.items())


def draw_heads(
    axes: ex.Axes, table: ex.Table, x: str, names: Sequence[str], column: str = "accuracy"
) -> None:
    """One curve per head in percent, with the same colour and marker in all panels."""
    for place, name in enumerate(names):
        curve = table.curve(x, column, learner=name)
        axes.errorbar(
            curve.x,
            100 * curve.mean,
            100 * curve.deviation,
            color=ex.COLOURS[place % len(ex.COLOURS)],
            marker=ex.MARKERS[place % len(ex.MARKERS)],
            linestyle="-" if place < len(ex.COLOURS) else "--",
            capsize=2,
            label=name,
        )


def format_table(table: ex.Table, names: Sequence[str], key: str, *, head: str = "learner") -> str:
    """A Markdown table of accuracies in %: one row per head, one column per value of a key."""
    values = table.values(key)
    lines = [f"| {head} | {' | '.join(map(str, values))} |", "|---" * (len(values) + 1) + "|"]
    for name in names:
        parts = (table.where(learner=name, **{key: value}) for value in values)
        cells = (ex.format_mean(part, "accuracy") if len(part) else "" for part in parts)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
