"""How many examples of unknown classes are noticed, at how many false alarms."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.data import Array, Split, bird_features, image_features, mixture, object_features
from benchmarks.measure import Figure, report, show_table
from evergrow import RejectingClassifier, RLSClassifier

Measure = Literal["cosine", "estimator"]

# Shares of known examples rejected at which the curve is shown.
ALARMS = (0.05, 0.1, 0.2)


def known_classes(split: Split, n_known: int, seed: int) -> tuple[Array, Array]:
    """Which training and which test examples are of some classes, chosen at random."""
    classes = np.random.default_rng(seed).permutation(np.unique(split.y))[:n_known]
    return np.isin(split.y, classes), np.isin(split.y_test, classes)


def novelties(
    split: Split, n_known: int, seed: int, measure: Measure = "cosine"
) -> tuple[RejectingClassifier, Array, Array]:
    """A model of some of the classes, the novelty of all test examples, and which are known."""
    taught, known = known_classes(split, n_known, seed)
    # Numbers for the parameters: rejection is measured, not their choice.
    inside = RLSClassifier(regularization=50.0, recoding=0.0)
    model = RejectingClassifier(inside, measure=measure, random_state=0)
    model.fit(split.X[taught], split.y[taught])
    return model, model.novelty(split.X_test), known


def _outcome(split: Split, n_known: int, seed: int, measure: Measure) -> list[float]:
    """Percent of unknown and of known examples rejected, the area, and points of the curve."""
    model, novelty, known = novelties(split, n_known, seed, measure)
    levels = [model.level_, *np.quantile(novelty[known], 1 - np.array(ALARMS))]
    found, *curve = (100 * float((novelty[~known] > level).mean()) for level in levels)
    alarms = 100 * float((novelty[known] > model.level_).mean())
    return [found, alarms, float(roc_auc_score(~known, novelty)), *curve]


def run(quick: bool) -> None:
    """Caltech with 60 known classes carries the bar; the others show where it is hard."""
    splits = (
        [(mixture(2000, 64, 40, n_test=2000), 20, 3)]
        if quick
        else [(object_features(), 60, 20), (bird_features(), 100, 3), (image_features(), 50, 3)]
    )
    rows = []
    for split, n_known, n_splits in splits:
        for measure in get_args(Measure):
            found = np.array([_outcome(split, n_known, seed, measure) for seed in range(n_splits)])
            name = f"{split.name}, {n_known} known, {measure}"
            rows.append((name, n_splits, *found.mean(axis=0).tolist()))
            if split.name.startswith("Caltech") and measure == "cosine":
                figures = [
                    Figure("unknown rejected %, 3 splits", float(found[:3, 0].mean()), 75),
                    Figure("unknown rejected %, 20 splits", float(found[:, 0].mean()), 75),
                    Figure("spread over splits (standard deviation)", float(found[:, 0].std())),
                ]
                report("linear", name, figures)
    columns = ["", "splits", "unknown rejected %", "false alarms %", "area under ROC"]
    columns += [f"at {100 * share:g} %" for share in ALARMS]
    show_table("linear: rejection at 10 % false alarms promised", columns, rows)
