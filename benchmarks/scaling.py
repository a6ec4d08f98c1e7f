"""How training time grows with rows, and shrinks with threads."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.data import Split, mixture
from benchmarks.measure import Figure, median_seconds, report, show_table
from benchmarks.peers import ncm_forest
from evergrow.estimators.forest.value.serialization import to_tensors


def run(quick: bool) -> None:
    """Measure on a generated mixture."""
    split = mixture(20000 if quick else 100000, 256, 100)
    rows(split, [2000, 5000, 20000] if quick else [10000, 20000, 50000, 100000], bars=not quick)
    threads(split.head(5000, 500) if quick else split, bars=not quick)


def rows(split: Split, sizes: list[int], bars: bool) -> None:
    """Fit time over the number of rows, relative to n log n."""
    table = []
    for n in sizes:
        forest = ncm_forest(2)
        seconds = median_seconds(lambda n=n, f=forest: f.fit(split.X[:n], split.y[:n]))  # type: ignore[misc]
        work = sum(forest._fitted.forest.n_comparisons)
        table.append((n, seconds, seconds / (n * math.log(n)), work / (n * math.log(n))))
    first = table[0]
    shown = [(n, s, rate / first[2], work / first[3]) for n, s, rate, work in table]
    show_table(
        f"scaling: {split.name}",
        ["rows", "fit s", "time / n log n", "distances / n log n"],
        shown,
    )
    last = shown[-1]
    report(
        "scaling",
        split.name,
        [
            Figure(f"fit time / n log n, {sizes[0]} to {sizes[-1]} rows", last[2], 1.15, "at most"),
            Figure("distances computed / n log n", last[3]),
        ],
        bars=bars,
    )


def threads(split: Split, bars: bool) -> None:
    """One thread against two, and whether the forest is the same."""
    forests = {n: ncm_forest(n) for n in (1, 2)}
    seconds = {
        n: median_seconds(lambda f=f: f.fit(split.X, split.y))  # type: ignore[misc]
        for n, f in forests.items()
    }
    one, two = (to_tensors(forest._fitted)[1] for forest in forests.values())
    same = all(np.array_equal(one[name], two[name]) for name in one)
    report(
        "scaling",
        split.name,
        [
            Figure("1 thread / 2 threads", seconds[1] / seconds[2], 1.7),
            Figure("identical forest (1 = yes)", float(same), 1),
        ],
        bars=bars,
    )
