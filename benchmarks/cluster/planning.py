"""How far plans are from what happens: at 8 times the size that was calibrated, and on real data.

Plans are made for one core, and measured in time of the processor; the last is measured by the
clock with all cores at work.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.data import Split, bird_features, image_features, object_features
from benchmarks.measure import Figure, report, show_table
from evergrow.planning.calibration import Calibration, calibrate, measure_run, total_seconds
from evergrow.planning.families import FAMILIES, Family
from evergrow.planning.generated import generate
from evergrow.planning.kept import Kept
from evergrow.planning.planner import planned
from evergrow.planning.workload import Cluster, Workload, this_machine

__all__ = ["run"]

_BAR = 30.0

# Rows, features, classes and trees. The first is one that is calibrated by, the others have 8 times
# its rows, or 8 times its work by features or classes.
_FOREST = {
    "8 times the rows": (192000, 256, 300, 2),
    "8 times the features": (24000, 2048, 300, 2),
    "8 times the classes": (24000, 256, 2400, 2),
}
_SUMS = {
    "8 times the rows": (160000, 768, 100, 1),
    "8 times the work by features": (4000, 3072, 200, 1),
    "8 times the classes": (20000, 768, 800, 1),
}
LARGER = {
    "ncm_forest": _FOREST,
    "axis": _FOREST,
    "linear": _FOREST,
    "svm": {
        "8 times the rows": (48000, 64, 100, 1),
        "8 times the features": (4000, 2048, 100, 1),
        "8 times the classes": (16000, 64, 400, 1),
    },
    "least_squares": _SUMS,
    "means": {**_SUMS, "8 times the work by features": (20000, 6144, 100, 1)},
    "erc": {
        "8 times the rows": (256000, 128, 100, 2),
        "8 times the features": (32000, 1024, 100, 1),
        "8 times the classes": (32000, 128, 800, 1),
    },
}
# Too small for bars: does it run?
_QUICK = {
    "ncm_forest": {"as calibrated": (8000, 256, 100, 2)},
    "means": {"as calibrated": (8000, 256, 100, 1)},
}


def run(quick: bool) -> None:
    """Calibrate, foretell, measure."""
    for name, sizes in (_QUICK if quick else LARGER).items():
        family = FAMILIES[name]
        start = time.perf_counter()
        calibration = calibrate(family)
        seconds = time.perf_counter() - start
        _at_sizes(family, calibration, sizes, seconds, bars=not quick)
    if quick:
        return
    _on_real_data()
    _by_the_clock()


def _at_sizes(
    family: Family,
    calibration: Calibration,
    sizes: dict[str, tuple[int, int, int, int]],
    seconds: float,
    bars: bool,
) -> None:
    rows, figures = [], []
    for what, (n, d, classes, trees) in sizes.items():
        work = Workload(n, d, classes, trees)
        X, y = generate(n, d, classes, seed=1)
        measured = measure_run(family, work, X, y, repeats=2).seconds
        expected = total_seconds(family, calibration, work)
        rows.append((what, f"{n} x {d}, {classes}", expected, measured, expected / measured))
        error = 100 * abs(expected / measured - 1)
        figures.append(Figure(f"{family.name}, {what}: error %", error, _BAR, "at most"))
    show_table(
        f"plan: {family.name}, calibrated in {seconds:.0f} s",
        ["", "data", "planned s", "measured s", "planned / measured"],
        rows,
    )
    report("cluster", "plan", figures, bars=bars)


def _on_real_data() -> None:
    """The shape of trees depends on the data: how much, on features of photographs."""
    rows, figures = [], []
    for name in ("ncm_forest", "axis", "linear", "least_squares"):
        family = FAMILIES[name]
        calibration = calibrate(family)
        for split in (image_features(), bird_features(), object_features()):
            expected, measured = _expected_and_measured(family, calibration, split)
            rows.append((f"{name}, {split.name}", expected, measured, expected / measured))
            error = 100 * abs(expected / measured - 1)
            figures.append(Figure(f"{name} on {split.name}: error %", error))
    columns = ["", "planned s", "measured s", "planned / measured"]
    show_table("plan: real features, calibrated on generated ones", columns, rows)
    report("cluster", "plan on real data", figures)


def _expected_and_measured(
    family: Family, calibration: Calibration, split: Split
) -> tuple[float, float]:
    n, d = split.X.shape
    work = Workload(n, d, len(np.unique(split.y)), 4)
    measured = measure_run(family, work, split.X, split.y, repeats=2).seconds
    return total_seconds(family, calibration, work), measured


def _by_the_clock() -> None:
    """A whole forest on all cores of this machine."""
    family = FAMILIES["ncm_forest"]
    n, d, classes, trees = 100000, 512, 500, 8
    cores, memory = this_machine()
    here = Cluster(1, cores, memory)
    kept = Kept()
    work = Workload(n, d, classes, trees)
    expected = planned(
        family,
        work,
        (here, here),
        kept.calibration(family),
        kept.machine(images=False, ray=False),
        from_shards=False,
    )
    X, y = generate(n, d, classes, seed=2)
    forest = family.make(trees).set_params(n_jobs=cores)
    start = time.perf_counter()
    forest.fit(X, y)
    measured = time.perf_counter() - start
    rows = [("this machine", expected.this_machine.expected, measured)]
    show_table(f"plan: by the clock, {cores} cores", ["", "planned s", "measured s"], rows)
    size = forest._fitted.forest.nbytes + forest._fitted.forest.samples.nbytes
    wrong_size = 100 * abs(expected.model_bytes / size - 1)
    figures = [
        Figure(
            "by the clock on all cores: error %",
            100 * abs(expected.this_machine.expected / measured - 1),
            _BAR,
            "at most",
        ),
        Figure("size of the model: error %", wrong_size, _BAR, "at most"),
    ]
    report("cluster", f"plan: {n} x {d}, {classes} classes, {trees} trees", figures)
