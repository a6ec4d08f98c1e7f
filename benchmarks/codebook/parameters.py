"""What the parameters do, as in figure 4 of the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.codebook.accuracy import OBJECT
from benchmarks.codebook.protocol import (
    BACKGROUND,
    Coding,
    Photographs,
    equal_error_score,
    histograms,
    photographs,
    training_descriptors,
)
from benchmarks.measure import THREADS, show_table
from evergrow import ERCForest
from evergrow.codebook import HierarchicalKMeans, KMeansCodebook, RandomKDTrees
from evergrow.codebook.evaluation import equal_error_rate
from evergrow.features import LocalFeatures, RandomPatches

__all__ = ["ALL", "Sweep", "others", "run", "show", "sweeps"]

DESCRIPTOR = "haar"
# Trees that are not pruned have as many leaves as they have.
ALL = "all"


@dataclass
class Sweep:
    """Rates at equal error over one parameter; a list of runs for each of its values."""

    title: str
    parameter: str
    rates: dict[str, dict[Any, list[float]]] = field(default_factory=dict)

    def add(self, curve: str, value: Any, rate: float) -> None:
        """One more run."""
        self.rates.setdefault(curve, {}).setdefault(value, []).append(rate)


def run(quick: bool) -> None:
    """Measure and print."""
    show(sweeps(quick))


def show(found: list[Sweep]) -> None:
    """Print one table per sweep."""
    for sweep in found:
        rows = [
            (curve, value, float(np.mean(rates)), float(np.std(rates, ddof=1)))
            for curve, by_value in sweep.rates.items()
            for value, rates in by_value.items()
        ]
        show_table(sweep.title, ["", sweep.parameter, "rate at equal error, %", "sd"], rows)


def sweeps(quick: bool) -> list[Sweep]:
    """All of them, 3 runs each."""
    data = photographs(quick)
    name = OBJECT if OBJECT in data.objects else data.objects[0]
    task = data.against_background(name)
    plan = _Plan(task, name, quick)
    for seed in range(2 if quick else 3):
        plan.one_run(seed)
        print(f"run {seed} of the sweeps done", flush=True)
    return [plan.trees, plan.leaves, plan.pooling, plan.patches, plan.training, plan.kinds]


def others(n_words: int, seed: int) -> dict[str, Any]:
    """Codebooks of as many words as a forest of five trees with ``n_words`` leaves each."""
    return {
        "k-means": KMeansCodebook(5 * n_words, start="random", random_state=seed),
        "hierarchical k-means": HierarchicalKMeans(5 * n_words, random_state=seed),
        "random kd-trees": RandomKDTrees(5, n_words=n_words, random_state=seed),
    }


class _Plan:
    """The sweeps of one object, run by run."""

    def __init__(self, task: Photographs, name: str, quick: bool) -> None:
        self.task, self.name = task, name
        self.n_words = 50 if quick else 1000
        self.n_patches = 200 if quick else 1000
        self.leaf_counts = (10, 50) if quick else (50, 100, 250, 500, 1000, 2000)
        self.patch_counts = (50, 200) if quick else (100, 300, 1000, 3000, 8000)
        self.training_counts = (500, 2000) if quick else (2500, 5000, 10_000, 20_000, 40_000)
        self.trees = Sweep("trees", "trees")
        self.leaves = Sweep("leaves per tree, pruned", "leaves per tree")
        self.pooling = Sweep("pooling over patches per image", "patches per image")
        self.patches = Sweep("with and without vocabulary", "patches per image")
        self.training = Sweep("training descriptors", "training descriptors")
        self.kinds = Sweep("codebooks", "codebook")

    def one_run(self, seed: int) -> None:
        """Grow every forest, then describe each image once for all of them."""
        codings: dict[str, Coding] = {}
        keep: list[tuple[Sweep, str, Any, str, str]] = []

        def want(
            sweep: Sweep, curve: str, value: Any, codebook: Any, n_patches: int, pooling: str
        ) -> None:
            key = f"{sweep.title} {curve} {value}"
            codings[key] = Coding(codebook, n_patches)
            keep.append((sweep, curve, value, key, pooling))

        full = self._forest(seed)
        self._structure(seed, want)
        for n in self.patch_counts:
            for pooling in ("binary", "sum", "mutual_information"):
                want(self.pooling, pooling.replace("_", " "), n, full, n, pooling)
            want(self.patches, "vocabulary and linear SVM", n, full, n, "binary")
        counts = histograms(self.task, DESCRIPTOR, codings, seed)
        for sweep, curve, value, key, pooling in keep:
            sweep.add(curve, value, equal_error_score(self.task, self.name, counts[key], pooling))
        self._votes(full, seed)

    def _forest(self, seed: int, n_training: int = 20_000, **parameters: Any) -> ERCForest:
        given = training_descriptors(self.task, DESCRIPTOR, seed, n_training)
        defaults = {"n_words": self.n_words, "n_jobs": THREADS, "random_state": seed}
        forest = ERCForest(**{**defaults, **parameters})
        return forest.fit(given.rows, given.classes)

    def _structure(self, seed: int, want: Callable[..., None]) -> None:
        n = self.n_patches
        for n_trees in (1, 2, 5, 10):
            forest = self._forest(seed, n_estimators=n_trees)
            want(self.trees, f"{self.n_words} leaves per tree", n_trees, forest, n, "binary")
        for supervised, curve in ((True, "supervised"), (False, "unsupervised")):
            for n_words in (*self.leaf_counts, None):
                forest = self._forest(seed, n_words=n_words, supervised=supervised)
                want(self.leaves, curve, n_words or ALL, forest, n, "binary")
        for n_training in self.training_counts:
            for n_words in self.leaf_counts[-3:]:
                forest = self._forest(seed, n_training, n_words=n_words)
                want(self.training, f"{n_words} leaves", n_training, forest, n, "binary")
        rows = training_descriptors(self.task, DESCRIPTOR, seed).rows
        for curve, codebook in others(self.n_words, seed).items():
            want(self.kinds, curve, "", codebook.fit(rows), n, "binary")

    def _votes(self, forest: ERCForest, seed: int) -> None:
        """The trees' own vote over the patches of each test image."""
        tests = self.task.where(~self.task.trains)
        most = max(self.patch_counts)
        local = LocalFeatures(DESCRIPTOR, patches=RandomPatches(most), random_state=seed)
        column = int(np.flatnonzero(forest.classes_ == self.name)[0])
        votes = [forest.predict_proba(local.describe(i)[0])[:, column] for i in tests.images]
        for n in self.patch_counts:
            scores = np.array([vote[:n].mean() for vote in votes])
            rate = 100 * equal_error_rate(scores, tests.classes != BACKGROUND)
            self.patches.add("votes of the trees alone", n, rate)
