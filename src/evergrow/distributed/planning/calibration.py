"""How long units of work take here: fitted to small runs of the learner itself.

Times are those of the processor, the least of several: what else the machine does at the same time
hardly shows in them. The first of several fits in a row also waits for memory from the system,
which takes anything from nothing to as long as a tree; the others have it already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from evergrow.distributed.planning.families import Family
from evergrow.distributed.planning.generated import generate
from evergrow.distributed.planning.shape import Shape, ShapeLaws, measure_shape
from evergrow.distributed.planning.workload import Workload
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.threads import one_blas_thread

__all__ = ["NO_SHAPE", "Calibration", "Run", "calibrate", "measure_run"]

# Times that all sizes are gone through, and how many fits in a row are made of each: so many, or
# more if they take less than so long, up to a number.
_ROUNDS, _FITS, _FITS_SECONDS, _MOST_FITS = 2, 3, 0.3, 10
# Fits that take longer are made in the first round only: in so long a time disturbances even out.
_LONG_SECONDS = 0.5
NO_SHAPE = Shape(0.0, 0.0, 0.0, 0.0, 0.0)

Data = Callable[[int, int, int], tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]


@dataclass(frozen=True)
class Run:
    """A small run: what was learnt, the shape of its trees, and seconds of one processor."""

    work: Workload
    shape: Shape
    seconds: float


@dataclass(frozen=True)
class Calibration:
    """Seconds per unit of each term of a learner, and laws of the shape of its trees.

    ``error`` is the mean error, as a share, with which each run is foretold from the others;
    ``largest`` the seconds that the longest run is foretold to take.
    """

    estimator: str
    rates: tuple[float, ...]
    laws: ShapeLaws | None
    error: float
    largest: float

    def shape(self, family: Family, work: Workload) -> Shape:
        """What a tree is expected to be like."""
        return NO_SHAPE if self.laws is None else self.laws.at(work, family.most_vectors(work))

    def seconds(self, family: Family, work: Workload) -> dict[str, float]:
        """Seconds of one core per term; of one tree where trees divide the term."""
        shape = self.shape(family, work)
        return {
            term.name: rate * term.amount(work, shape)
            for term, rate in zip(family.terms, self.rates, strict=True)
        }


def calibrate(family: Family, *, data: Data = generate, verbose: int = 0) -> Calibration:
    """Run a learner on small data of several sizes and find what the parts of its work cost."""
    works = family.calibrated_by()
    best: list[Run | None] = [None] * len(works)
    n_runs = _ROUNDS * len(works)
    with progress_bar(f"calibrating {family.name}", n_runs, verbose) as progress:
        # One size after the other, then all again: what disturbs one of a size is over by the next.
        for done in range(n_runs):
            place = done % len(works)
            work, before = works[place], best[place]
            if before is None or before.seconds < _LONG_SECONDS:
                X, y = data(work.rows, work.features, work.classes)
                run = measure_run(family, work, X, y, repeats=_FITS, at_least=_FITS_SECONDS)
                best[place] = run if before is None or run.seconds < before.seconds else before
            if progress is not None:
                progress(done + 1)
    return fitted(family, [run for run in best if run is not None])


def measure_run(
    family: Family,
    work: Workload,
    X: npt.NDArray[np.float32],
    y: npt.NDArray[np.int64],
    repeats: int = 1,
    at_least: float = 0.0,
) -> Run:
    """Fit as often as asked, and keep the least time: all above it is somebody else's.

    Fits that take less than ``at_least`` seconds together are made again.
    """
    taken: list[float] = []
    model = family.make(work.trees)
    if family.has_shape:
        model.set_params(min_samples_leaf=work.min_samples_leaf)
    with one_blas_thread():
        while len(taken) < repeats or (sum(taken) < at_least and len(taken) < _MOST_FITS):
            start = time.process_time()
            model.fit(X, y)
            if not family.has_trees:
                # Weights are solved for when they are first asked for.
                model.predict(X[:1])
            taken.append(time.process_time() - start)
    shape = measure_shape(model._fitted.forest) if family.has_shape else NO_SHAPE
    return Run(work, shape, max(min(taken), 1e-6))


def fitted(family: Family, runs: Sequence[Run]) -> Calibration:
    """Rates that explain the runs, none of them negative, each run counting the same."""
    amounts = np.array([_amounts(family, run) for run in runs])
    seconds = np.array([run.seconds for run in runs])
    rates = _rates(amounts, seconds)
    laws = None
    if family.has_shape:
        works = [run.work for run in runs]
        most_vectors = [family.most_vectors(work) for work in works]
        laws = ShapeLaws.fitted(works, [run.shape for run in runs], most_vectors)
    calibration = Calibration(family.name, tuple(rates.tolist()), laws, 0.0, 0.0)
    foretold = [total_seconds(family, calibration, run.work) for run in runs]
    return Calibration(
        family.name, calibration.rates, laws, _error(amounts, seconds), max(foretold)
    )


def total_seconds(family: Family, calibration: Calibration, work: Workload) -> float:
    """Seconds of one core for all of the work."""
    found = calibration.seconds(family, work)
    return sum(
        found[term.name] * (work.trees if term.divided == "trees" else 1) for term in family.terms
    )


def _amounts(family: Family, run: Run) -> list[float]:
    return [
        term.amount(run.work, run.shape) * (run.work.trees if term.divided == "trees" else 1)
        for term in family.terms
    ]


def _rates(
    amounts: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    relative = amounts / seconds[:, None]
    scale = np.maximum(relative.max(axis=0), 1e-300)
    found, _ = nnls(relative / scale, np.ones(len(seconds)))
    return np.asarray(found / scale, dtype=np.float64)


def _error(amounts: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]) -> float:
    """Root mean square error of each run as foretold from all others."""
    errors = []
    for out in range(len(seconds)):
        others = np.arange(len(seconds)) != out
        rates = _rates(amounts[others], seconds[others])
        errors.append(float(amounts[out] @ rates / seconds[out] - 1))
    return float(np.sqrt(np.mean(np.square(errors))))
