"""Label issues next to cleanlab, and labels needed when the next ones are chosen."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, Split, bird_features, image_features, mixture
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow import RLSClassifier, label_issues, next_to_label

# Features and labels to the quality of each label.
Ranking = Callable[[Array, Array], Array]

# Share of labels made wrong, and the precision at which those found are counted.
WRONG, PRECISION = 0.05, 0.9


def with_mistakes(y: Array, seed: int) -> tuple[Array, Array]:
    """Labels of which some are another class, drawn uniformly; and which ones they are."""
    rng = np.random.default_rng([seed, 20])
    classes, codes = np.unique(y, return_inverse=True)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.permutation(len(y))[: round(WRONG * len(y))]] = True
    moved = (codes + rng.integers(1, len(classes), len(y))) % len(classes)
    return classes[np.where(wrong, moved, codes)], wrong


def share_found(quality: Array, wrong: Array) -> float:
    """Percent of wrong labels among the lowest, as many as keep the precision."""
    hits = np.cumsum(wrong[np.argsort(quality, kind="stable")])
    precise = np.flatnonzero(hits >= PRECISION * np.arange(1, len(hits) + 1))
    return 100 * float(hits[precise[-1]] / wrong.sum()) if len(precise) else 0.0


def _peers(split: Split) -> dict[str, ClassifierMixin]:
    """Models for cleanlab; the penalty of the logistic one is set by hand for each data set."""
    strength = 0.01 if split.name.startswith("CIFAR") else 0.001
    logistic = LogisticRegression(C=strength, max_iter=200)
    return {
        "cleanlab, 5 x RLSClassifier()": RLSClassifier(random_state=0),
        "cleanlab, 5 x logistic regression": make_pipeline(StandardScaler(), logistic),
    }


def _ours(X: Array, y: Array) -> Array:
    return label_issues(X, y, n_harmful=0).quality


def _cleanlab(model: ClassifierMixin) -> Ranking:
    def rank(X: Array, y: Array) -> Array:
        from cleanlab.rank import get_label_quality_scores

        codes = np.unique(y, return_inverse=True)[1]
        shares = cross_val_predict(model, X, codes, cv=5, method="predict_proba")
        found: Array = get_label_quality_scores(codes, shares, method="self_confidence")
        return found

    return rank


def wrong_labels(quick: bool) -> None:
    """5 % of the labels are made wrong; cleanlab is skipped where it is not installed."""
    splits = [mixture(2000, 32, 20, n_test=10)] if quick else [bird_features(), image_features()]
    rows = []
    for split in splits:
        ways: dict[str, Ranking] = {"label_issues": _ours}
        if find_spec("cleanlab") is not None:
            ways |= {name: _cleanlab(model) for name, model in _peers(split).items()}
        draws = [_one_draw(split, ways, seed) for seed in range(1 if quick else 3)]
        found = {}
        for name in ways:
            shares, seconds = zip(*(draw[name] for draw in draws), strict=True)
            found[name] = (float(np.mean(shares)), float(np.mean(seconds)))
            each = " ".join(f"{share:.1f}" for share in shares)
            rows.append((f"{split.name}, {name}", each, *found[name]))
        _report_ratios(split.name, found, bars=not quick)
    columns = ["", f"found % at {100 * PRECISION:g} % precision", "mean", "processor s"]
    show_table(f"curation: {100 * WRONG:g} % of the labels made wrong", columns, rows)


def _one_draw(split: Split, ways: dict[str, Ranking], seed: int) -> dict[str, tuple[float, float]]:
    """Share of wrong labels found in each way, and processor seconds."""
    y, wrong = with_mistakes(split.y, seed)
    found = {}
    for name, rank in ways.items():
        # Of one thread, which other programs disturb least.
        with threadpool_limits(1):
            start = time.process_time()
            quality = rank(split.X, y)
            seconds = time.process_time() - start
        found[name] = (share_found(quality, wrong), seconds)
    return found


def _report_ratios(data: str, found: dict[str, tuple[float, float]], *, bars: bool) -> None:
    (share, seconds), *others = found.values()
    figures = [Figure("wrong labels found %", share)]
    if others:
        best = max(others)
        figures += [
            Figure("ahead of the best of cleanlab, points", share - best[0], 0),
            Figure("time, of that of the best of cleanlab", seconds / best[1], 0.1, "at most"),
        ]
    report("curation", data, figures, bars=bars)


def speed(quick: bool) -> None:
    """All issues of many examples, of which some have wrong labels."""
    n, d = (5000, 64) if quick else (100_000, 1280)
    split = mixture(n, d, 100, n_test=10)
    y, _ = with_mistakes(split.y, 0)
    with threadpool_limits(THREADS):
        start = time.perf_counter()
        label_issues(split.X, y, n_harmful=0)
        wrong = time.perf_counter() - start
        start = time.perf_counter()
        label_issues(split.X, y)
        everything = time.perf_counter() - start
    figures = [
        Figure("wrong labels and near-duplicates, s", wrong, 10, "at most"),
        Figure("with harm, s", everything),
    ]
    report("curation", split.name, figures, bars=not quick)


def _accuracy(X: Array, y: Array, split: Split) -> float:
    """Accuracy of the default classifier."""
    return float(RLSClassifier(random_state=0).fit(X, y).score(split.X_test, split.y_test))


def _curve(split: Split, batch: int, target: float, seed: int | None) -> int:
    """Labels until the target is reached, at random with a seed or chosen without one."""
    order = np.random.default_rng(seed).permutation(len(split.X))
    known = np.zeros(0, dtype=np.int64)
    while len(known) < len(split.X):
        rest = np.setdiff1d(np.arange(len(order)), known)
        if seed is not None:
            new = order[len(known) : len(known) + batch]
        elif len(known):
            new = rest[next_to_label(split.X[rest], split.X[known], split.y[known], n=batch)]
        else:
            new = rest[next_to_label(split.X[rest], n=batch)]
        known = np.concatenate([known, new])
        if _accuracy(split.X[known], split.y[known], split) >= target:
            break
    return len(known)


def next_labels(quick: bool) -> None:
    """Labels needed for 95 % of the accuracy with all labels; the mean of three random orders."""
    splits = (
        [(mixture(2000, 32, 20, n_test=500), 100)]
        if quick
        else [(bird_features(), 200), (image_features(), 500)]
    )
    for split, batch in splits:
        with threadpool_limits(THREADS):
            target = 0.95 * _accuracy(split.X, split.y, split)
            random = float(np.mean([_curve(split, batch, target, seed) for seed in range(3)]))
            chosen = _curve(split, batch, target, None)
        figures = [
            Figure("accuracy to reach %", 100 * target),
            Figure("labels at random", random),
            Figure("labels chosen", chosen),
            Figure("chosen, of random", chosen / random, 0.75, "at most"),
        ]
        report("curation", f"{split.name}, {batch} at a time", figures, bars=not quick)
