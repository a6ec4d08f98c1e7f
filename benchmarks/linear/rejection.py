"""How far probabilities can be trusted, and how many examples of unknown classes are noticed."""

from __future__ import annotations

import time
from typing import Literal, get_args

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, Split, bird_features, image_features, mixture, object_features
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow import RejectingClassifier, RLSClassifier


def calibration_error(probabilities: Array, right: Array, n_bins: int = 15) -> float:
    """Expected calibration error: how far confidence is from accuracy, over bins of confidence."""
    confidence = probabilities.max(axis=1)
    places = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    bins = [places == place for place in np.unique(places)]
    return float(sum(b.mean() * abs(right[b].mean() - confidence[b].mean()) for b in bins))


def calibrate_auto(quick: bool) -> None:
    """Fit with what every parameter is by default."""
    quickly = [mixture(3000, 128, 50, n_test=1000)]
    splits = quickly if quick else [image_features(), bird_features(), object_features()]
    rows, figures = [], []
    for split in splits:
        with threadpool_limits(THREADS):
            start = time.perf_counter()
            model = RLSClassifier(random_state=0).fit(split.X, split.y)
            seconds = time.perf_counter() - start
            probabilities = model.predict_proba(split.X_test)
        right = model.classes_[probabilities.argmax(axis=1)] == split.y_test
        accuracy, error = 100 * float(right.mean()), 100 * calibration_error(probabilities, right)
        chosen = (model.regularization_, model.recoding_, model.temperature_)
        rows.append((split.name, accuracy, error, *chosen, seconds))
        bar = 68 if split.name.startswith("CUB") else None
        figures.append(Figure(f"{split.name}: accuracy %", accuracy, bar))
    columns = ["", "accuracy %", "ECE %", "penalty", "recoding", "temperature", "fit s"]
    show_table('linear: RLSClassifier(), everything "auto"', columns, rows)
    report("linear", 'everything "auto"', figures)


Measure = Literal["auto", "cosine", "estimator"]

# Shares of known examples rejected at which the curve is shown.
ALARMS = (0.05, 0.1, 0.2)
# Examples per class with which false alarms are counted per class.
PER_CLASS = (5, 10, 20)


def known_classes(split: Split, n_known: int, seed: int) -> tuple[Array, Array]:
    """Which training and which test examples are of some classes, chosen at random."""
    classes = np.random.default_rng(seed).permutation(np.unique(split.y))[:n_known]
    return np.isin(split.y, classes), np.isin(split.y_test, classes)


def novelties(
    split: Split, n_known: int, seed: int, measure: Measure = "auto", per_class: int | None = None
) -> tuple[RejectingClassifier, Array, Array]:
    """A model of some of the classes, the novelty of all test examples, and which are known."""
    taught, known = known_classes(split, n_known, seed)
    places = np.flatnonzero(taught)
    if per_class is not None:
        order = np.random.default_rng(seed).permutation(places)
        some = [order[split.y[order] == label][:per_class] for label in np.unique(split.y[places])]
        places = np.concatenate(some)
    # Numbers for the parameters: rejection is measured, not their choice.
    inside = RLSClassifier(regularization=50.0, recoding=0.0)
    model = RejectingClassifier(inside, measure=measure, random_state=0)
    with threadpool_limits(THREADS):
        model.fit(split.X[places], split.y[places])
        return model, model.novelty(split.X_test), known


def _outcome(split: Split, n_known: int, seed: int, measure: Measure) -> list[float]:
    """Percent of unknown and of known examples rejected, the area, and points of the curve."""
    model, novelty, known = novelties(split, n_known, seed, measure)
    levels = [model.level_, *np.quantile(novelty[known], 1 - np.array(ALARMS))]
    found, *curve = (100 * float((novelty[~known] > level).mean()) for level in levels)
    alarms = 100 * float((novelty[known] > model.level_).mean())
    return [found, alarms, float(roc_auc_score(~known, novelty)), *curve]


def _data(quick: bool) -> list[tuple[Split, int]]:
    if quick:
        return [(mixture(2000, 64, 40, n_test=2000), 20)]
    return [(object_features(), 60), (bird_features(), 100), (image_features(), 50)]


def reject_unknown(quick: bool) -> None:
    """Caltech with 60 known classes carries the bar; the others show where it is hard."""
    rows, n_splits = [], 3 if quick else 20
    for split, n_known in _data(quick):
        for measure in get_args(Measure):
            found = np.array([_outcome(split, n_known, seed, measure) for seed in range(n_splits)])
            name = f"{split.name}, {n_known} known, {measure}"
            rows.append((name, n_splits, *found.mean(axis=0).tolist()))
            if split.name.startswith("Caltech") and measure == "auto":
                figures = [
                    Figure("unknown rejected %, 3 splits", float(found[:3, 0].mean()), 75),
                    Figure("unknown rejected %, 20 splits", float(found[:, 0].mean()), 75),
                    Figure("same where 10 % of known ones are", float(found[:, 4].mean()), 80),
                    Figure("spread over splits (standard deviation)", float(found[:, 0].std())),
                ]
                report("linear", name, figures)
    columns = ["", "splits", "unknown rejected %", "false alarms %", "area under ROC"]
    columns += [f"at {100 * share:g} %" for share in ALARMS]
    show_table("linear: rejection at 10 % false alarms promised", columns, rows)


def count_false_alarms(quick: bool) -> None:
    """False alarms over all and per class with few examples of each, mean over the splits."""
    n_splits = 3 if quick else 10
    rows = [
        (split.name, per_class, *_alarms(split, n_known, per_class, n_splits))
        for split, n_known in _data(quick)
        for per_class in PER_CLASS
    ]
    columns = ["", "per class", "false alarms %", "classes within 5 points %"]
    columns += ["same without noise", "spread over classes", "unknown rejected %"]
    show_table(f"linear: false alarms per class, 10 % promised, {n_splits} splits", columns, rows)


def _alarms(split: Split, n_known: int, per_class: int, n_splits: int) -> list[float]:
    """Alarms over all; of each class over all splits: how many near 10 %, and their spread."""
    n_labels = int(split.y_test.max()) + 1
    alarms, seen = np.zeros(n_labels), np.zeros(n_labels)
    shares = []
    for seed in range(n_splits):
        model, novelty, known = novelties(split, n_known, seed, per_class=per_class)
        rejected = novelty > model.level_
        alarms += np.bincount(split.y_test[known], rejected[known], minlength=n_labels)
        seen += np.bincount(split.y_test[known], minlength=n_labels)
        shares.append([rejected[known].mean(), rejected[~known].mean()])
    rates = alarms[seen > 0] / seen[seen > 0]
    # The variance of the rates without that of counting a limited number of test examples.
    spread = rates.var() - np.mean(rates * (1 - rates) / seen[seen > 0])
    overall, found = 100 * np.mean(shares, axis=0)
    spread = float(np.sqrt(max(0.0, spread)))
    # Rates that are as far apart as the true ones.
    closer = rates.mean() + (rates - rates.mean()) * spread / max(float(rates.std()), 1e-12)
    near, truly = (100 * float((np.abs(r - 0.1) <= 0.05).mean()) for r in (rates, closer))
    return [float(overall), near, truly, 100 * spread, float(found)]
