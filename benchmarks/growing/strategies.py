"""The update strategies beside retraining: accuracy, processor time and distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.data import Split
from benchmarks.growing.protocol import (
    ORDER_SEEDS,
    Outcome,
    Schedule,
    grow,
    last,
    mean_outcome,
    retrain,
    stream_of,
)
from benchmarks.measure import Figure, report, show_table
from evergrow import IGT, RTST, RUST, ULS
from evergrow.forest.strategies import Strategy

__all__ = ["RECOMMENDED", "chunks", "orders", "settings", "strategies"]

FROM_THREE = Schedule(initial=3)

# Near the accuracy of retraining, the newest classes included, for a quarter of its time.
RECOMMENDED: dict[str, Any] = {"update": RUST(share=0.3), "refresh": 0.1}

STRATEGIES = {"ULS": ULS(), "IGT": IGT(), "RUST": RUST(), "RTST": RTST()}


@dataclass(frozen=True)
class Bars:
    """What a strategy must reach, each as a share of retraining at every step."""

    accuracy: float
    seconds: float
    distances: float


BARS = {
    "IGT": Bars(0.86, 0.10, 1 / 25),
    "RUST": Bars(0.97, 0.30, 1 / 9),
    "RTST": Bars(0.99, 0.55, 0.4),
}

COLUMNS = ["", "accuracy", "newest five", "CPU", "distances", "comparisons"]


def _row(name: str, outcome: Outcome) -> tuple[object, ...]:
    return (
        name,
        outcome.accuracy,
        outcome.newest,
        outcome.seconds,
        outcome.n_distances,
        outcome.comparisons,
    )


def strategies(split: Split, n_classes: int, n_orders: int, bars: bool) -> list[float]:
    """The four strategies and the recommended setting, over several orders of the classes.

    Returns the final accuracy of RUST for each order.
    """
    contenders: dict[str, dict[str, Any]] = {
        **{name: {"update": strategy} for name, strategy in STRATEGIES.items()},
        "recommended": RECOMMENDED,
    }
    streams = [stream_of(split, seed, n_classes) for seed in ORDER_SEEDS[:n_orders]]
    runs: dict[str, list[Outcome]] = {name: [] for name in contenders}
    retrained = []
    for stream in streams:
        # Side by side within an order, so that a busy spell of the machine hits all of them.
        retrained.append(last(retrain(stream, FROM_THREE)))
        for name, parameters in contenders.items():
            runs[name].append(last(grow(stream, FROM_THREE, **parameters)))
    baseline = mean_outcome(retrained)
    shares = {name: mean_outcome(runs[name]).relative_to(baseline) for name in contenders}
    title = f"3 to {n_classes} classes one by one, {n_orders} orders"
    show_table(
        f"growing: {split.name}, {title}, relative to retraining at every class",
        COLUMNS,
        [_row(name, share) for name, share in shares.items()],
    )
    figures = [
        Figure("retrained: accuracy %", 100 * baseline.accuracy),
        Figure("retrained: newest five %", 100 * baseline.newest),
        Figure("retrained: CPU s, all steps", baseline.seconds),
    ]
    for name in STRATEGIES:
        figures += _strategy_figures(name, shares[name], BARS.get(name))
    figures += _recommended_figures(shares["recommended"])
    report("growing", f"{split.name}, {title}", figures, bars=bars)
    return [run.accuracy for run in runs["RUST"]]


def _strategy_figures(name: str, share: Outcome, bars: Bars | None) -> list[Figure]:
    accuracy, seconds, distances = (
        (None, None, None) if bars is None else (bars.accuracy, bars.seconds, bars.distances)
    )
    return [
        Figure(f"{name}: accuracy / retrained", share.accuracy, accuracy),
        Figure(f"{name}: newest five / retrained", share.newest),
        Figure(f"{name}: CPU / retraining", share.seconds, seconds, "at most"),
        Figure(f"{name}: distances / retraining", share.n_distances, distances, "at most"),
    ]


def _recommended_figures(share: Outcome) -> list[Figure]:
    return [
        Figure("recommended: accuracy / retrained", share.accuracy, 0.985),
        Figure("recommended: newest five / retrained", share.newest, 0.90),
        Figure("recommended: CPU / retraining", share.seconds, 0.30, "at most"),
        Figure("recommended: distances / retraining", share.n_distances),
    ]


def settings(split: Split, n_classes: int, quick: bool) -> None:
    """A table over strategy, share of the nodes, choice of the nodes and refresh."""
    stream = stream_of(split, ORDER_SEEDS[0], n_classes)
    baseline = last(retrain(stream, FROM_THREE))
    rows = []
    for parameters in _settings(quick):
        outcome = last(grow(stream, FROM_THREE, **parameters)).relative_to(baseline)
        mark = " *" if parameters == RECOMMENDED else ""
        rows.append(_row(f"{parameters['update']}, refresh {parameters['refresh']}{mark}", outcome))
    show_table(
        f"growing: settings, one order, 3 to {n_classes} classes (* recommended)", COLUMNS, rows
    )


def _settings(quick: bool) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = [
        {"update": strategy, "refresh": refresh}
        for strategy in (IGT(), RUST(), RTST())
        for refresh in (0.0, 0.04, 0.1, 0.2)
    ]
    chosen: list[Strategy] = [
        *(RUST(share=share) for share in (0.1, 0.2, 0.3, 0.4)),
        *(RTST(share=share, nodes="uniform") for share in (0.01, 0.02, 0.05)),
        *(RTST(share=share, nodes="quality") for share in (0.02, 0.05, 0.1)),
    ]
    small: list[dict[str, Any]] = [
        {"update": strategy, "refresh": refresh} for strategy in chosen for refresh in (0.04, 0.1)
    ]
    alone: dict[str, Any] = {"update": RTST(share=0.05, nodes="uniform"), "refresh": 0.0}
    return table[::5] if quick else [*table, alone, *small]


def chunks(split: Split, n_classes: int, bars: bool) -> None:
    """From 10 classes on, one, five or ten at a time: RUST beside RTST."""
    stream = stream_of(split, ORDER_SEEDS[0], n_classes)
    # The forest trained on everything at once is the same for every chunk size.
    baseline = last(retrain(stream, Schedule(initial=n_classes)))
    rows: list[tuple[object, ...]] = []
    figures = []
    for step in (1, 5, 10):
        runs = {
            name: last(grow(stream, Schedule(10, step), update=STRATEGIES[name]))
            for name in ("RUST", "RTST")
        }
        for name, run in runs.items():
            accuracy, newest = run.accuracy / baseline.accuracy, run.newest / baseline.newest
            rows.append((f"{name}, {step} at a time", accuracy, newest, run.seconds))
        ratio = runs["RUST"].seconds / runs["RTST"].seconds
        name = f"{step} at a time: CPU of RUST / RTST"
        figures.append(Figure(name, ratio, 1, "at most"))
    title = f"{split.name}, 10 to {n_classes} classes"
    show_table(
        f"growing: {title}, accuracy relative to retrained",
        ["", "accuracy", "newest five", "CPU s"],
        rows,
    )
    report("growing", title, figures, bars=bars)


def orders(split: Split, n_classes: int, known: list[float], n_orders: int, bars: bool) -> None:
    """How much the order of the classes matters to RUST; some orders were measured before."""
    accuracies = [*known]
    for seed in ORDER_SEEDS[len(known) : n_orders]:
        stream = stream_of(split, seed, n_classes)
        accuracies.append(last(grow(stream, FROM_THREE, update=RUST())).accuracy)
    deviation = float(np.std(accuracies, ddof=1) / np.mean(accuracies))
    figures = [Figure(f"{n_orders} orders, RUST: deviation / mean", deviation, 0.10, "at most")]
    report("growing", f"{split.name}, 3 to {n_classes} classes", figures, bars=bars)
