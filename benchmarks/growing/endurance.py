"""Long lives: updates after saving and loading, and a thousand updates and forgets."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import psutil

import evergrow
from benchmarks.data import Array, Split, digits
from benchmarks.measure import THREADS, Figure, report
from evergrow import IGT, RTST, RUST, ULS, NCMForestClassifier

__all__ = ["long_life", "run"]

STRATEGIES = (ULS(), IGT(), RTST(nodes="quality"), RUST(), RTST(share=0.05, nodes="uniform"))

BATCH = 10
# Samples that the long-lived forest holds once it has grown up.
N_HELD = 600

LONG_LIFE = "from benchmarks.growing import endurance; endurance.long_life"


def run(quick: bool) -> None:
    """Measure on scikit-learn's digits."""
    split = digits()
    same = float(np.mean([_same_after_loading(split, update) for update in STRATEGIES]))
    n_steps = 200 if quick else 1000
    # In a process of its own, whose memory nothing else has raised.
    command = [sys.executable, "-c", f"{LONG_LIFE}({n_steps})"]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    resident, model = json.loads(output)
    steps = f"step {n_steps} / step {n_steps // 5}"
    figures = [
        Figure("save, load, update = update (1 = yes)", same, 1),
        Figure(f"resident memory, {steps}", resident, 1.05, "at most"),
        Figure(f"bytes of trees and samples, {steps}", model),
    ]
    report("growing", split.name, figures, bars=not quick)


def _same_after_loading(split: Split, update: object) -> bool:
    old = split.y < 7
    forest = _forest().set_params(update=update, refresh=0.1).fit(split.X[old], split.y[old])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest.evergrow"
        forest.save(path)
        loaded = evergrow.load(path)
        for model in (forest, loaded):
            model.partial_fit(split.X[~old], split.y[~old])
        answers = [model.predict_proba(split.X_test) for model in (forest, loaded)]
    return bool(np.array_equal(*answers))


def long_life(n_steps: int) -> None:
    """Update and forget at random; print how much process and model grow after a fifth of it.

    Every tenth step the core checks every tree.
    """
    split = digits()
    rng = np.random.default_rng(0)
    forest = _forest().fit(split.X[:N_HELD], split.y[:N_HELD])
    sizes = []
    for step in range(1, n_steps + 1):
        _step(forest, split, rng, step)
        if step % 10 == 0:
            forest._fitted.forest.check()
        if step in (n_steps // 5, n_steps):
            sizes.append(_sizes(forest))
    (resident, model), (later_resident, later_model) = sizes
    print(json.dumps([later_resident / resident, later_model / model]))


def _step(forest: NCMForestClassifier, split: Split, rng: np.random.Generator, step: int) -> None:
    """One random change: mostly new samples, now and then a class or the oldest samples leave."""
    # Half of the time with a cap on the samples of a class, which evicts some.
    cap = 80 if step % 100 >= 50 else None
    forest.set_params(update=STRATEGIES[step % len(STRATEGIES)], keep_per_class=cap)
    choice = rng.random()
    n_held = len(_stored(forest))
    if choice < 0.05 and len(forest.classes_) > 5:
        forest.forget(classes=[rng.choice(forest.classes_)])
    elif choice < 0.15 or n_held > N_HELD:
        oldest = np.sort(_stored(forest))[: max(BATCH, n_held - N_HELD)]
        forest.forget(samples=oldest)
    else:
        rows = rng.choice(len(split.X), BATCH, replace=False)
        forest.partial_fit(split.X[rows], split.y[rows])


def _stored(forest: NCMForestClassifier) -> Array:
    """Ids of the samples that the forest holds."""
    samples = forest._fitted.forest.samples
    stored: Array = samples.ids[samples.classes >= 0]
    return stored


def _sizes(forest: NCMForestClassifier) -> tuple[int, int]:
    """Bytes of the process and of the model alone, both tidied."""
    core = forest.compact()._fitted.forest
    gc.collect()
    return psutil.Process().memory_info().rss, core.nbytes + core.samples.nbytes


def _forest() -> NCMForestClassifier:
    return NCMForestClassifier(10, min_samples_leaf=3, n_jobs=THREADS, random_state=0)
