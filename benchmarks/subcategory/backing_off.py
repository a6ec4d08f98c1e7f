"""Answers that fall back to the coarse class when the fine one is not sure enough."""

from __future__ import annotations

import numpy as np

from benchmarks.data import Array
from benchmarks.measure import show_table
from benchmarks.subcategory.bench import Bench, made
from benchmarks.subcategory.data import TwoLevels
from evergrow.experiments import Table
from evergrow.experiments.cvpr2015.levels import draw
from evergrow.experiments.cvpr2015.trials import Values

__all__ = ["THRESHOLDS", "answers_at", "back_off", "curve"]

THRESHOLDS = tuple(round(0.05 * k, 2) for k in range(20))


def answers_at(
    threshold: float, fine: Array, fine_right: Array, coarse_right: Array
) -> tuple[float, float]:
    """Share of answers that are right, and share of them that name a fine class.

    ``fine`` is the probability of the likeliest fine class of each sample.
    """
    specific = fine >= threshold
    return float(np.where(specific, fine_right, coarse_right).mean()), float(specific.mean())


def curve(bench: Bench, data: TwoLevels, method: str, share: float) -> Table:
    """Accuracy and specificity at every threshold."""

    def measure(seed: int) -> Values:
        shown = draw(data, seed, share, 0.5)
        model = made(method, bench.n_trees, seed).fit(shown.X, shown.labels)
        fine, coarse = (model.predict_proba(data.X_test, level=a) for a in ("fine", "coarse"))
        fine_right = model.classes_[fine.argmax(axis=1)] == data.fine_test
        coarse_right = model.coarse_classes_[coarse.argmax(axis=1)] == data.coarse_test
        values = {}
        for threshold in THRESHOLDS:
            right, specific = answers_at(threshold, fine.max(axis=1), fine_right, coarse_right)
            values[f"right at {threshold}"] = right
            values[f"fine at {threshold}"] = specific
        return values

    def run(seed: int) -> Values:
        key = {"data": data.name, "back off": method, "fine": share}
        return bench.results.of(
            {**key, "trees": bench.n_trees, "seed": seed}, lambda: measure(seed)
        )

    return Table(run(seed) for seed in bench.seeds)


def back_off(bench: Bench, data: TwoLevels) -> None:
    """A table over thresholds, for models that know few fine labels and many."""
    curves = {share: curve(bench, data, "ridge-h", share) for share in (0.1, 0.5)}
    rows = [
        (
            f"back_off={threshold}",
            *(
                f"{100 * found.mean(f'{what} at {threshold}'):.1f}"
                for found in curves.values()
                for what in ("right", "fine")
            ),
        )
        for threshold in THRESHOLDS[::2]
    ]
    heads = [
        f"{share:.0%} fine: {what}" for share in curves for what in ("right, %", "specific, %")
    ]
    show_table(f"back off: {data.name}, ridge-h", ["", *heads], rows)
