"""Small classes among large ones: how many of their samples are found, and what others lose."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from benchmarks.data import (
    Array,
    Split,
    bird_features,
    digits,
    image_features,
    mixture,
    object_features,
    word_counts,
)
from benchmarks.growing.streams import STRATEGIES, data
from benchmarks.measure import THREADS, show_table
from benchmarks.peers import ncm_forest

BALANCES = (0.0, "auto", 1.0)


def few_samples(quick: bool) -> None:
    """A class of few samples next to 450 of each other: five classes, three draws of samples.

    Once in a fit of all classes, and once added to a forest of the others.
    """
    split, draws = data(quick), 1 if quick else 3
    classes = np.unique(split.y)
    results: dict[tuple[int, str, str], list[tuple[float, ...]]] = {}
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        for new in rng.choice(classes, 2 if quick else 5, replace=False):
            order = rng.permutation(len(split.y))
            rows = {k: order[split.y[order] == k][:450] for k in classes}
            others = np.concatenate([rows[k] for k in classes if k != new])
            known = ncm_forest(THREADS, draw).fit(split.X[others], split.y[others])
            for n in (10, 50):
                few = rows[new][:n]
                both = np.concatenate([others, few])
                for how in ("fit", "default update", "RUST"):
                    forest = ncm_forest(THREADS, draw)
                    if how == "fit":
                        forest.fit(split.X[both], split.y[both])
                    else:
                        forest = copy.deepcopy(known)
                        forest.set_params(**STRATEGIES["RUST"] if how == "RUST" else {})
                        forest.partial_fit(split.X[few], split.y[few])
                    for balance in BALANCES:
                        answers = forest.set_params(balance=balance).predict(split.X_test)
                        own = split.y_test == new
                        found = (
                            float((answers == split.y_test).mean()),
                            float((answers[own] == new).mean()),
                            float((answers[~own] == new).mean()),
                        )
                        results.setdefault((n, how, str(balance)), []).append(found)
    rows_shown = [(*key, *np.mean(found, axis=0)) for key, found in results.items()]
    columns = ["samples", "", "balance", "accuracy", "new class", "others taken for it"]
    show_table(f"growing: {split.name}, a class of few samples", columns, rows_shown)


def uneven(quick: bool) -> None:
    """Accuracy over all classes where some are small, on several data sets; two seeds.

    In the first rows one in twenty classes is cut to five samples, in the others class sizes fall
    evenly from all samples to a tenth. At most 20,000 samples of a data set are used.
    """
    loaders: list[Callable[[], Split]] = [bird_features, object_features, word_counts]
    loaders += [image_features, digits]
    splits = [mixture(2000, 32, 20, n_test=1000)] if quick else [load() for load in loaders]
    rows: list[tuple[object, ...]] = []
    for cut in (_with_few, _with_tail):
        for split in splits:
            found = [_at_balances(split, cut, seed) for seed in range(1 if quick else 2)]
            rows.append((split.name, cut.__name__[6:], *np.mean(found, axis=0).tolist()))
    columns = ["", "", *(f"{what}, {b}" for what in ("accuracy", "small") for b in BALANCES)]
    show_table("growing: classes of different sizes", columns, rows)


def _at_balances(split: Split, cut: Callable[..., Array], seed: int) -> list[float]:
    """Accuracy over all classes and over the small ones, with each balance."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(split.y))[:20_000]
    kept = cut(split.y[order], rng)
    X, y = split.X[order][kept], split.y[order][kept]
    forest = ncm_forest(THREADS, seed).fit(X, y)
    classes, sizes = np.unique(y, return_counts=True)
    small = np.isin(split.y_test, classes[2 * sizes < np.median(sizes)])
    right = [
        forest.set_params(balance=balance).predict(split.X_test) == split.y_test
        for balance in BALANCES
    ]
    return [float(r.mean()) for r in right] + [float(r[small].mean()) for r in right]


def _with_few(y: Array, rng: np.random.Generator) -> Array:
    classes, sizes = np.unique(y, return_counts=True)
    # Of those that are not small already, so that they are found among others.
    large = classes[sizes >= np.median(sizes)]
    chosen = rng.choice(large, max(1, len(classes) // 20), replace=False)
    return np.flatnonzero(~np.isin(y, chosen) | (_rank_in_class(y) < 5))


def _with_tail(y: Array, rng: np.random.Generator) -> Array:
    classes, codes = np.unique(y, return_inverse=True)
    sizes = np.bincount(codes)
    shares = 0.1 ** (rng.permutation(len(classes)) / (len(classes) - 1))
    return np.flatnonzero(_rank_in_class(y) < np.ceil(shares * sizes)[codes])


def _rank_in_class(y: Array) -> Array:
    """How many samples of its class come before each."""
    order = np.argsort(y, kind="stable")
    _, firsts, codes = np.unique(y[order], return_index=True, return_inverse=True)
    ranks = np.empty(len(y), dtype=np.int64)
    ranks[order] = np.arange(len(y)) - firsts[codes]
    return ranks
