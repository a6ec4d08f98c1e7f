"""Run the estimator once on small data, and scale its time and size to more data.

The trial has the features, classes and leaf size that were asked for, as far as some seconds of
computing allow, and fewer rows and trees. It is run again with more trees, or more rows if there
are none: the difference is work that workers share, the rest is done once.

What a forest does before it grows trees is timed apart (:class:`Preparation`): choosing a transform
of the features takes longer than a tree of few rows, but hardly longer for more rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evergrow.distributed.planning.schedule import Cost
from evergrow.distributed.planning.workload import EstimatorSpec, Workload
from evergrow.estimators.forest.change import feature_scale
from evergrow.estimators.forest.cluster.driver_grow import standardize_all
from evergrow.estimators.forest.value.fitted import ForestBatch
from evergrow.estimators.forest.value.standardization import Standardization
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.threads import one_blas_thread

# Rows of a first run, which tells how many rows take this long: one tree of them, or all of them.
_FIRST_ROWS, _SECONDS = 2000, 0.3
# How many times the rows of the first run the trial has at most: its trees take so little time that
# noise may hide it.
_MOST_TIMES = 64
_FEWEST_ROWS, _MOST_FEATURES, _MOST_VALUES = 50, 2000, 1 << 25
# Least squares holds out a part of its rows until there are 12000.
_FEWEST_SUMMED = 12000
# Rows of each class, if the data have as many, and leaves of a tree. Nodes of small classes compare
# with more class means, and more transforms of the features are tried for them.
_ROWS_PER_CLASS, _FEWEST_LEAVES = 100, 50
# How many times the trees, or the rows, the longer run has.
_MORE_TREES, _MORE_ROWS = 3, 2
# Fits of which the shortest counts, unless they take so long that one will do.
_MOST_REPEATS, _LONG_SECONDS = 5, 1.0
# Choosing a transform takes as long as measuring this many rows more than it measures.
_CHOICE_ROWS = 3000
_N_IMAGES = 12

_T = TypeVar("_T")


@dataclass(frozen=True)
class Preparation:
    """What a forest does before it grows trees, in seconds of one core.

    Attributes
    ----------
    reading : float
        Measuring mean and deviation of every feature, by one thread.
    choosing : float
        Choosing the transform of the features, on a limited number of rows.
    transforming : float
        Transforming the rows, by all threads.
    is_whitened : bool
        Whether the chosen transform is a matrix.
    """

    reading: float
    choosing: float
    transforming: float
    is_whitened: bool

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.reading + self.choosing + self.transforming

    def scaled_cost(self, ran: Workload, work: Workload) -> Cost:
        """The same for other data; no transform is chosen for very many features."""
        rows, features = work.rows / ran.rows, work.features / ran.features
        chooses = work.features <= feature_scale.MOST_FEATURES
        measured = _rows_to_choose(work) / _rows_to_choose(ran)
        return Cost(
            0.0,
            self.reading * rows * features + chooses * self.choosing * measured * features**2,
            self.transforming * rows * features ** (2 if self.is_whitened else 1),
        )


def _rows_to_choose(work: Workload) -> int:
    most = feature_scale.most_measured(work.features, work.classes)
    return min(work.rows, most) + _CHOICE_ROWS


@dataclass(frozen=True)
class Trial:
    """What a short run took, and bytes of one of its trees without row numbers, if it had any."""

    spec: EstimatorSpec
    work: Workload
    cost: Cost
    tree_bytes: float = 0.0
    preparation: Preparation | None = None

    def scaled_cost(self, work: Workload) -> Cost:
        """Seconds that the same takes for other data."""
        spec, ran = self.spec, self.work
        shared = self.cost.shared * spec.shared(work) / spec.shared(ran)
        once = self.cost.once * spec.once(work) / spec.once(ran)
        if self.preparation is None:
            return Cost(shared, once)
        before = self.preparation.scaled_cost(ran, work)
        return replace(before, shared=shared, once=once + before.once)

    def scaled_tree_bytes(self, work: Workload) -> float:
        """Bytes of one tree for other data: its row numbers, vectors and nodes."""
        ran = self.work
        leaves = work.rows / ran.rows * ran.min_samples_leaf / work.min_samples_leaf
        node = self.spec.node(work) / self.spec.node(ran)
        return 4.0 * work.rows + self.tree_bytes * leaves * node


def run_trial(spec: EstimatorSpec, work: Workload, verbose: int = 0) -> Trial:
    """Fit the estimator to small generated data, in some seconds."""
    try_it = {"sums": _try_sums, "codebook": _try_codebook, "forest": _try_forest}[spec.kind]
    with progress_bar("timing a trial run", 3, verbose) as progress, one_blas_thread():
        return try_it(spec, work, progress or (lambda _: None))


def _try_sums(spec: EstimatorSpec, work: Workload, done: Callable[[int], None]) -> Trial:
    first = _smaller(work, min(work.rows, _FIRST_ROWS))
    seconds, _ = _time_fit(spec, first)
    done(1)
    ran = _smaller(work, _affordable(first, max(_SECONDS / seconds, _FEWEST_SUMMED / first.rows)))
    short, _ = _time_fit(spec, ran)
    done(2)
    long, _ = _time_fit(spec, replace(ran, rows=_MORE_ROWS * ran.rows))
    return Trial(spec, ran, _split(short, long, _MORE_ROWS))


def _try_codebook(spec: EstimatorSpec, work: Workload, done: Callable[[int], None]) -> Trial:
    ran = _smaller(work, _rows_of_trial(spec, work))
    done(1)
    cost, _ = _time_trees(spec, ran, generate(ran.rows, ran.features, ran.classes))
    return Trial(spec, ran, cost)


def _try_forest(spec: EstimatorSpec, work: Workload, done: Callable[[int], None]) -> Trial:
    ran = _smaller(work, _rows_of_trial(spec, work, standardize="scale"))
    done(1)
    X, y = generate(ran.rows, ran.features, ran.classes)
    chooses = work.features <= feature_scale.MOST_FEATURES
    forest = spec.make(ran) if chooses else spec.make(ran, standardize="scale")
    preparation, rows = _prepare(forest, X, y)
    done(2)
    # Trees of rows as the whole forest would have them. They are transformed once more, which is
    # not to be counted twice.
    cost, model = _time_trees(spec, ran, (rows, y), standardize="none")
    again = _prepare(spec.make(ran, standardize="none"), rows, y)[0].seconds
    tree_bytes = model._fitted.forest.nbytes / model.n_estimators - 4.0 * ran.rows
    cost = replace(cost, once=max(0.0, cost.once - again))
    return Trial(spec, ran, cost, tree_bytes, preparation)


def _prepare(
    forest: Any, X: npt.NDArray[np.float32], y: npt.NDArray[np.int64]
) -> tuple[Preparation, npt.NDArray[np.float32]]:
    """Time what the forest does before it grows trees; also returns the transformed rows."""
    batch = ForestBatch(X, y.astype(np.int32), np.arange(len(y)))
    request = forest._request()
    reading = 0.0
    if request.standardize != "none":
        reading, _ = _time(lambda: Standardization.of_each(X))
    measuring, chosen = _time(
        lambda: feature_scale.measure_features(batch, int(y.max()) + 1, request)
    )
    transforming, rows = _time(lambda: standardize_all(X, chosen, half=False, n_threads=1))
    choosing = max(measuring - reading, 0.0)
    preparation = Preparation(reading, choosing, transforming, chosen.whitening is not None)
    return preparation, rows[:, : X.shape[1]]


def _rows_of_trial(spec: EstimatorSpec, work: Workload, **options: Any) -> int:
    """Rows of which a tree takes long enough to be timed."""
    first = _smaller(work, min(work.rows, _FIRST_ROWS))
    data = generate(first.rows, first.features, first.classes)
    cost, _ = _time_trees(spec, first, data, **options)
    return min(work.rows, _affordable(first, _SECONDS / cost.shared))


def _affordable(first: Workload, factor: float) -> int:
    return int(min(first.rows * min(factor, _MOST_TIMES), _MOST_VALUES // first.features))


def _time_trees(
    spec: EstimatorSpec, work: Workload, data: tuple[Any, Any], **options: Any
) -> tuple[Cost, Any]:
    """The cost of one tree and of what is done once, and a model of more trees."""
    short, _ = _time_fit(spec, work, data, **options)
    long, model = _time_fit(spec, replace(work, trees=_MORE_TREES), data, **options)
    return _split(short, long, _MORE_TREES), model


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


def _time_fit(
    spec: EstimatorSpec, work: Workload, data: tuple[Any, Any] | None = None, **options: Any
) -> tuple[float, Any]:
    """The shortest of some fits, and the model."""
    X, y = data or generate(work.rows, work.features, work.classes)
    model = spec.make(work, **options)

    def fit() -> None:
        model.fit(X, y)
        if spec.kind == "sums":
            # Weights are computed when they are first needed.
            model.predict(X[:1])

    taken: list[float] = []
    while not taken or (sum(taken) < _LONG_SECONDS and len(taken) < _MOST_REPEATS):
        taken.append(_time(fit)[0])
    return max(min(taken), 1e-6), model


def _time(work: Callable[[], _T]) -> tuple[float, _T]:
    """CPU seconds, which other programs disturb less than the clock, and what was returned."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


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
