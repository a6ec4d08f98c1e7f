"""One update of a large forest: a new class among many, and new samples among ever more."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np

from benchmarks.data import Split
from benchmarks.growing.streams import STRATEGIES, data
from benchmarks.measure import THREADS, Figure, cpu_seconds, report, show_table
from benchmarks.peers import ncm_forest
from evergrow import NCMForestClassifier


def one_class(quick: bool) -> None:
    """Add one class to all the others; mean over several classes that were held out."""
    split, n_held_out = data(quick), 2 if quick else 12
    classes = np.unique(split.y)
    strategies = ("ULS", "IGT", "RUST", "recommended")
    # Processor time, accuracy over all classes, accuracy on the new one.
    results: dict[str, list[tuple[float, ...]]] = {name: [] for name in ("retrained", *strategies)}
    for new in np.random.default_rng(0).choice(classes, n_held_out, replace=False):
        rows = split.y == new
        forest = ncm_forest(THREADS)
        seconds = cpu_seconds(lambda f=forest: f.fit(split.X, split.y))  # type: ignore[misc]
        results["retrained"].append((seconds, *_accuracies(forest, split, new)))
        known = ncm_forest(THREADS).fit(split.X[~rows], split.y[~rows])
        batch = split.X[rows], split.y[rows]
        for name in strategies:
            forest = copy.deepcopy(known).set_params(**STRATEGIES[name])
            seconds = cpu_seconds(lambda f=forest, b=batch: f.partial_fit(*b))  # type: ignore[misc]
            results[name].append((seconds, *_accuracies(forest, split, new)))
    means = {name: np.mean(found, axis=0).tolist() for name, found in results.items()}
    title = f"{split.name}, one class into {len(classes) - 1}, {n_held_out} held out in turn"
    columns = ["", "CPU s", "accuracy", "new class"]
    show_table(f"growing: {title}", columns, [(name, *found) for name, found in means.items()])
    (seconds, overall, on_new), (full, best, best_on_new) = means["RUST"], means["retrained"]
    figures = [
        Figure("RUST: CPU / retraining", seconds / full, 0.10, "at most"),
        Figure("RUST: new class / retrained", on_new / best_on_new, 0.90),
        Figure("RUST: points lost over all classes", 100 * (best - overall), 1, "at most"),
    ]
    report("growing", title, figures, bars=split.name.startswith("CIFAR"))


def _accuracies(forest: Any, split: Split, new: object) -> tuple[float, float]:
    right = forest.predict(split.X_test) == split.y_test
    return float(right.mean()), float(right[split.y_test == new].mean())


def more_samples(quick: bool) -> None:
    """Time of one update of a forest that holds few samples, and of one that holds ten times more.

    Once with the same trees, their leaves holding ten times more, and once with trees grown on ten
    times more. Updates are repeated on copies, which share the fitted state, so each begins with
    one forest.
    """
    split, repeat = data(quick), 5 if quick else 21
    n_many = len(split.X)
    n_few = n_many // 10
    shuffled = np.random.default_rng(0).permutation(n_many)
    batch = split.X_test[:500], split.y_test[:500]
    few, many = (
        ncm_forest(THREADS).fit(split.X[shuffled[:n]], split.y[shuffled[:n]])
        for n in (n_few, n_many)
    )
    filled = copy.deepcopy(few).set_params(**STRATEGIES["ULS"])
    filled.partial_fit(split.X[shuffled[n_few:]], split.y[shuffled[n_few:]])

    def update(forest: Any, name: str) -> float:
        parameters = STRATEGIES[name]
        copies = iter([copy.deepcopy(forest).set_params(**parameters) for _ in range(repeat)])
        return 1e6 * cpu_seconds(lambda: next(copies).partial_fit(*batch), repeat) / len(batch[0])

    def predict(forest: Any) -> float:
        return 1e6 * cpu_seconds(lambda: forest.predict_proba(batch[0]), repeat) / len(batch[0])

    found = {
        "ULS, same trees": (update(few, "ULS"), update(filled, "ULS")),
        "ULS, larger trees": (update(few, "ULS"), update(many, "ULS")),
        "IGT, larger trees": (update(few, "IGT"), update(many, "IGT")),
        # What part of it is the way down the trees, which are deeper and no longer fit a cache.
        "predicting": (predict(few), predict(many)),
        "distances per tree": (few.comparisons(batch[0]), many.comparisons(batch[0])),
    }
    show_table(
        "growing: CPU time per new sample, microseconds",
        ["", f"{n_few} stored", f"{n_many} stored", "ratio"],
        [(name, *pair, pair[1] / pair[0]) for name, pair in found.items()],
    )
    figures = [
        Figure(f"{name}: time with ten times more", found[name][1] / found[name][0], 1.5, "at most")
        for name in [*found][:3]
    ]
    title = f"{split.name}, {n_few} and {n_many} stored"
    report("growing", title, figures, bars=split.name.startswith("CIFAR"))


def small_forests(quick: bool) -> None:
    """Small forests that grow class by class, by the clock: what an update costs besides its work.

    Twenty trees, from 3 to 30 classes of 300 samples, two threads; the best of several runs.
    """
    split, repeat = data(quick), 1 if quick else 5
    classes = np.random.default_rng(0).permutation(np.unique(split.y))[:30]
    batches = [np.flatnonzero(split.y == each)[:300] for each in classes]
    batches = [np.concatenate(batches[:3]), *batches[3:]]

    def updates(name: str) -> float:
        forest = NCMForestClassifier(20, n_jobs=THREADS, random_state=0, **STRATEGIES[name])
        seconds = []
        for rows in batches:
            start = time.perf_counter()
            forest.partial_fit(split.X[rows], split.y[rows])
            seconds.append(time.perf_counter() - start)
        return sum(seconds[1:])

    def retraining() -> float:
        seconds = 0.0
        for n in range(2, len(batches) + 1):
            rows = np.concatenate(batches[:n])
            forest = NCMForestClassifier(20, n_jobs=THREADS, random_state=0)
            start = time.perf_counter()
            forest.fit(split.X[rows], split.y[rows])
            seconds += time.perf_counter() - start
        return seconds

    full = min(retraining() for _ in range(repeat))
    figures = [
        Figure(
            f"{name}: retraining / updates", full / min(updates(name) for _ in range(repeat)), bar
        )
        for name, bar in (("IGT", 8.0), ("RUST", 3.0), ("recommended", None))
    ]
    title = f"{split.name}, 20 trees, 3 to 30 classes of 300"
    report("growing", title, figures, bars=split.name.startswith("CIFAR"))
