"""A short timed run of an estimator, and how its time and size scale to more data.

The trial has the features, classes and leaf size that were asked for, as far as a second of
computing allows, and fewer rows and trees. Work that trees or rows share is told apart from work
that is done once by fitting twice: with one tree and with three, or with few rows and with many.
"""

from __future__ import annotations

import math
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

__all__ = ["Trial", "generate", "measure_images", "run_trial"]

_FEWEST_ROWS, _MOST_FEATURES = 50, 2000
# Rows of the first run. Least squares holds out a part of its rows until there are 12000.
_FIRST_ROWS = {"forest": 2000, "codebook": 2000, "sums": 12000}
# The second run has so many rows that it should take this long, within this many values.
_SECONDS, _MOST_VALUES = 0.3, 1 << 25
# Rows of each class, if the data have as many, and leaves of a tree.
_ROWS_PER_CLASS, _FEWEST_LEAVES = 10, 50
# Trees of the last run; the ones before have one.
_TREES = 3
# Fits of which the shortest counts: the first one also waits for memory from the system.
_FEWEST_REPEATS, _MOST_REPEATS, _LONG_SECONDS = 2, 5, 1.0
_N_IMAGES = 12


@dataclass(frozen=True)
class Trial:
    """What a short run took: seconds per tree, or per row without trees, and seconds once.

    ``tree_bytes`` is the size of a tree without its row numbers; 0 if it is not a forest.
    """

    spec: EstimatorSpec
    work: Workload
    unit_seconds: float
    once_seconds: float
    tree_bytes: float = 0.0

    def cost(self, work: Workload) -> Cost:
        """Seconds that the same takes for other data."""
        ran = self.work
        rows, features = work.rows / ran.rows, work.features / ran.features
        shared = features**self.spec.features * (work.classes / ran.classes) ** self.spec.classes
        once = features**self.spec.once
        if not self.spec.has_trees:
            return Cost(self.unit_seconds * work.rows * shared, self.once_seconds * once)
        shared *= rows * self._levels(work) / self._levels(ran)
        return Cost(self.unit_seconds * work.trees * shared, self.once_seconds * once * rows)

    def scaled_tree_bytes(self, work: Workload) -> float:
        """Bytes of one tree for other data: its row numbers, vectors and nodes."""
        ran = self.work
        leaves = work.rows / ran.rows * ran.min_samples_leaf / work.min_samples_leaf
        width = work.width / ran.width if self.spec.stores_vectors else 1.0
        return 4.0 * work.rows + self.tree_bytes * leaves * width

    def _levels(self, work: Workload) -> float:
        leaf = work.min_samples_leaf if self.spec.kind == "forest" else 1
        return max(1.0, math.log2(max(2.0, work.rows / leaf)))


def run_trial(spec: EstimatorSpec, work: Workload, verbose: int = 0) -> Trial:
    """Fit the estimator to small generated data, in a few seconds."""
    with progress_bar("timing a trial run", 3, verbose) as progress:
        done = progress or (lambda _: None)
        few = _smaller(work, min(-(-work.rows // 2), _FIRST_ROWS[spec.kind]))
        seconds, _ = _time_fit(spec, few)
        done(1)
        most_rows = min(work.rows, _MOST_VALUES // few.features)
        wanted = max(few.rows * _SECONDS / seconds, 2 * few.rows)
        many = _smaller(work, int(min(most_rows, wanted)))
        longer, _ = _time_fit(spec, many)
        done(2)
        if not spec.has_trees:
            return _split(spec, many, (few.rows, seconds), (many.rows, longer))
        one_tree = 1, longer
        longer, model = _time_fit(spec, replace(many, trees=_TREES))
        trial = _split(spec, many, one_tree, (_TREES, longer))
    if spec.kind == "codebook":
        return trial
    forest = model._fitted.forest
    return replace(trial, tree_bytes=forest.nbytes / _TREES - 4.0 * many.rows)


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
    """Seconds of the processor, which other programs disturb less than the clock; and the model."""
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


def _split(
    spec: EstimatorSpec, ran: Workload, fewer: tuple[int, float], more: tuple[int, float]
) -> Trial:
    """Divide the time of two runs, (units, seconds), into time per unit and time once."""
    unit = more[1] / more[0]
    if more[0] > fewer[0]:
        # Within what is possible, however noisy the times are.
        unit = min(unit, max((more[1] - fewer[1]) / (more[0] - fewer[0]), 0.01 * unit))
    return Trial(spec, ran, unit, more[1] - more[0] * unit)


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
