"""What the coarse classes add to the choice of a split: the weight of their gain, and their means.

Fig. 3 of Ristin 2015 and the paragraph on it.
"""

from __future__ import annotations

from benchmarks.subcategory.data import TwoLevels
from benchmarks.subcategory.results import Summary
from benchmarks.subcategory.runs import Bench, Setting

__all__ = ["METHODS", "WEIGHTS", "class_means", "coarse_weight", "over_weights"]

METHODS = ("joint", "hierarchical")
WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
SHARES = (0.1, 0.5)


def over_weights(bench: Bench, data: TwoLevels, share: float) -> dict[str, dict[float, Summary]]:
    """Both methods over the weight of the coarse term."""
    weights = WEIGHTS[1:3] if bench.quick else WEIGHTS
    return {
        method: {
            weight: bench.summary(
                data, Setting(method, share, parameters={"coarse_weight": weight})
            )
            for weight in weights
        }
        for method in METHODS
    }


def coarse_weight(bench: Bench, data: TwoLevels) -> None:
    """Accuracy over the weight; the paper's best are 0.1 (joint) and 1 (hierarchical)."""
    for share in SHARES:
        found = over_weights(bench, data, share)
        rows = [
            (f"{method}, weight {weight:g}", summary.percent(), summary.mean("comparisons"))
            for method, by_weight in found.items()
            for weight, summary in by_weight.items()
        ]
        title = f"fig. 3: {data.name}, {share:.0%} fine"
        best = {
            method: max(by_weight, key=lambda weight: by_weight[weight].mean("accuracy"))
            for method, by_weight in found.items()
        }
        notes = [f"{method}: best at {weight:g}" for method, weight in best.items()]
        bench.results.show(title, ["", "accuracy, %", "comparisons"], rows, notes)


def class_means(bench: Bench, data: TwoLevels) -> None:
    """Means of both levels at the nodes, or of fine classes only (paper: 18.10 against 17.00)."""
    rows = []
    for share in SHARES:
        for method in (*METHODS, "nn-h", "ridge-h"):
            both, fine = (
                bench.summary(data, Setting(method, share, parameters={"class_means": level}))
                for level in ("both", "fine")
            )
            gained = 100 * (both.mean("accuracy") - fine.mean("accuracy"))
            rows.append((f"{method}, {share:.0%} fine", both.percent(), fine.percent(), gained))
    columns = ["", "means of both levels, %", "of fine classes, %", "points"]
    bench.results.show(f"class means: {data.name}", columns, rows)
