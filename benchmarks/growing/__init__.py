"""Forests that grow: how near they come to retraining, and for how little."""

from __future__ import annotations

from benchmarks.data import image_features, mixture
from benchmarks.growing import endurance, spirals
from benchmarks.growing.one_class import more_samples, one_class
from benchmarks.growing.strategies import chunks, orders, settings, strategies

__all__ = ["run"]


def run(quick: bool) -> None:
    """Measure on image features, on spirals and on digits; quickly on a small mixture instead."""
    split = mixture(4000, 64, 40, n_test=2000) if quick else image_features()
    # The bars are promises on real features; generated data is easier.
    bars = split.name.startswith("CIFAR")
    n_classes = 15 if quick else 50
    accuracies = strategies(split, n_classes, 1 if quick else 5, bars)
    orders(split, n_classes, accuracies, 3 if quick else 10, bars)
    settings(split, n_classes, quick)
    chunks(split, 40 if quick else 100, bars)
    one_class(split, 2 if quick else 12, bars)
    more_samples(split, 5 if quick else 21, bars)
    spirals.run(quick)
    endurance.run(quick)
