"""A new class beside others with thousands of examples: table I of Camoriano 2017."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.data import Array, Split, mnist
from benchmarks.measure import Figure, report, show_table
from evergrow import RLSClassifier
from evergrow.experiments.icra2017.table1 import PRINTED
from evergrow.linear import RebalancedRLSClassifier

__all__ = ["METHODS", "NEW_COUNTS", "imbalanced", "run"]

NEW = 8
NEW_COUNTS = (1, 5, 10, 50, 100, 500)
METHODS = ("naive", "rebalanced", "recoded", "auto")


@dataclass(frozen=True)
class Trial:
    """Examples of the known classes, of the new one, and to test on."""

    known: tuple[Array, Array]
    new: tuple[Array, Array]
    test: tuple[Array, Array]


def _draw(split: Split, per_class: int, n_test: int, seed: int) -> Trial:
    rng = np.random.default_rng(seed)

    def some(y: Array, c: int, n: int) -> Array:
        return rng.permutation(np.flatnonzero(y == c))[:n]

    classes = np.unique(split.y).tolist()
    known = np.concatenate([some(split.y, c, per_class) for c in classes if c != NEW])
    new, known = some(split.y, NEW, max(NEW_COUNTS)), rng.permutation(known)
    test = np.concatenate([some(split.y_test, c, n_test) for c in classes])
    return Trial(
        (split.X[known], split.y[known]),
        (split.X[new], split.y[new]),
        (split.X_test[test], split.y_test[test]),
    )


def _accuracies(model: Any, trial: Trial) -> tuple[float, float]:
    """Percent right over all classes, and of the new class."""
    X, y = trial.test
    right = model.predict(X) == y
    return 100 * float(right.mean()), 100 * float(right[y == NEW].mean())


def imbalanced(split: Split, per_class: int, n_trials: int) -> dict[tuple[str, int], Array]:
    """Total and new-class accuracy per method and number of new examples, mean over trials."""
    results: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for seed in range(n_trials):
        trial = _draw(split, per_class, 200, seed)
        penalty = 0.01 * len(trial.known[0])
        growing = {
            "naive": RLSClassifier(regularization=penalty, recoding=0.0),
            "recoded": RLSClassifier(regularization=penalty, recoding=0.7),
            "auto": RLSClassifier(random_state=seed),
        }
        for model in growing.values():
            model.fit(*trial.known)
        taught = 0
        for count in [n for n in NEW_COUNTS if n <= len(trial.new[0])]:
            X, y = trial.new
            for model in growing.values():
                for i in range(taught, count):
                    model.partial_fit(X[i : i + 1], y[i : i + 1])
            taught = count
            # Its weights add up to ten times as much, so the same number is another penalty.
            rebalanced = RebalancedRLSClassifier(random_state=seed)
            rebalanced.fit(
                np.concatenate([trial.known[0], X[:count]]),
                np.concatenate([trial.known[1], y[:count]]),
            )
            for name, model in (*growing.items(), ("rebalanced", rebalanced)):
                results.setdefault((name, count), []).append(_accuracies(model, trial))
    return {key: np.mean(found, axis=0) for key, found in results.items()}


def run(quick: bool) -> None:
    """Every row of the table, the paper's figures beside ours."""
    split = mnist()
    is_mnist = split.name == "MNIST"
    per_class, n_trials = (1000 if is_mnist else 100), (1 if quick else 10)
    means = imbalanced(split, per_class, n_trials)
    counts = sorted({count for _, count in means})
    for which, title in enumerate(("all classes", f"the new class, digit {NEW}")):
        rows = []
        for n in counts:
            ours = [round(float(means[name, n][which]), 1) for name in METHODS]
            theirs = PRINTED[n][which] if is_mnist and n in PRINTED else ()
            printed = [f"{a} ({b})" for a, b in zip(ours, theirs, strict=False)]
            rows.append((n, *(printed or ours[:3]), ours[3]))
        show_table(
            f"linear: {split.name}, accuracy % on {title} (paper), {n_trials} trials",
            ["new examples", *METHODS],
            rows,
        )
    total, new = ({key: float(value[which]) for key, value in means.items()} for which in (0, 1))
    worst = min(total["auto", n] - total["naive", n] for n in counts)
    figures = [
        Figure("naive: new class at 10 %", new["naive", 10], 2, "at most"),
        Figure("recoded 0.7: new class at 10 %", new["recoded", 10], 40),
        Figure("recoded 0.7: new class at 100 %", new["recoded", 100], 65),
        Figure("recoded 0.7: all classes at 10 %", total["recoded", 10], 82),
        Figure("auto: new class at 10 %", new["auto", 10], 30),
        Figure("auto: points above naive, the worst row", worst, -0.5),
    ]
    report("linear", f"{split.name}, table I", figures, bars=is_mnist and not quick)
