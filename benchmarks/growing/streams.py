"""Classes that come one after another: processor time and distances next to retraining.

Accuracy stands with them because a fast update that learns nothing is worth nothing; how it
depends on the strategy is the subject of ``evergrow experiment cvpr2014``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import (
    Array,
    Split,
    bird_features,
    image_features,
    mixture,
    object_features,
    word_counts,
)
from benchmarks.measure import THREADS, Figure, report, show_table
from benchmarks.peers import ncm_forest
from evergrow import IGT, RTST, RUST, ULS
from evergrow.research import ClassStream, Learner, Retrained, follow

# The default: near the accuracy of retraining, the newest classes included, for a sixth of its
# time.
RECOMMENDED: dict[str, Any] = {"update": IGT(), "refresh": "auto"}

STRATEGIES: dict[str, dict[str, Any]] = {
    "ULS": {"update": ULS(), "refresh": 0.0},
    "IGT": {"update": IGT(), "refresh": 0.0},
    "RUST": {"update": RUST(), "refresh": 0.0},
    "RTST": {"update": RTST(), "refresh": 0.0},
    "recommended": RECOMMENDED,
}

MEASURES = ("accuracy", "newest", "cpu_seconds", "n_distances", "comparisons")
# The last one is no share of retraining.
COLUMNS = ["", "accuracy", "newest five", "CPU", "distances", "comparisons", "dearest / median"]

# What each must reach of the first four, as shares of retraining at every step.
BARS: dict[str, tuple[float | None, ...]] = {
    "ULS": (None, None, None, None),
    "IGT": (0.86, None, 0.10, 1 / 25),
    "RUST": (0.97, None, 0.30, 1 / 9),
    "RTST": (0.99, None, 0.55, 0.4),
    "recommended": (0.99, 0.93, 0.17, None),
}
# The same of the recommended setting with 100 classes.
BARS_OF_HUNDRED = (0.99, 0.93, 0.10, None)
# The dearest update of the recommended setting, relative to its median update.
DEAREST_BAR = 3.0


def data(quick: bool) -> Split:
    """Image features; quickly a small mixture."""
    return mixture(4000, 64, 40, n_test=2000) if quick else image_features()


def strategies(quick: bool) -> None:
    """The four strategies and the recommended setting, over several orders of the classes."""
    split, n_classes, n_orders = data(quick), 15 if quick else 50, 1 if quick else 5
    baseline, shares = _shares(split, n_classes, range(n_orders), STRATEGIES)
    title = f"{split.name}, 3 to {n_classes} classes one by one, {n_orders} orders"
    rows = [(name, *share.tolist()) for name, share in shares.items()]
    show_table(f"growing: {title}, relative to retraining at every class", COLUMNS, rows)
    figures = [
        Figure("retrained: accuracy %", 100 * float(baseline[0])),
        Figure("retrained: newest five %", 100 * float(baseline[1])),
        Figure("retrained: CPU s, all steps", float(baseline[2])),
    ]
    for strategy, share in shares.items():
        figures += _figures(strategy, share, BARS[strategy])
    # The bars are promises on real features; generated data is easier.
    report("growing", title, figures, bars=split.name.startswith("CIFAR"))


def hundred(quick: bool) -> None:
    """The recommended setting up to twice as many classes."""
    split, n_classes, n_orders = data(quick), 30 if quick else 100, 1 if quick else 5
    _recommended(split, n_classes, range(n_orders), BARS_OF_HUNDRED)


def others(quick: bool) -> None:
    """The recommended setting on birds, objects and visual words, on which it was not chosen."""
    splits = [data(True)] if quick else [bird_features(), object_features(), word_counts()]
    for split in splits:
        _recommended(split, 15 if quick else 50, [0] if quick else range(5), BARS["recommended"])


def _recommended(
    split: Split, n_classes: int, seeds: Sequence[int], bars: tuple[float | None, ...]
) -> None:
    _, shares = _shares(split, n_classes, seeds, {"recommended": RECOMMENDED})
    title = f"{split.name}, 3 to {n_classes} classes one by one, {len(seeds)} orders"
    figures = _figures("recommended", shares["recommended"], bars)
    report("growing", title, figures, bars=not split.name.startswith("generated"))


def _figures(strategy: str, share: Array, bars: tuple[float | None, ...]) -> list[Figure]:
    names = ("accuracy / retrained", "newest five / retrained", "CPU / retraining")
    figures = []
    for name, value, bar in zip(
        (*names, "distances / retraining"), share.tolist(), bars, strict=False
    ):
        sense: Any = "at least" if "retrained" in name else "at most"
        figures.append(Figure(f"{strategy}: {name}", value, bar, sense))
    bar = DEAREST_BAR if strategy == "recommended" else None
    dearest = float(share[-1])
    return [*figures, Figure(f"{strategy}: dearest update / median", dearest, bar, "at most")]


def settings(quick: bool) -> None:
    """A table over strategy, share of the nodes, choice of the nodes and refresh."""
    chosen: list[tuple[Any, float | str]] = [
        *((strategy, "auto") for strategy in (ULS(), IGT(), RUST(share=0.3), RUST(), RTST())),
        *((strategy, refresh) for strategy in (IGT(), RUST()) for refresh in (0.0, 0.04, 0.1, 0.2)),
        *(
            (RUST(share=share), refresh)
            for share in (0.1, 0.2, 0.3, 0.4)
            for refresh in (0.04, 0.1)
        ),
        *((RTST(share=share, nodes="uniform"), 0.04) for share in (0.01, 0.02, 0.05)),
        *((RTST(share=share, nodes="quality"), 0.04) for share in (0.02, 0.05, 0.1)),
        (RTST(share=0.05, nodes="uniform"), 0.0),
        *((RTST(), refresh) for refresh in (0.0, 0.2)),
    ]
    contenders = {
        f"{update}, refresh {refresh}": {"update": update, "refresh": refresh}
        for update, refresh in (chosen[::7] if quick else chosen)
    }
    n_classes = 15 if quick else 50
    _, shares = _shares(data(quick), n_classes, [0], contenders)
    rows = [(name, *share.tolist()) for name, share in shares.items()]
    show_table(f"growing: settings, one order, 3 to {n_classes} classes", COLUMNS, rows)


def chunks(quick: bool) -> None:
    """From 10 classes on, one, five or ten at a time: RUST next to RTST, and the default."""
    split, n_classes = data(quick), 40 if quick else 100
    rows: list[tuple[object, ...]] = []
    figures = []
    for chunk in (1, 5, 10):
        stream = ClassStream(10, chunk, n_classes, measure_at=[n_classes])
        names = ("RUST", "RTST", "recommended")
        found = {name: _grown(split, stream, STRATEGIES[name]) for name in names}
        found["retrained"] = _final(Retrained(partial(ncm_forest, THREADS)), split, stream)
        rows += [(f"{name}, {chunk} at a time", *each.tolist()) for name, each in found.items()]
        ratio = float(found["RUST"][2] / found["RTST"][2])
        figures.append(Figure(f"{chunk} at a time: CPU of RUST / RTST", ratio, 1, "at most"))
        ratio = float(found["recommended"][2] / found["retrained"][2])
        name = f"{chunk} at a time: CPU of the recommended setting / retraining"
        figures.append(Figure(name, ratio, 0.5, "at most"))
    title = f"{split.name}, 10 to {n_classes} classes"
    show_table(f"growing: {title}", COLUMNS, rows)
    report("growing", title, figures, bars=split.name.startswith("CIFAR"))


def _shares(
    split: Split, n_classes: int, seeds: Iterable[int], contenders: Mapping[str, dict[str, Any]]
) -> tuple[Array, dict[str, Array]]:
    """Mean of the retrained forest at the end, and of each contender as shares of it."""
    runs: dict[str, list[Array]] = {name: [] for name in contenders}
    retrained = []
    for seed in seeds:
        stream = ClassStream(3, 1, n_classes, measure_at=[n_classes], random_state=seed)
        # One after another within an order, so that a busy spell of the machine hits all.
        anew = Retrained(partial(ncm_forest, THREADS, random_state=seed))
        retrained.append(_final(anew, split, stream))
        for name, parameters in contenders.items():
            runs[name].append(_grown(split, stream, parameters))
    baseline = np.mean(retrained, axis=0)
    # The dearest update is relative to the learner's own updates.
    relative_to = np.append(baseline[:-1], 1.0)
    return baseline, {name: np.mean(each, axis=0) / relative_to for name, each in runs.items()}


def _grown(split: Split, stream: ClassStream, parameters: Mapping[str, Any]) -> Array:
    forest = ncm_forest(THREADS, random_state=stream.random_state, **parameters)
    return _final(forest, split, stream)


def _final(learner: Learner, split: Split, stream: ClassStream) -> Array:
    """What was measured at the end of a stream, and the dearest update relative to the median."""
    # Retraining happens when an answer is asked for, and has to happen at every step.
    if isinstance(learner, Retrained):
        (measured,) = follow(learner, split.dataset, stream, ask="always")
        return np.array([getattr(measured, name) for name in MEASURES] + [np.nan])
    timed = _Timed(learner)
    (measured,) = follow(timed, split.dataset, stream, ask="measured")
    # The first call is no update.
    updates = timed.seconds[1:]
    dearest = max(updates) / float(np.median(updates))
    return np.array([getattr(measured, name) for name in MEASURES] + [dearest])


class _Timed:
    """A learner that notes the processor time of each call that trains it."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.seconds: list[float] = []

    def partial_fit(self, X: Array, y: Array) -> _Timed:
        start = time.process_time()
        self.learner.partial_fit(X, y)
        self.seconds.append(time.process_time() - start)
        return self

    def predict(self, X: Array) -> Array:
        predicted: Array = self.learner.predict(X)
        return predicted

    def comparisons(self, X: Array) -> float:
        return float(self.learner.comparisons(X))

    @property
    def update_report_(self) -> Any:
        return self.learner.update_report_
