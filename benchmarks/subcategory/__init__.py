"""Coarse and fine classes: forests that learn from both, and what fine labels are worth.

``python -m benchmarks.subcategory NAME ...`` runs parts of it and keeps results.
"""

from __future__ import annotations

from benchmarks.subcategory.data import data_sets
from benchmarks.subcategory.measures import MEASURES
from benchmarks.subcategory.results import Results
from benchmarks.subcategory.runs import Bench

__all__ = ["run"]


def run(quick: bool) -> None:
    """Everything, without keeping results."""
    bench = Bench(Results(), (0, 1), 5, quick=True) if quick else Bench(Results())
    for measure in MEASURES.values():
        for data in data_sets(measure.data, quick=quick):
            measure.run(bench, data)
