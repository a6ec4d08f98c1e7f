"""Everything "auto": what is chosen, how long it takes, how far probabilities can be trusted."""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, bird_features, image_features, mixture, object_features
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow import RLSClassifier


def calibration_error(probabilities: Array, right: Array, n_bins: int = 15) -> float:
    """Expected calibration error: how far confidence is from accuracy, over bins of confidence."""
    confidence = probabilities.max(axis=1)
    places = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    bins = [places == place for place in np.unique(places)]
    return float(sum(b.mean() * abs(right[b].mean() - confidence[b].mean()) for b in bins))


def run(quick: bool) -> None:
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
