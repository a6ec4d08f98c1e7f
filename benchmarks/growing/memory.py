"""Memory over a long life: a thousand updates and forgets."""

from __future__ import annotations

import gc

import numpy as np
import psutil

from benchmarks.data import Array, Split, digits
from benchmarks.measure import THREADS, Figure, call_in_child, report
from evergrow import IGT, RTST, RUST, ULS, NCMForestClassifier

STRATEGIES = (ULS(), IGT(), RTST(nodes="quality"), RUST(), RTST(share=0.05, nodes="uniform"))

BATCH = 10
# Samples that the long-lived forest holds once it has grown up.
N_HELD = 600


def run(quick: bool) -> None:
    """Measure on scikit-learn's digits."""
    n_steps = 200 if quick else 1000
    resident, model = call_in_child("benchmarks.growing.memory:long_life", n_steps)
    steps = f"step {n_steps} / step {n_steps // 5}"
    figures = [
        Figure(f"resident memory, {steps}", resident, 1.05, "at most"),
        Figure(f"bytes of trees and samples, {steps}", model),
    ]
    report("growing", "digits", figures, bars=not quick)


def long_life(n_steps: int) -> list[float]:
    """Update and forget at random; how much process and model grow after a fifth of it.

    Every tenth step the core checks every tree.
    """
    split = digits()
    rng = np.random.default_rng(0)
    forest = NCMForestClassifier(10, min_samples_leaf=3, n_jobs=THREADS, random_state=0)
    forest.fit(split.X[:N_HELD], split.y[:N_HELD])
    sizes = []
    for step in range(1, n_steps + 1):
        _step(forest, split, rng, step)
        if step % 10 == 0:
            forest._fitted.forest.check()
        if step in (n_steps // 5, n_steps):
            sizes.append(_sizes(forest))
    return [float(ratio) for ratio in sizes[1] / sizes[0]]


def _step(forest: NCMForestClassifier, split: Split, rng: np.random.Generator, step: int) -> None:
    """One random change: mostly new samples, now and then a class or the oldest samples leave."""
    # Half of the time with a cap on the samples of a class, which evicts some.
    cap = 80 if step % 100 >= 50 else None
    forest.set_params(update=STRATEGIES[step % len(STRATEGIES)], keep_per_class=cap)
    choice = rng.random()
    samples = forest._fitted.forest.samples
    stored = np.sort(samples.ids[samples.classes >= 0])
    if choice < 0.05 and len(forest.classes_) > 5:
        forest.forget(classes=[rng.choice(forest.classes_)])
    elif choice < 0.15 or len(stored) > N_HELD:
        forest.forget(samples=stored[: max(BATCH, len(stored) - N_HELD)])
    else:
        rows = rng.choice(len(split.X), BATCH, replace=False)
        forest.partial_fit(split.X[rows], split.y[rows])


def _sizes(forest: NCMForestClassifier) -> Array:
    """Bytes of the process and of the model alone, both tidied."""
    core = forest.compact()._fitted.forest
    gc.collect()
    return np.array([psutil.Process().memory_info().rss, core.nbytes + core.samples.nbytes])
