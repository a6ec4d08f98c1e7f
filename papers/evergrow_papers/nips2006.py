"""Moosmann, Triggs, Jurie: visual words from randomised clustering forests, NIPS 2006.

The leaves of a few randomised trees are the words of a codebook. A linear SVM on the words that
occur in an image tells images of an object from background. Besides photographs, some experiments
use drawn scenes, in which the outline of the object is known.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product, repeat
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from evergrow import ERCForest
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import natural_order
from evergrow.foundation.threads import one_blas_thread
from evergrow.vision.descriptors import LocalFeatures, RandomPatches
from evergrow.vision.descriptors.describer import shrink_image
from evergrow.vision.images.reader import read_images
from evergrow.vision.words.bag.pooling import POOLINGS, mutual_information_thresholds
from evergrow.vision.words.codebooks.counts import word_offsets
from evergrow.vision.words.evaluation import RocCurve, roc
from evergrow_papers.claims import Claim, Difference, Verdict, Words, each_seed, points
from evergrow_papers.data import Array, Dataset
from evergrow_papers.figures import (
    BLUE,
    Figure,
    Panel,
    Panels,
    Style,
    add_legend,
    draw_panel,
    draw_published,
    styles,
)
from evergrow_papers.frame import Context, Experiment, Run, Source, grid, time_call
from evergrow_papers.scenes import BACKGROUND, BICYCLE, CAR, draw_scenes
from evergrow_papers.table import Row, Table, last

CITATION = (
    "Moosmann, Triggs, Jurie: Fast Discriminative Visual Codebooks using Randomized Clustering "
    "Forests, NIPS 2006"
)
WORDS = Words(
    settings={
        "descriptors": "{} descriptors",
        "leaves": "{} leaves per tree",
        "trees": "{} trees",
        "windows": "{} windows",
    },
    values={
        "data": {"caltech_images": "photographs"},
        "descriptor": {"sift": "SIFT", "haar": "colour wavelets"},
        "pooling": {
            "binary": "binary codes",
            "mutual_information": "thresholds by information",
            "sqrt": "roots of shares",
            "sum": "shares of counts",
            "votes": "votes without words",
        },
        "value": {"haar": "colour wavelets", "hsl": "raw colours"},
    },
    quantities={
        "rate": "rate at equal error",
        "leaves": "leaves per tree",
        "windows": "windows per image",
        "descriptors": "descriptors that the codebook is built from",
        "trees": "trees, each with as many leaves",
        "spread": "standard deviation, points",
    },
    percentages=("rate",),
)

# Printed rate for bikes of GRAZ-02, with codebooks learnt from whole images.
PAPER_RATE = 84.4
# The paper's best descriptor for bikes, its numbers of trees and of trials, and of runs.
HAAR, N_TREES, MAX_TRIALS, N_SEEDS = "haar", 5, 50, 10
# Windows that are coded per image. The 8000 of the paper would take most of the time.
N_WINDOWS = 1000
# Difference of rates that counts as little, in percentage points.
LITTLE = 1.0
# Trees that are not pruned.
ALL = "all"
BINARY = "binary"
TIMED = ("seconds_learning", "seconds_coding")
# Number of descriptors for the time of coding.
N_TIMED = 10_000

rates = partial(points, "rate", unit="percent")


# --- Photographs: images of an object against images without it

# Preferred objects: the paper's bikes, then its cars, then one that is harder.
PREFERRED = ("motorbikes", BICYCLE, "car_side", CAR, "watch")
PHOTOGRAPHED = ("motorbikes", "car_side", "watch", BACKGROUND)
# Training images of each class, and as many test images, as in the paper.
N_EACH = 150
# Large photographs are shrunk, so that hundreds of them fit into memory.
LARGEST_SIDE = 640


def split_even_odd(data: Dataset) -> Dataset:
    """Train on even images and test on odd ones, unless the folder is already divided."""
    if data.X_train.ndim not in (1, 4):
        raise InvalidInputError(
            "visual words need images: give a folder with one folder of images per class; "
            f"{data.name!r} is a matrix of shape {data.X_train.shape}"
        )
    train, test = ({str(Path(str(p)).parent) for p in X} for X in (data.X_train, data.X_test))
    if data.X_train.ndim > 1 or not train & test:
        return data
    X = np.concatenate([data.X_train, data.X_test])
    y = np.concatenate([data.y_train, data.y_test])
    order = np.array(sorted(range(len(X)), key=lambda k: natural_order(str(X[k]))))
    X, y = X[order], y[order]
    trains = np.zeros(len(y), dtype=np.bool_)
    for name in np.unique(y):
        trains[np.flatnonzero(y == name)[::2]] = True
    return replace(data, X_train=X[trains], y_train=y[trains], X_test=X[~trains], y_test=y[~trains])


def keep_used(data: Dataset) -> Dataset:
    """Only the classes that the experiments read, if all are there.

    The hash is that of their files, so that it does not depend on folders next to them.
    """
    if data.X_train.ndim > 1 or not {*PHOTOGRAPHED} <= {str(name) for name in data.classes}:
        return data
    kept = data.of_classes(PHOTOGRAPHED)
    digest = hashlib.sha256()
    for path in sorted(map(Path, [*kept.X_train.tolist(), *kept.X_test.tolist()])):
        digest.update(f"{path.parent.name}/{path.name}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return replace(kept, sha256=digest.hexdigest())


# All classes of the folder; the experiments of the paper read a few of them.
PHOTOGRAPHS = Source("caltech_images", draw_scenes, split_even_odd)
SOURCES = {
    "photographs": replace(PHOTOGRAPHS, prepare=lambda data: keep_used(split_even_odd(data)))
}
# Photographs have no outlines of the object; where these matter, drawn scenes are added.
SOURCES_WITH_OUTLINES = {**SOURCES, "drawings": Source(None, partial(draw_scenes, 2 * N_EACH))}


@dataclass(frozen=True, eq=False)
class Photographs:
    """Images with their classes; ``trains`` marks the training images."""

    name: str
    images: list[Array]
    classes: Array
    trains: Array

    @property
    def objects(self) -> list[str]:
        """The classes other than background, preferred ones first."""
        found = [str(name) for name in np.unique(self.classes) if name != BACKGROUND]
        return [*dict.fromkeys([name for name in PREFERRED if name in found] + found)]

    @property
    def object(self) -> str:
        """The first object, which is the only one in a task."""
        return self.objects[0]

    def where(self, wanted: Array) -> Photographs:
        """The images of a mask."""
        images = [self.images[i] for i in np.flatnonzero(wanted)]
        return Photographs(self.name, images, self.classes[wanted], self.trains[wanted])

    def against_background(self, name: str) -> Photographs:
        """Images of one class and of background."""
        return self.where((self.classes == name) | (self.classes == BACKGROUND))


def load(
    context: Context, source: str, n_objects: int = 1, n_each: int | None = None
) -> Photographs:
    """Load images of the first objects and of background, for training and for testing.

    If no class is called "background", all other classes together are background. Each class has
    up to ``n_each`` training and test images: 150 as in the paper, or 60 in a quick run.
    """
    n = context.scaled(N_EACH, 60) if n_each is None else n_each
    return _load(context.dataset(source), n_objects, n, context.n_jobs)


@lru_cache(maxsize=2)
def _load(data: Dataset, n_objects: int, n_each: int, n_jobs: int) -> Photographs:
    classes = [str(name) for name in data.classes]
    objects = [name for name in (*PREFERRED, *classes) if name in classes and name != BACKGROUND]
    # At least one class is left for background.
    most = n_objects if BACKGROUND in classes else min(n_objects, len(classes) - 1)
    kept = [*dict.fromkeys(objects)][:most]
    images: list[Array] = []
    labels: list[str] = []
    trains: list[bool] = []
    for X, y, training in (
        (data.X_train, data.y_train.astype(str), True),
        (data.X_test, data.y_test.astype(str), False),
    ):
        for name in (*kept, BACKGROUND):
            own = name in classes
            rows = np.flatnonzero(y == name if own else ~np.isin(y, kept))
            if not len(rows):
                part = "training" if training else "testing"
                raise InvalidInputError(f"{data.name!r} has no images of {name!r} for {part}")
            # Rows of several classes are taken at even distances.
            n = min(n_each, len(rows))
            chosen = rows[:n] if own else rows[np.arange(n) * len(rows) // n]
            read = read_images([*X[chosen]], n_jobs=n_jobs).images
            images += [shrink_image(image, LARGEST_SIDE) for image in read]
            labels += [name] * n
            trains += [training] * n
    return Photographs(data.name, images, np.array(labels), np.array(trains))


def load_task(context: Context, source: str, number: int = 0) -> Photographs:
    """Images of the object of a number against background."""
    data = load(context, source, number + 1)
    return data.against_background(data.objects[number])


# --- Words of images: descriptors, counts, and rates at equal error

# Added to the seed, to learn from other patches than those that are coded.
OTHER_SEED = 1000


def local_features(seed: int, n_patches: int = N_WINDOWS, descriptor: str = HAAR) -> LocalFeatures:
    """Descriptors of patches at random positions and scales."""
    return LocalFeatures(descriptor, patches=RandomPatches(n_patches), random_state=seed)


def describe_training(
    context: Context,
    data: Photographs,
    seed: int,
    n: int | None = None,
    *,
    descriptor: str = HAAR,
    masks: Sequence[Array | None] | None = None,
) -> tuple[Array, Array]:
    """Descriptors of training images and the classes of their images, about ``n`` of them.

    There are as many of each image. With ``masks``, one per image of the data, the centres of
    patches lie on the mask.
    """
    chosen = np.flatnonzero(data.trains)
    n_patches = -(-(n or context.scaled(20_000, 6000)) // len(chosen))
    local = local_features(seed + OTHER_SEED, n_patches, descriptor)
    parts = Parallel(context.n_jobs, prefer="threads")(
        delayed(local.describe)(data.images[i], mask=None if masks is None else masks[int(i)])
        for i in chosen
    )
    found = [rows for rows, _ in parts]
    return np.concatenate(found), np.repeat(data.classes[chosen], [*map(len, found)])


def take_evenly(n: int, *arrays: Array) -> tuple[Array, ...]:
    """The given number of rows, at even distances."""
    total = len(arrays[0])
    kept = np.arange(n) * total // n if n < total else slice(None)
    return tuple(array[kept] for array in arrays)


def count_words(
    context: Context,
    data: Photographs,
    codebooks: Mapping[Any, Any],
    seed: int,
    *,
    windows: Sequence[int] = (N_WINDOWS,),
    descriptor: str = HAAR,
    masks: Sequence[Array | None] | None = None,
) -> dict[Any, Any]:
    """Counts of words per image, by codebook and number of windows, all of the same windows.

    Each image is described once and coded once by each codebook; fewer windows are the first of
    them. With ``masks``, one per image, the centres of windows lie on the mask.
    """
    local = local_features(seed, max(windows), descriptor)

    def count(image: Array, mask: Array | None) -> list[Any]:
        rows, _ = local.describe(image, mask=mask)
        found = []
        for codebook in codebooks.values():
            # The column of each window's word in each tree.
            words = np.asarray(codebook.transform(rows))
            columns = codebook.word_columns_[words + word_offsets(codebook.words_per_tree_)[:-1]]
            for n in windows:
                counts = np.bincount(columns[:n].ravel(), minlength=codebook.n_words_)
                found.append(sparse.csr_array(counts.astype(np.int32)[None]))
        return found

    # Images in parallel, each with one BLAS thread.
    with one_blas_thread():
        parts = Parallel(context.n_jobs, prefer="threads")(
            delayed(count)(image, mask)
            for image, mask in zip(data.images, masks or repeat(None), strict=False)
        )
    keys = product(codebooks, windows)
    columns = zip(*parts, strict=True)
    return {k: sparse.csr_array(sparse.vstack(c)) for k, c in zip(keys, columns, strict=True)}


def pool(counts: Any, pooling: str, trains: Array, positive: Array) -> Any:
    """Pool counts; thresholds, if the pooling has any, are learnt from the training images."""
    chosen, thresholds = POOLINGS[pooling], None
    if chosen.learns:
        codes = positive[trains].astype(np.int32)
        thresholds = mutual_information_thresholds(counts[np.flatnonzero(trains)], codes)
    pooled = chosen.pool(counts, thresholds)
    if pooling in ("sum", "sqrt"):
        # Shares are much smaller than one. They become as long as binary vectors on average,
        # since the SVM has one penalty for all.
        length = np.sqrt(pooled.power(2).sum() / max(pooled.nnz, 1))
        pooled = pooled * np.float32(1 / length)
    return pooled


def rank_by_svm(task: Photographs, counts: Any, pooling: str = BINARY) -> RocCurve:
    """Rank the test images of a task by a linear SVM on the words of images."""
    from sklearn.svm import LinearSVC

    positive, trains = task.classes == task.object, task.trains
    pooled = pool(counts, pooling, trains, positive)
    # Short codes that hardly separate the classes need more iterations than the default.
    svm = LinearSVC(max_iter=20_000, random_state=0).fit(pooled[trains], positive[trains])
    return roc(svm.decision_function(pooled[~trains]), positive[~trains])


def svm_rate(task: Photographs, counts: Any, pooling: str = BINARY) -> float:
    """Rate at equal error of a linear SVM, in percent."""
    return 100 * rank_by_svm(task, counts, pooling).equal_error_rate


def forest(context: Context, seed: int, **options: Any) -> ERCForest:
    """A clustering forest with the paper's settings."""
    settings = {
        "n_estimators": N_TREES,
        "n_words": context.scaled(1000, 200),
        "max_trials": MAX_TRIALS,
        **options,
    }
    return ERCForest(keep_descriptors=False, n_jobs=context.n_jobs, random_state=seed, **settings)


def time_codebook(codebook: Any, rows: Array, classes: Array) -> dict[str, float]:
    """Train a codebook; returns the seconds of training and of coding 10 000 descriptors."""
    learning = time_call(codebook.fit, rows, classes)
    (some,) = take_evenly(N_TIMED, rows)
    coding = time_call(codebook.transform, some) * N_TIMED / len(some)
    return dict(zip(TIMED, (learning, coding), strict=True))


def measure_forests(
    context: Context,
    run: Run,
    key: str,
    variants: Mapping[Any, Mapping[str, Any]],
    n: int | None = None,
) -> list[Row]:
    """Rates at equal error of several forests; each image is described once for all of them.

    ``variants`` are parameters of the forests, by the value of the column ``key`` of their rows.
    """
    seed, task = run["seed"], load_task(context, run["data"], run.get("number", 0))
    described = describe_training(context, task, seed, n)
    given = take_evenly(n or context.scaled(20_000, 6000), *described)
    forests = {value: forest(context, seed, **options) for value, options in variants.items()}
    seconds = {value: time_codebook(each, *given) for value, each in forests.items()}
    counts = count_words(context, task, forests, seed)
    return [
        {
            "data": task.name,
            "object": task.object,
            "seed": seed,
            key: value,
            "words": int(each.n_words_),
            "rate": svm_rate(task, counts[value, N_WINDOWS]),
            **seconds[value],
        }
        for value, each in forests.items()
    ]


# What the parts of figure 4 have in common.
_experiment = partial(Experiment, sources=SOURCES, timed=TIMED)
ERC_STYLE = {(): Style("ERC forest", BLUE)}


# --- Fig. 4 b: the size of the codebook

LEAVES, FEW_LEAVES = (25, 50, 100, 250, 500, 1000, 2000), (10, 25, 50, 100, 200, 400)


def _fig4b_runs(context: Context) -> list[Run]:
    return grid(data=context.names, seed=context.seeds(N_SEEDS))


def _fig4b_measure(context: Context, run: Run) -> list[Row]:
    variants: dict[Any, Any] = {n: {"n_words": n} for n in context.scaled(LEAVES, FEW_LEAVES)}
    return measure_forests(context, run, "leaves", {**variants, ALL: {"n_words": None}})


def _pruned_sizes(table: Table) -> list[int]:
    return sorted(leaves for leaves in table.values("leaves") if leaves != ALL)


def _enough(table: Table) -> list[Verdict]:
    """Larger codebooks against 1000 leaves as in the paper, or the largest number measured."""
    sizes = _pruned_sizes(table)
    enough = max(n for n in sizes if n <= 1000)
    larger = [*(n for n in sizes if n > enough), ALL]
    return [rates("leaves", n, enough, below=LITTLE).verdict(table, WORDS) for n in larger]


FIG4B = _experiment(
    name="nips2006-fig4b",
    title="Figure 4 b of Moosmann et al.: how many words a codebook needs",
    shows="How the rate at equal error depends on the number of words.",
    runs=_fig4b_runs,
    measure=_fig4b_measure,
    claims={
        "enough": Claim(
            "About 5000 words, 1000 per tree, are enough (larger codebooks add a point at most).",
            _enough,
            printed="about 5000 words, 1000 per tree",
        )
    },
    figure=Panels([Panel("leaves", "rate", (), ERC_STYLE, ticks="each")]),
    keys=("data", "object", "seed", "leaves"),
    exact=("words", "rate"),
    published=({"leaves": 1000, "rate": PAPER_RATE},),
    size=(6.5, 3.2),
)


# --- Fig. 4 c: the number of descriptors that the codebook is built from

DESCRIPTORS, FEW_DESCRIPTORS = (5000, 10_000, 20_000, 40_000), (1500, 4000, 10_000)
FIG4C_LEAVES, FIG4C_FEW_LEAVES = (100, 300, 1000, 2500, 5000), (20, 60, 200, 600)
FIG4C_STYLES = {
    leaves: style
    for sizes in (FIG4C_LEAVES, FIG4C_FEW_LEAVES)
    for leaves, style in styles(
        {ALL: "grown fully", **{n: f"{n} leaves per tree" for n in sizes}}
    ).items()
}


def _fig4c_runs(context: Context) -> list[Run]:
    descriptors = context.scaled(DESCRIPTORS, FEW_DESCRIPTORS)
    return grid(data=context.names, seed=context.seeds(N_SEEDS), descriptors=descriptors)


def _fig4c_measure(context: Context, run: Run) -> list[Row]:
    n, leaves = run["descriptors"], context.scaled(FIG4C_LEAVES, FIG4C_FEW_LEAVES)
    variants: dict[Any, Any] = {**{k: {"n_words": k} for k in leaves}, ALL: {"n_words": None}}
    rows = measure_forests(context, run, "leaves", variants, n)
    return [{**row, "descriptors": n} for row in rows]


def _centre(table: Table) -> float:
    """Logarithm of the size around which the rates of one seed are highest.

    The mean of the logarithms of all sizes, each weighted by how far its rate is above the lowest;
    steadier than the best of them alone, which chance picks where rates are flat.
    """
    found = [(row["words"], row["rate"]) for row in table if row["leaves"] != ALL]
    lowest = min(rate for _, rate in found)
    total = sum(rate - lowest for _, rate in found) or 1.0
    return float(sum((rate - lowest) * math.log(words) for words, rate in found) / total)


def _grows_slightly(table: Table) -> list[Verdict]:
    """Without fully grown trees, which always grow with the number of descriptors."""
    few, many = min(table.values("descriptors")), max(table.values("descriptors"))
    growth = each_seed(
        table,
        lambda rows: _centre(rows.where(descriptors=many)) - _centre(rows.where(descriptors=few)),
        unit="times",
        name=f"size with {many} against {few} descriptors",
    )
    return [growth.above(), growth.below(math.log(many / few))]


def _better_than_pruned(table: Table, choose: Callable[[Table, list[int]], int]) -> list[Verdict]:
    pruned = choose(table, _pruned_sizes(table))
    return [rates("leaves", ALL, pruned).verdict(table, WORDS)]


def _best(column: str) -> Callable[[Table, Sequence[Any]], Any]:
    """Chooses the value of a column with the best rate."""
    return lambda table, values: max(values, key=lambda v: table.mean("rate", **{column: v}))


FIG4C = _experiment(
    name="nips2006-fig4c",
    title="Figure 4 c of Moosmann et al.: how many descriptors a codebook is built from",
    shows="Rate at equal error over the descriptors to learn from, for several sizes of trees.",
    runs=_fig4c_runs,
    measure=_fig4c_measure,
    claims={
        "size": Claim(
            "The best size of the codebook grows slightly with the number of descriptors it is "
            "built from (slower than their number; measured by the mean size of pruned codebooks, "
            "weighted by the rates).",
            _grows_slightly,
        ),
        "pruned too much": Claim(
            "Trees that are pruned too much lose accuracy (here: the smallest against fully grown "
            "ones, with most descriptors).",
            partial(_better_than_pruned, choose=lambda _, sizes: sizes[0]),
            where={"descriptors": last},
        ),
        "grown fully": Claim(
            "It is better to grow trees fully and not to prune (here: than to the best size, over "
            "all numbers of descriptors).",
            partial(_better_than_pruned, choose=_best("leaves")),
        ),
    },
    figure=Panels(
        [Panel("descriptors", "rate", "leaves", FIG4C_STYLES, ticks="measured")],
        legend="right center",
    ),
    keys=("data", "object", "seed", "descriptors", "leaves"),
    exact=("words", "rate"),
    published=({"descriptors": 20_000, "leaves": 1000, "rate": PAPER_RATE},),
    size=(7.5, 3.2),
)


# --- Fig. 4 d: the number of trees

TREES = (1, 2, 3, N_TREES, 10)


def _fig4d_runs(context: Context) -> list[Run]:
    # A standard deviation needs more seeds than a mean; the runs are short.
    return grid(data=context.names, seed=context.seeds(20, 3))


def _fig4d_measure(context: Context, run: Run) -> list[Row]:
    return measure_forests(context, run, "trees", {n: {"n_estimators": n} for n in TREES})


def _less_spread(table: Table) -> list[Verdict]:
    """How many times larger the standard deviation is with one tree than with five.

    The interval is that of a ratio of two variances of normal numbers.
    """
    n_seeds = len(table.values("seed"))
    one, five = (table.deviation("rate", trees=n) for n in (1, N_TREES))
    if n_seeds < 5 or not one or not five:
        return [Verdict(None)]
    from scipy.stats import f

    noise = math.log(float(f.ppf(0.975, n_seeds - 1, n_seeds - 1))) / 2
    name = f"standard deviation with 1 against {N_TREES} trees"
    means = f"{one:.2g} against {five:.2g} points"
    return [Difference(math.log(one / five), noise, n_seeds, "times", name, means).above()]


def _draw_fig4d(figure: Figure, table: Table) -> None:
    left, right = figure.subplots(1, 2)
    panel = Panel("trees", "rate", (), ERC_STYLE)
    draw_panel(left, panel, table, WORDS)
    draw_published(left, panel, Table(FIG4D.published), WORDS)
    numbers = table.values("trees")
    spreads = Table({"trees": n, "spread": table.deviation("rate", trees=n)} for n in numbers)
    spread = replace(panel, y="spread", options={"ylim": (0, None)})
    draw_panel(right, spread, spreads, WORDS)
    add_legend(figure, left)


FIG4D = _experiment(
    name="nips2006-fig4d",
    title="Figure 4 d of Moosmann et al.: how many trees a codebook needs",
    shows="Rate at equal error, and its spread, over the number of trees.",
    runs=_fig4d_runs,
    measure=_fig4d_measure,
    claims={
        "five": Claim("Going from 1 tree to 5 raises the accuracy.", [rates("trees", N_TREES, 1)]),
        "spread": Claim("5 trees vary less from run to run than 1.", _less_spread),
        "beyond five": Claim(
            "More than 5 trees bring little improvement (a point at most).",
            [rates("trees", TREES[-1], N_TREES, below=LITTLE)],
        ),
    },
    figure=_draw_fig4d,
    keys=("data", "object", "seed", "trees"),
    exact=("words", "rate"),
    published=({"trees": N_TREES, "rate": PAPER_RATE},),
    size=(8.5, 3.2),
)

EXPERIMENTS = (FIG4B, FIG4C, FIG4D)
