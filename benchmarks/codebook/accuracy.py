"""Rates at equal error: ERC forests against k-means, and every object against background."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.codebook.protocol import (
    Coding,
    Photographs,
    equal_error_score,
    every_other,
    histograms,
    photographs,
    training_descriptors,
)
from benchmarks.measure import THREADS, Figure, report, show_table
from evergrow import ERCForest
from evergrow.codebook import KMeansCodebook

__all__ = ["against_kmeans", "every_object", "run"]

OBJECT = "motorbikes"
FEW, MANY = 1000, 8000


def run(quick: bool) -> None:
    """One object many times against k-means, then all objects."""
    data = photographs(quick)
    name = OBJECT if OBJECT in data.objects else data.objects[0]
    n_patches = (100, 200) if quick else (FEW, MANY)
    n_words = 50 if quick else 1000
    descriptor = _best_descriptor(data, name, n_patches[0], n_words)
    scores = against_kmeans(data, name, descriptor, n_patches, n_words, 2 if quick else 10)
    show_table(
        f"{name} against background, {descriptor}, rate at equal error over {len(scores[0])} runs",
        ["codebook", "%", "sd"],
        [
            (label, float(np.mean(values)), float(np.std(values, ddof=1)))
            for label, values in zip(_labels(n_patches, n_words), scores, strict=True)
        ],
    )
    figures = _figures(name, scores, n_patches, n_words)
    report("codebook", data.name, figures, bars=not quick)
    every_object(data, n_patches, n_words, 2 if quick else 3)


def _figures(
    name: str, scores: list[list[float]], n_patches: tuple[int, int], n_words: int
) -> list[Figure]:
    few, many, kmeans = (float(np.mean(values)) for values in scores)
    beyond = f"ERC at {n_patches[1]} patches beyond k-means at {n_patches[0]}, points"
    return [
        Figure(f"{name}, 5 x {n_words} words, {n_patches[1]} patches, %", many, 95.0),
        Figure(f"the same, {n_patches[0]} patches, %", few, kmeans),
        Figure(beyond, many - kmeans, 0.0),
    ]


def _labels(n_patches: tuple[int, int], n_words: int) -> list[str]:
    return [
        *(f"ERC 5 x {n_words}, {n} patches" for n in n_patches),
        f"k-means {5 * n_words}, {n_patches[0]} patches",
    ]


def _forest(n_words: int, seed: int) -> ERCForest:
    return ERCForest(n_words=n_words, n_jobs=THREADS, random_state=seed)


def _best_descriptor(data: Photographs, name: str, n_patches: int, n_words: int) -> str:
    """The descriptor with the best rate on half of the training images, the others training.

    Which one is best depends on the data, as the paper says; the test images have no say.
    """
    task = data.against_background(name)
    task = task.where(task.trains)
    task = replace(task, trains=every_other(task.classes))
    rates = {}
    for descriptor in ("haar", "sift"):
        given = training_descriptors(task, descriptor, 0)
        forest = _forest(n_words, 0).fit(given.rows, given.classes)
        counts = histograms(task, descriptor, {"": Coding(forest, n_patches)}, 0)
        rates[descriptor] = equal_error_score(task, name, counts[""])
    print(f"{name}, validation: " + ", ".join(f"{d} {r:.1f} %" for d, r in rates.items()))
    return max(rates, key=lambda descriptor: rates[descriptor])


def against_kmeans(
    data: Photographs,
    name: str,
    descriptor: str,
    n_patches: tuple[int, int],
    n_words: int,
    n_runs: int,
) -> list[list[float]]:
    """Rates of ERC at both numbers of patches and of k-means at the smaller, run by run."""
    task = data.against_background(name)
    scores: list[list[float]] = [[], [], []]
    for seed in range(n_runs):
        given = training_descriptors(task, descriptor, seed)
        forest = _forest(n_words, seed).fit(given.rows, given.classes)
        kmeans = KMeansCodebook(5 * n_words, start="random", random_state=seed).fit(given.rows)
        codings = {
            "few": Coding(forest, n_patches[0]),
            "many": Coding(forest, n_patches[1]),
            "kmeans": Coding(kmeans, n_patches[0]),
        }
        counts = histograms(task, descriptor, codings, seed)
        for values, label in zip(scores, codings, strict=True):
            values.append(equal_error_score(task, name, counts[label]))
        print(f"run {seed}: " + ", ".join(f"{values[-1]:.1f}" for values in scores), flush=True)
    return scores


def every_object(data: Photographs, n_patches: tuple[int, int], n_words: int, n_runs: int) -> None:
    """Each object against background, for two descriptors and two numbers of patches."""
    settings = [("haar", n) for n in n_patches] + [("sift", n_patches[0])]
    scores: dict[str, dict[tuple[str, int], list[float]]] = {
        name: {setting: [] for setting in settings} for name in data.objects
    }
    for seed in range(n_runs):
        for descriptor in dict.fromkeys(descriptor for descriptor, _ in settings):
            forests = _forests(data, descriptor, n_words, seed)
            codings = {
                f"{name} {n}": Coding(forests[name], n)
                for kind, n in settings
                for name in data.objects
                if kind == descriptor
            }
            counts = histograms(data, descriptor, codings, seed)
            for kind, n in settings:
                for name in data.objects if kind == descriptor else []:
                    rate = equal_error_score(data, name, counts[f"{name} {n}"])
                    scores[name][kind, n].append(rate)
    cells = {
        name: [f"{np.mean(v):.1f} ± {np.std(v, ddof=1):.1f}" for v in by_setting.values()]
        for name, by_setting in scores.items()
    }
    show_table(
        f"every object against background, 5 x {n_words} words, {n_runs} runs, % ± sd",
        ["object", *(f"{descriptor}, {n} patches" for descriptor, n in settings)],
        [(name, *row) for name, row in cells.items()],
    )


def _forests(data: Photographs, descriptor: str, n_words: int, seed: int) -> dict[str, ERCForest]:
    forests = {}
    for name in data.objects:
        task = data.against_background(name)
        given = training_descriptors(task, descriptor, seed)
        forests[name] = _forest(n_words, seed).fit(given.rows, given.classes)
    return forests
