"""A short timed run of an estimator, and how its time and size scale to more data.

The trial has the features, classes and leaf size that were asked for, as far as a second of
computing allows, and fewer rows and trees. It is run again with more trees, or more rows if there
are none: the difference is work that workers share, the rest is done once.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.distributed.planning.schedule import Cost
from evergrow.distributed.planning.workload import EstimatorSpec, Workload
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.threads import one_blas_thread

# Rows of a first run, which tells how many rows take this long.
_FIRST_ROWS, _SECONDS = 2000, 0.3
_FEWEST_ROWS, _MOST_FEATURES, _MOST_VALUES = 50, 2000, 1 << 25
# Least squares holds out a part of its rows until there are 12000.
_FEWEST_SUMMED = 12000
# Rows of each class, if the data have as many, and leaves of a tree.
_ROWS_PER_CLASS, _FEWEST_LEAVES = 10, 50
# How many times the trees, or the rows, the longer run has.
_MORE_TREES, _MORE_ROWS = 3, 2
# Fits of which the shortest counts: the first one also waits for memory from the system.
_FEWEST_REPEATS, _MOST_REPEATS, _LONG_SECONDS = 2, 5, 1.0
_N_IMAGES = 12


@dataclass(frozen=True)
class Trial:
    """What a short run took, and bytes of one of its trees without row numbers, if it had any."""

    spec: EstimatorSpec
    work: Workload
    cost: Cost
    tree_bytes: float = 0.0

    def scaled_cost(self, work: Workload) -> Cost:
        """Seconds that the same takes for other data."""
        spec, ran = self.spec, self.work
        return Cost(
            self.cost.shared * spec.shared(work) / spec.shared(ran),
            self.cost.once * spec.once(work) / spec.once(ran),
        )

    def scaled_tree_bytes(self, work: Workload) -> float:
        """Bytes of one tree for other data: its row numbers, vectors and nodes."""
        ran = self.work
        leaves = work.rows / ran.rows * ran.min_samples_leaf / work.min_samples_leaf
        node = self.spec.node(work) / self.spec.node(ran)
        return 4.0 * work.rows + self.tree_bytes * leaves * node


def run_trial(spec: EstimatorSpec, work: Workload, verbose: int = 0) -> Trial:
    """Fit the estimator to small generated data, in a few seconds."""
    with progress_bar("timing a trial run", 3, verbose) as progress:
        done = progress or (lambda _: None)
        first = _smaller(work, min(work.rows, _FIRST_ROWS))
        seconds, _ = _time_fit(spec, first)
        done(1)
        rows = max(first.rows * _SECONDS / seconds, 0 if spec.has_trees else _FEWEST_SUMMED)
        ran = _smaller(work, int(min(rows, work.rows, _MOST_VALUES // first.features)))
        short, _ = _time_fit(spec, ran)
        done(2)
        if not spec.has_trees:
            long, _ = _time_fit(spec, replace(ran, rows=_MORE_ROWS * ran.rows))
            return Trial(spec, ran, _split(short, long, _MORE_ROWS))
        long, model = _time_fit(spec, replace(ran, trees=_MORE_TREES))
    cost = _split(short, long, _MORE_TREES)
    if spec.kind == "codebook":
        return Trial(spec, ran, cost)
    return Trial(spec, ran, cost, model._fitted.forest.nbytes / _MORE_TREES - 4.0 * ran.rows)


def _split(short: float, long: float, factor: int) -> Cost:
    """Separate shared from one-time cost; the long run has ``factor`` times the shared work."""
    # Within what is possible, however noisy the times are.
    shared = min(short, max((long - short) / (factor - 1), 0.01 * short))
    return Cost(shared, short - shared)


def _smaller(work: Workload, rows: int) -> Workload:
    """Fewer rows with enough of each class, in leaves small enough for a tree of some levels."""
    rows_per_class = min(_ROWS_PER_CLASS, work.rows / work.classes)
    leaf = work.min_samples_leaf
    return replace(
        work,
        rows=max(_FEWEST_ROWS, rows),
        features=min(work.features, _MOST_FEATURES),
        classes=max(2, min(work.classes, round(rows / rows_per_class))),
        min_samples_leaf=leaf if rows == work.rows else min(leaf, max(1, rows // _FEWEST_LEAVES)),
        trees=1,
    )


def _time_fit(spec: EstimatorSpec, work: Workload) -> tuple[float, Any]:
    """Return CPU seconds, which other programs disturb less than the clock, and the model."""
    X, y = generate(work.rows, work.features, work.classes)
    model = spec.make(work)
    taken: list[float] = []
    with one_blas_thread():
        while len(taken) < (_MOST_REPEATS if sum(taken) < _LONG_SECONDS else _FEWEST_REPEATS):
            start = time.process_time()
            model.fit(X, y)
            if spec.kind == "sums":
                # Weights are computed when they are first needed.
                model.predict(X[:1])
            taken.append(time.process_time() - start)
    return max(min(taken), 1e-6), model


def generate(
    n_rows: int, n_features: int, n_classes: int, seed: int = 0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Rows of overlapping classes of equal size, in random order, similar to image features.

    Features of networks separate classes strongly in a few directions and weakly in many, and some
    rows are further from their class than others. The constants were chosen so that NCM trees
    resemble those on CIFAR-100 features: 6 % deeper, with 20 % more nodes.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(n_rows) % n_classes
    separation = 2.5 * np.arange(1, n_features + 1, dtype=np.float32) ** -0.7
    centres = rng.standard_normal((n_classes, n_features), dtype=np.float32) * separation
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    X *= np.exp(0.5 * rng.standard_normal((n_rows, 1), dtype=np.float32))
    for first in range(0, n_rows, 4096):
        rows = slice(first, first + 4096)
        X[rows] += centres[y[rows]]
    return X, y


def measure_images() -> float | None:
    """Seconds of one core to read and embed a photograph; None without the extra ``vision``."""
    if any(find_spec(name) is None for name in ("PIL", "onnxruntime", "onnx")):
        return None
    from PIL import Image

    from evergrow.vision.embedding.embedder import Embedder

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{place}.jpg" for place in range(_N_IMAGES)]
        for path in paths:
            # Smooth like a photograph: noise takes longer to decode.
            coarse = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
            Image.fromarray(coarse).resize((500, 375)).save(path, quality=90)
        try:
            embedder = Embedder(cache=False, n_jobs=1).fit()
        except (ImportError, OSError):
            return None
        taken = []
        for _ in range(3):
            start = time.process_time()
            embedder.transform(paths)
            taken.append(time.process_time() - start)
        return min(taken) / len(paths)
