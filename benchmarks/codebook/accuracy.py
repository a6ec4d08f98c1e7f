"""Rates at equal error of every object against background, for Haar wavelets and SIFT."""

from __future__ import annotations

import numpy as np

from benchmarks.codebook.pictures import pictures
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow import ERCForest
from evergrow.research.papers.nips2006.histograms import (
    Coding,
    count_words,
    equal_error_score,
    training_descriptors,
)
from evergrow.research.papers.nips2006.photographs import Photographs
from evergrow.vision import KMeansCodebook

FOREST, LARGER, KMEANS = "ERC", "ERC, 8 times the patches", "k-means"


def run(quick: bool) -> None:
    """Two runs of every object; ten, and k-means too, of the first one with SIFT."""
    data, first = pictures(quick), pictures(quick).objects[0]
    rows = []
    for name in data.objects:
        for descriptor in ("haar", "sift"):
            many = (name, descriptor) == (first, "sift")
            n_runs = 10 if many and not quick else 2
            found = [_rates(data, name, descriptor, seed, many, quick) for seed in range(n_runs)]
            cells = {kind: [each[kind] for each in found] for kind in found[0]}
            shown = [f"{np.mean(c):.1f} ± {np.std(c, ddof=1):.1f}" for c in cells.values()]
            rows.append((f"{name}, {descriptor}, {n_runs} runs", *shown))
            if many:
                _report(data.name, name, {k: float(np.mean(c)) for k, c in cells.items()}, quick)
    title = f"codebook: rate at equal error %, {25 if quick else 1000} patches"
    show_table(title, ["", FOREST, LARGER, KMEANS], rows)


def _rates(
    data: Photographs, name: str, descriptor: str, seed: int, kmeans: bool, quick: bool
) -> dict[str, float]:
    task, n_words, n_patches = data.against_background(name), *((50, 25) if quick else (1000, 1000))
    given = training_descriptors(task, descriptor, seed, 2000 if quick else 20_000)
    forest = ERCForest(n_words=n_words, n_jobs=THREADS, random_state=seed)
    forest.fit(given.rows, given.classes)
    codings = {FOREST: Coding(forest, n_patches), LARGER: Coding(forest, 8 * n_patches)}
    if kmeans:
        means = KMeansCodebook(5 * n_words, start="random", random_state=seed).fit(given.rows)
        codings[KMEANS] = Coding(means, n_patches)
    counts = count_words(task, descriptor, codings, seed)
    return {kind: equal_error_score(task, name, counts[kind]) for kind in codings}


def _report(data: str, name: str, means: dict[str, float], quick: bool) -> None:
    figures = [
        Figure(f"{name}, SIFT, 8 times the patches, %", means[LARGER], 95.0),
        Figure("points above k-means with as many patches", means[FOREST] - means[KMEANS], 0.0),
        Figure("points above k-means, 8 times the patches", means[LARGER] - means[KMEANS], 0.0),
    ]
    report("codebook", data, figures, bars=not quick)
