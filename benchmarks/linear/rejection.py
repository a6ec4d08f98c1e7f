"""How many examples of unknown classes are noticed, at how many false alarms."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.data import Array, Split, bird_features, image_features, mixture, object_features
from benchmarks.measure import Figure, report, show_table
from evergrow import RejectingClassifier, RLSClassifier

__all__ = ["novelties", "run"]

Measure = Literal["cosine", "estimator"]


def novelties(
    split: Split, n_known: int, seed: int, measure: Measure = "cosine"
) -> tuple[RejectingClassifier, Array, Array]:
    """A model of some of the classes, the novelty of all test examples, and which are known."""
    classes = np.random.default_rng(seed).permutation(np.unique(split.y))[:n_known]
    known, known_test = np.isin(split.y, classes), np.isin(split.y_test, classes)
    # Numbers for the parameters: rejection is measured, not their choice.
    inside = RLSClassifier(regularization=50.0, recoding=0.0)
    model = RejectingClassifier(inside, measure=measure, random_state=0)
    model.fit(split.X[known], split.y[known])
    return model, model.novelty(split.X_test), known_test


def _outcome(split: Split, n_known: int, seed: int, measure: Measure) -> tuple[float, float, float]:
    """Percent of unknown examples rejected, of known ones rejected, and the area under the ROC."""
    model, novelty, known = novelties(split, n_known, seed, measure)
    rejected = novelty > model.level_
    area = float(roc_auc_score(~known, novelty))
    return 100 * float(rejected[~known].mean()), 100 * float(rejected[known].mean()), area


def run(quick: bool) -> None:
    """Caltech with 60 known classes carries the bar; the others show where it is hard."""
    splits = (
        [(mixture(2000, 64, 40, n_test=2000), 20)]
        if quick
        else [(object_features(), 60), (bird_features(), 100), (image_features(), 50)]
    )
    rows, figures = [], []
    for split, n_known in splits:
        is_caltech = split.name.startswith("Caltech")
        for measure in get_args(Measure):
            seeds = range(20) if is_caltech else range(3)
            found = np.array([_outcome(split, n_known, seed, measure) for seed in seeds])
            means = found.mean(axis=0).tolist()
            rows.append((f"{split.name}, {n_known} known, {measure}", len(found), *means))
            if is_caltech and measure == "cosine":
                figures = [
                    Figure("unknown rejected %, 3 splits", float(found[:3, 0].mean()), 75),
                    Figure("false alarms %, 3 splits", float(found[:3, 1].mean())),
                    Figure("unknown rejected %, 20 splits", means[0], 75),
                    Figure("false alarms %, 20 splits", means[1]),
                    Figure("spread over splits (standard deviation)", float(found[:, 0].std())),
                ]
    columns = ["", "splits", "unknown rejected %", "false alarms %", "area under ROC"]
    show_table("linear: rejection at 10 % false alarms", columns, rows)
    if figures:
        report("linear", "Caltech features, 60 known, 42 unknown classes", figures)
