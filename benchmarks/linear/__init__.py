"""Least squares, class means and metric learning: exact, fair to few, and fast per example."""

from __future__ import annotations

from benchmarks.linear import accuracy, choosing, imbalance, one_example, peers, rejection

__all__ = ["run"]


def run(quick: bool) -> None:
    """Measure on digits, on image features and on generated data."""
    imbalance.run(quick)
    one_example.run(quick)
    accuracy.run(quick)
    peers.run(quick)
    rejection.run(quick)
    choosing.run(quick)
