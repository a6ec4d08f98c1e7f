"""Forests that grow: processor time and distances of updates, next to retraining.

Accuracy stands with them because a fast update that learns nothing is worth nothing; how it
depends on the strategy is the subject of ``evergrow experiment cvpr2014``.
"""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import psutil

from benchmarks.data import Array, Split, digits, image_features, mixture
from benchmarks.measure import (
    THREADS,
    call_in_child,
    cpu_seconds,
    median_seconds,
    show_figures,
    show_table,
)
from benchmarks.peers import ncm_forest
from evergrow import IGT, RTST, RUST, ULS, NCMForestClassifier
from evergrow.estimators import Storage

STRATEGIES: dict[str, dict[str, Any]] = {
    "ULS": {"update": ULS(refresh=0.0)},
    "IGT": {"update": IGT(refresh=0.0)},
    "RUST": {"update": RUST(refresh=0.0)},
    "RTST": {"update": RTST(refresh=0.0)},
    "default": {"update": IGT()},
}
COLUMNS = ["", "accuracy", "newest five", "CPU", "distances", "comparisons", "slowest / median"]


def data(quick: bool) -> Split:
    """Image features; quickly a small mixture."""
    return mixture(4000, 64, 40, n_test=2000) if quick else image_features()


def class_batches(
    y: Array, initial: int, chunk: int, n_classes: int, seed: int
) -> tuple[Array, list[Array]]:
    """Classes in random order, and the rows of the first ones and of each later batch of them."""
    order = np.random.default_rng(seed).permutation(np.unique(y))[:n_classes]
    ends = [initial, *range(initial + chunk, n_classes + chunk, chunk)]
    firsts = [0, *ends[:-1]]
    return order, [
        np.flatnonzero(np.isin(y, order[a:b])) for a, b in zip(firsts, ends, strict=True)
    ]


def strategies(quick: bool) -> None:
    """The strategies and the default, over several orders of the classes."""
    split, n_classes, n_orders = data(quick), 15 if quick else 50, 1 if quick else 5
    runs: dict[str, list[Array]] = {name: [] for name in ("retrained", *STRATEGIES)}
    for seed in range(n_orders):
        stream = class_batches(split.y, 3, 1, n_classes, seed)
        # One after another within an order, so that a busy spell of the machine hits all.
        for name, found in runs.items():
            found.append(_grown(split, *stream, seed, STRATEGIES.get(name)))
    means = {name: np.mean(found, axis=0) for name, found in runs.items()}
    baseline = means.pop("retrained")
    # The slowest update is relative to the learner's own updates.
    relative_to = np.append(baseline[:-1], 1.0)
    title = f"{split.name}, 3 to {n_classes} classes one by one, {n_orders} orders"
    rows = [(name, *(found / relative_to).tolist()) for name, found in means.items()]
    show_table(f"growing: {title}, relative to retraining at every class", COLUMNS, rows)
    names = ("accuracy", "newest five", "CPU s, all steps")
    retrained = dict(zip(names, baseline[:3].tolist(), strict=True))
    show_figures(f"retrained at every class: {title}", retrained)


def _grown(
    split: Split,
    order: Array,
    batches: Sequence[Array],
    seed: int,
    parameters: Mapping[str, Any] | None,
) -> Array:
    """The values of ``COLUMNS`` after all batches; without parameters, of a retrained forest."""
    forest = ncm_forest(THREADS, seed, **(parameters or {}))
    seconds, n_distances, rows = [], 0.0, batches[0][:0]
    for batch in batches:
        rows = np.concatenate([rows, batch])
        taught = np.sort(rows) if parameters is None else batch
        learn = forest.fit if parameters is None else forest.partial_fit
        start = time.process_time()
        learn(split.X[taught], split.y[taught])
        seconds.append(time.process_time() - start)
        n_distances += forest.update_report_.n_comparisons
    asked = np.isin(split.y_test, order)
    right = forest.predict(split.X_test[asked]) == split.y_test[asked]
    newest = np.isin(split.y_test[asked], order[-5:])
    # The first call is no update.
    slowest = max(seconds[1:]) / float(np.median(seconds[1:]))
    comparisons = forest.comparisons(split.X_test[asked])
    return np.array(
        [right.mean(), right[newest].mean(), sum(seconds), n_distances, comparisons, slowest]
    )


def chunks(quick: bool) -> None:
    """From 10 classes on, one, five or ten at a time: CPU time relative to retraining."""
    split, n_classes = data(quick), 40 if quick else 100
    rows: list[tuple[object, ...]] = []
    for chunk in (1, 5, 10):
        stream = class_batches(split.y, 10, chunk, n_classes, 0)
        full = _grown(split, *stream, 0, None)
        for name in ("RUST", "RTST", "default"):
            found = _grown(split, *stream, 0, STRATEGIES[name])
            rows.append((chunk, name, found[2], found[2] / full[2], found[0] / full[0]))
    columns = ["classes at a time", "", "CPU s", "CPU / retraining", "accuracy / retrained"]
    show_table(f"growing: {split.name}, 10 to {n_classes} classes", columns, rows)


def one_class(quick: bool) -> None:
    """Add one class to all the others; mean over several classes that were held out."""
    split, n_held_out = data(quick), 2 if quick else 12
    classes = np.unique(split.y)
    chosen = ("ULS", "IGT", "RUST", "default")
    results: dict[str, list[tuple[float, ...]]] = {name: [] for name in ("retrained", *chosen)}
    for new in np.random.default_rng(0).choice(classes, n_held_out, replace=False):
        rows = split.y == new
        known = ncm_forest(THREADS).fit(split.X[~rows], split.y[~rows])
        for name, found in results.items():
            if name == "retrained":
                forest = ncm_forest(THREADS)
                seconds = cpu_seconds(lambda f=forest: f.fit(split.X, split.y))  # type: ignore[misc]
            else:
                forest = copy.deepcopy(known).set_params(**STRATEGIES[name])
                batch = split.X[rows], split.y[rows]
                seconds = cpu_seconds(lambda f=forest, b=batch: f.partial_fit(*b))  # type: ignore[misc]
            right = forest.predict(split.X_test) == split.y_test
            found.append((seconds, right.mean(), right[split.y_test == new].mean()))
    means = [(name, *np.mean(found, axis=0).tolist()) for name, found in results.items()]
    title = f"{split.name}, one class into {len(classes) - 1}, {n_held_out} held out in turn"
    show_table(f"growing: {title}", ["", "CPU s", "accuracy", "new class"], means)


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


def one_row(quick: bool) -> None:
    """One row learnt and then predicted, again and again, by the number of rows that are stored.

    By the clock, in one thread. A small class has twenty rows; the first prediction after a change
    counts its votes anew.
    """
    sizes, repeat = ((1000, 4000), 10) if quick else ((10_000, 100_000, 400_000), 100)
    rows: list[tuple[object, ...]] = []
    for n in sizes:
        split = mixture(n, 256, 100, n_test=repeat)
        is_small = np.zeros(n, dtype=bool)
        is_small[np.flatnonzero(split.y == 0)[20:]] = True
        for name, left in ((n, slice(None)), (f"{n}, a small class", ~is_small)):
            forest = ncm_forest(THREADS).fit(split.X[left], split.y[left]).set_params(n_jobs=None)
            found = []
            for x, y in zip(split.X_test[:, None], split.y_test[:, None], strict=True):
                learnt = median_seconds(lambda f=forest, x=x, y=y: f.partial_fit(x, y), 1)  # type: ignore[misc]
                asked = median_seconds(lambda f=forest, x=x: f.predict(x), 1)  # type: ignore[misc]
                found.append((learnt, asked, learnt + asked))
            rows.append((name, *(1000 * np.median(found, axis=0)).tolist()))
    columns = ["stored rows", "learning, ms", "predicting, ms", "both, ms"]
    show_table("growing: one row learnt and predicted, 100 classes", columns, rows)


def small_forests(quick: bool) -> None:
    """Small forests that grow class by class, by the clock: what an update costs besides its work.

    Twenty trees, from 3 to 30 classes of 300 samples, two threads; the best of several runs.
    """
    split, repeat = data(quick), 1 if quick else 5
    order, batches = class_batches(split.y, 3, 1, 30, 0)
    batches = [
        np.concatenate([rows[split.y[rows] == each][:300] for each in order]) for rows in batches
    ]

    def seconds(name: str | None) -> float:
        parameters = {} if name is None else STRATEGIES[name]
        forest = NCMForestClassifier(20, n_jobs=THREADS, random_state=0, **parameters)
        spent, rows = [], batches[0][:0]
        for batch in batches:
            rows = np.concatenate([rows, batch])
            taught = rows if name is None else batch
            learn = forest.fit if name is None else forest.partial_fit
            start = time.perf_counter()
            learn(split.X[taught], split.y[taught])
            spent.append(time.perf_counter() - start)
        return sum(spent[1:])

    best = {
        name or "retrained": min(seconds(name) for _ in range(repeat))
        for name in (None, "IGT", "RUST", "default")
    }
    rows = [(name, spent, best["retrained"] / spent) for name, spent in best.items()]
    title = f"{split.name}, 20 trees, 3 to 30 classes of 300"
    show_table(f"growing: {title}", ["", "all updates, s", "retraining / updates"], rows)


LONG_LIFE = (ULS(), IGT(), RTST(nodes="quality"), RUST(), RTST(share=0.05, nodes="uniform"))
# New samples of a step, and the samples that the long-lived forest holds once it has grown up.
BATCH, N_HELD = 10, 600


def memory(quick: bool) -> None:
    """Memory over a long life: a thousand updates and calls of forget on digits."""
    n_steps = 200 if quick else 1000
    resident, model = call_in_child("benchmarks.growing:long_life", n_steps)
    steps = f"step {n_steps} / step {n_steps // 5}"
    figures = {f"resident memory, {steps}": resident, f"trees and samples, {steps}": model}
    show_figures("growing: digits, random updates and forgetting", figures)


def long_life(n_steps: int) -> list[float]:
    """Update and forget at random; how much process and model grow after a fifth of it."""
    split, rng = digits(), np.random.default_rng(0)
    forest = NCMForestClassifier(10, min_samples_leaf=3, n_jobs=THREADS, random_state=0)
    forest.fit(split.X[:N_HELD], split.y[:N_HELD])
    sizes = []
    for step in range(1, n_steps + 1):
        _change(forest, split, rng, step)
        if step in (n_steps // 5, n_steps):
            core = forest.compact()._fitted.forest
            gc.collect()
            resident = psutil.Process().memory_info().rss
            sizes.append(np.array([resident, core.nbytes + core.samples.nbytes]))
    return [float(ratio) for ratio in sizes[1] / sizes[0]]


def _change(forest: NCMForestClassifier, split: Split, rng: np.random.Generator, step: int) -> None:
    """One random change: mostly new samples, now and then a class or the oldest samples leave."""
    # Half of the time with a cap on the samples of a class, which evicts some.
    cap = 80 if step % 100 >= 50 else None
    forest.set_params(update=LONG_LIFE[step % len(LONG_LIFE)], storage=Storage(per_class=cap))
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
