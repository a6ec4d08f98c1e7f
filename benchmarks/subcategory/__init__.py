"""Coarse and fine classes: what forests that learn from both must reach.

The tables and figures of the paper are experiments: ``evergrow experiment cvpr2015``.

``python -m benchmarks.subcategory NAME ...`` runs parts of it and keeps results.
"""

from __future__ import annotations

from benchmarks.subcategory.bench import Bench, Results
from benchmarks.subcategory.data import data_sets
from benchmarks.subcategory.measures import MEASURES

__all__ = ["run"]


def run(quick: bool) -> None:
    """Everything, without keeping results."""
    bench = Bench(Results(), (0, 1), 5, quick=True) if quick else Bench(Results())
    for measure in MEASURES.values():
        for data in data_sets(measure.data, quick=quick):
            measure.run(bench, data)
