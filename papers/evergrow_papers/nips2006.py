"""Moosmann, Triggs, Jurie: visual words from randomised clustering forests, NIPS 2006.

The leaves of a few randomised trees are the words of a codebook. A linear SVM on the words that
occur in an image tells images of an object from background. Besides photographs, some experiments
use drawn scenes, in which the outline of the object is known.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from evergrow import ERCForest
from evergrow.compare import Dataset
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import natural_order
from evergrow.foundation.threads import one_blas_thread
from evergrow.vision.descriptors import LocalFeatures, RandomPatches
from evergrow.vision.descriptors.describer import shrink_image
from evergrow.vision.images.reader import read_images
from evergrow.vision.images.sources import import_extra
from evergrow.vision.words.bag.pooling import POOLINGS, mutual_information_thresholds
from evergrow.vision.words.codebooks.counts import word_offsets
from evergrow.vision.words.codebooks.hierarchical_kmeans import HierarchicalKMeans
from evergrow.vision.words.codebooks.kmeans_codebook import KMeansCodebook
from evergrow.vision.words.codebooks.random_kd_trees import RandomKDTrees
from evergrow.vision.words.evaluation import RocCurve, roc
from evergrow.vision.words.plots import leaf_patches, word_map
from evergrow_papers.claims import Claim, Compare, Difference, Verdict, Words, each_seed, points
from evergrow_papers.data import Array
from evergrow_papers.figures import Figure, Panel, Panels, draw_panel, draw_panels, styles
from evergrow_papers.frame import Context, Experiment, Run, Source, grid, time_call
from evergrow_papers.scenes import BACKGROUND, BICYCLE, CAR, draw_scene, draw_scenes
from evergrow_papers.table import ANY, Row, Table, first, last

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
        "seconds_learning": "learning the words",
        "seconds_coding": "coding 10 000 windows",
    },
    percentages=("rate",),
)

# Printed rate for bikes of GRAZ-02, with codebooks learnt from whole images.
PAPER_RATE = 84.4
# The paper's numbers of trees, of trials, of runs, and of leaves (fewer in quick runs).
N_TREES, MAX_TRIALS, N_SEEDS = 5, 50, 10
N_LEAVES = (1000, 100)
# Difference of rates that counts as little, in percentage points; trees that are not pruned.
LITTLE, ALL = 1.0, "all"
TIMED = ("seconds_learning", "seconds_coding")
# Number of descriptors for the time of coding.
N_TIMED = 10_000
# Rates of false positives at which ROC curves are drawn.
FALSE_POSITIVES = tuple(k / 40 for k in range(41))

# Windows that are coded per image. The 8000 of the paper would take most of the time.
N_WINDOWS = 1000
# Descriptors that a codebook is built from, in full and in quick runs.
N_DESCRIPTORS = (20_000, 2000)
HAAR, HSL, SIFT = "haar", "hsl", "sift"
BINARY, INFORMATION, SHARES, ROOTS = "binary", "mutual_information", "sum", "sqrt"
# The trees vote for a class, without words.
VOTES = "votes"
# Preferred objects: the paper's bikes, then its cars, then one that is harder.
PREFERRED = ("motorbikes", BICYCLE, "car_side", CAR, "watch")
PHOTOGRAPHED = ("motorbikes", "car_side", "watch", BACKGROUND)
# Training images of each class, and as many test images, as in the paper; fewer in quick runs.
N_EACH = (150, 16)
# Large photographs are shrunk, so that hundreds of them fit into memory.
LARGEST_SIDE = 640
# Added to the seed, to learn from other patches than those that are coded.
OTHER_SEED = 1000

rates = partial(points, "rate", unit="percent")
percent = partial(each_seed, unit="percent")


# --- Images of an object and of background, and their descriptors and words


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
    """Only the classes that the experiments read, if all are there; even images train.

    The hash is that of their files, so that it does not depend on folders next to them.
    """
    data = split_even_odd(data)
    if data.X_train.ndim > 1 or not {*PHOTOGRAPHED} <= {str(name) for name in data.classes}:
        return data
    kept = data.of_classes(PHOTOGRAPHED)
    digest = hashlib.sha256()
    for path in sorted(map(Path, [*kept.X_train.tolist(), *kept.X_test.tolist()])):
        digest.update(f"{path.parent.name}/{path.name}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return replace(kept, sha256=digest.hexdigest())


def objects_of(data: Dataset) -> list[str]:
    """Up to three classes other than background, preferred ones first."""
    found = [str(name) for name in data.classes if name != BACKGROUND]
    return [*dict.fromkeys([name for name in PREFERRED if name in found] + found)][:3]


@dataclass(frozen=True, eq=False)
class Task:
    """Images of an object, which are positive, and of background, to train and to test.

    ``outlines`` has a mask of the object in each image, or None where it is unknown or not there.
    """

    name: str
    object: str
    images: list[Array]
    outlines: list[Array | None]
    positive: Array
    trains: Array

    def place(self, run: Run) -> dict[str, Any]:
        """The columns of a row that say what was measured."""
        return {**run, "data": self.name, "object": self.object}


def load_task(context: Context, run: Run) -> Task:
    """Read the images of the object of a run, by default the first, and of background.

    If no class is called "background", all other classes together are background.
    """
    source = run["data"]
    n_each, drawn = context.scaled(*N_EACH), context.is_built_in(source)
    return _load(context.dataset(source), run.get("number", 0), n_each, context.n_jobs, drawn)


@lru_cache(maxsize=2)
def _load(data: Dataset, number: int, n_each: int, n_jobs: int, drawn: bool) -> Task:
    name = objects_of(data)[number]
    images: list[Array] = []
    outlines: list[Array | None] = []
    marks: list[tuple[bool, bool]] = []
    for trains, X, y in ((True, data.X_train, data.y_train), (False, data.X_test, data.y_test)):
        classes = y.astype(str)
        background = np.flatnonzero(classes == BACKGROUND)[:n_each]
        if BACKGROUND not in data.classes.tolist():
            # Of several classes, rows at even distances.
            background = take_evenly(n_each, np.flatnonzero(classes != name))
        for positive, rows in (
            (True, np.flatnonzero(classes == name)[:n_each]),
            (False, background),
        ):
            if not len(rows):
                what, part = name if positive else BACKGROUND, "training" if trains else "testing"
                raise InvalidInputError(f"{data.name!r} has no images of {what!r} for {part}")
            read = read_images([*X[rows]], n_jobs=n_jobs).images
            images += [shrink_image(image, LARGEST_SIDE) for image in read]
            marks += [(positive, trains)] * len(rows)
            # Even scenes are for training, odd ones for testing.
            numbers = range(int(not trains), 2 * len(rows), 2)
            outlines += [draw_scene(name, k)[1] if positive and drawn else None for k in numbers]
    return Task(data.name, name, images, outlines, *np.array(marks).T)


def local_features(seed: int, n_patches: int = N_WINDOWS, descriptor: str = HAAR) -> LocalFeatures:
    """Descriptors of patches at random positions and scales."""
    return LocalFeatures(descriptor, patches=RandomPatches(n_patches), random_state=seed)


def describe_training(
    context: Context,
    task: Task,
    seed: int,
    n: int | None = None,
    *,
    descriptor: str = HAAR,
    on_object: bool = False,
) -> tuple[Array, Array]:
    """About ``n`` descriptors of training images, and whether their images are positive.

    There are as many of each image. With ``on_object``, the centres of patches lie on the object
    where its outline is known.
    """
    chosen = np.flatnonzero(task.trains)
    n_patches = -(-(n or context.scaled(*N_DESCRIPTORS)) // len(chosen))
    local = local_features(seed + OTHER_SEED, n_patches, descriptor)
    parts = Parallel(context.n_jobs, prefer="threads")(
        delayed(local.describe)(task.images[i], mask=task.outlines[i] if on_object else None)
        for i in chosen
    )
    found = [rows for rows, _ in parts]
    return np.concatenate(found), np.repeat(task.positive[chosen], [*map(len, found)])


def take_evenly(n: int, rows: Array) -> Array:
    """The given number of rows, at even distances."""
    return rows[np.arange(n) * len(rows) // n] if n < len(rows) else rows


def count_words(
    context: Context,
    task: Task,
    codebooks: Mapping[Any, Any],
    seed: int,
    *,
    windows: Sequence[int] = (N_WINDOWS,),
    descriptor: str = HAAR,
    on_object: bool = False,
) -> dict[Any, Any]:
    """Counts of words per image, by codebook and number of windows, all of the same windows.

    Each image is described once for all codebooks; fewer windows are the first of them. With
    ``on_object``, the centres of windows of training images lie on the object.
    """
    local = local_features(seed, max(windows), descriptor)

    def count(image: Array, mask: Array | None) -> list[Any]:
        rows, _ = local.describe(image, mask=mask)
        return [each.encode([rows[:n]]) for each in codebooks.values() for n in windows]

    on = on_object & task.trains
    # Images in parallel, each with one BLAS thread.
    with one_blas_thread():
        parts = Parallel(context.n_jobs, prefer="threads")(
            delayed(count)(image, mask if inside else None)
            for image, mask, inside in zip(task.images, task.outlines, on, strict=True)
        )
    stacked = (sparse.csr_array(sparse.vstack(each)) for each in zip(*parts, strict=True))
    return dict(zip(product(codebooks, windows), stacked, strict=True))


def pool(counts: Any, pooling: str, trains: Array, positive: Array) -> Any:
    """Pool counts; thresholds, if the pooling has any, are learnt from the training images."""
    chosen, thresholds = POOLINGS[pooling], None
    if chosen.learns:
        codes = positive[trains].astype(np.int32)
        thresholds = mutual_information_thresholds(counts[np.flatnonzero(trains)], codes)
    pooled = chosen.pool(counts, thresholds)
    if pooling in (SHARES, ROOTS):
        # Shares are much smaller than one. They become as long as binary vectors on average,
        # since the SVM has one penalty for all.
        length = np.sqrt(pooled.power(2).sum() / max(pooled.nnz, 1))
        pooled = pooled * np.float32(1 / length)
    return pooled


def rank_images(task: Task, counts: Any, codebook: Any, pooling: str = BINARY) -> RocCurve:
    """Rank the test images of a task by a linear SVM on their words, or by the votes of the trees.

    Each window votes in each tree with the share of the object in its leaf.
    """
    from sklearn.svm import LinearSVC

    positive, trains = task.positive, task.trains
    if pooling == VOTES:
        scores = (counts @ codebook.word_shares_[:, 1]) / np.asarray(counts.sum(axis=1)).ravel()
    else:
        pooled = pool(counts, pooling, trains, positive)
        # Short codes that hardly separate the classes need more iterations than the default.
        svm = LinearSVC(max_iter=20_000, random_state=0).fit(pooled[trains], positive[trains])
        scores = svm.decision_function(pooled)
    return roc(scores[~trains], positive[~trains])


# All classes of the folder; the experiments of the paper read a few of them.
PHOTOGRAPHS = Source("caltech_images", draw_scenes, split_even_odd, images=True)
SOURCES = {"photographs": replace(PHOTOGRAPHS, prepare=keep_used)}
# Photographs have no outlines of the object; where these matter, drawn scenes are added.
SOURCES_WITH_OUTLINES = {**SOURCES, "drawings": Source(None, partial(draw_scenes, 2 * N_EACH[0]))}


def forest(context: Context, seed: int, **options: Any) -> ERCForest:
    """A clustering forest with the paper's settings."""
    usual: dict[str, Any] = {"n_estimators": N_TREES, "n_words": context.scaled(*N_LEAVES)}
    given = {**usual, "max_trials": MAX_TRIALS, **options}
    return ERCForest(keep_descriptors=False, n_jobs=context.n_jobs, random_state=seed, **given)


def measure_codebooks(
    context: Context,
    run: Run,
    codebooks: Mapping[Any, Any],
    *,
    key: str = "codebook",
    task: Task | None = None,
    given: tuple[Array, Array] | None = None,
    descriptor: str = HAAR,
    windows: Sequence[int] = (N_WINDOWS,),
    poolings: Mapping[Any, Sequence[str]] | None = None,
    on_object: bool = False,
) -> list[Row]:
    """Train codebooks, with times, and rank images by their words, as one row per way to do so.

    ``codebooks`` are named by the values of the column ``key``, and ``poolings`` by the same; each
    image is described once for all of them. ``given`` are the descriptors to learn from.
    """
    task, seed = task or load_task(context, run), run["seed"]
    rows, positive = given or describe_training(context, task, seed, descriptor=descriptor)
    some = take_evenly(N_TIMED, rows)
    told: dict[Any, Row] = {}
    for value, codebook in codebooks.items():
        learning = time_call(codebook.fit, rows, positive)
        coding = time_call(codebook.transform, some) * N_TIMED / len(some)
        sizes = {"words": int(codebook.n_words_), "trials": getattr(codebook, "max_trials_", None)}
        told[value] = {**sizes, **dict(zip(TIMED, (learning, coding), strict=True))}
    options: Any = {"windows": windows, "descriptor": descriptor, "on_object": on_object}
    found: list[Row] = []
    for (value, n), counts in count_words(context, task, codebooks, seed, **options).items():
        for pooling in (poolings or {}).get(value, (BINARY,)):
            curve = rank_images(task, counts, codebooks[value], pooling)
            x, y = curve.false_positive_rate, curve.true_positive_rate
            measured = {
                "rate": 100 * curve.equal_error_rate,
                "area": 100 * float(np.trapezoid(y, x)),
                "filled": 100 * counts.nnz / float(np.prod(counts.shape)),
                "roc": np.interp(FALSE_POSITIVES, x, y).tolist(),
            }
            where = {**task.place(run), key: value, "pooling": pooling, "windows": n}
            found.append({**where, **told[value], **measured})
    return found


def measure_forests(
    context: Context, run: Run, key: str, variants: Mapping[Any, Mapping[str, Any]]
) -> list[Row]:
    """Rates of several forests; ``variants`` are their parameters by the value of a column."""
    seed, n = run["seed"], run.get("descriptors", context.scaled(*N_DESCRIPTORS))
    given = describe_training(context, load_task(context, run), seed, n)
    rows, positive = (take_evenly(n, each) for each in given)
    forests = {value: forest(context, seed, **options) for value, options in variants.items()}
    return measure_codebooks(context, run, forests, key=key, given=(rows, positive))


def measure_sizes(context: Context, run: Run, sizes: Sequence[Sequence[int]]) -> list[Row]:
    """Forests that are pruned to several sizes, and one that is not."""
    variants: dict[Any, Any] = {n: {"n_words": n} for n in context.scaled(*sizes)}
    return measure_forests(context, run, "leaves", {**variants, ALL: {"n_words": None}})


def pruned_sizes(table: Table) -> list[int]:
    """The sizes of pruned trees."""
    return sorted(leaves for leaves in table.values("leaves") if leaves != ALL)


def names_with_outlines(context: Context) -> list[str]:
    """The sources to measure; drawn scenes once, even if they replace photographs."""
    return [n for n in context.names if n != "drawings" or not context.is_built_in("photographs")]


# The value that was measured first.
first_of = itemgetter(0)
_experiment = partial(Experiment, sources=SOURCES, timed=TIMED)
ERC_STYLE = styles({(): "ERC forest"})


# --- Figs. 2 and 3: where the patches of a leaf lie, and where words indicate an object

# All leaves with training patches of the object only, and two rules to choose a single leaf.
ALL_UNMIXED, UNMIXED, SURPLUS = "all unmixed", "largest unmixed", "largest surplus"
# The same as the first, of trees that learnt patches on the object alone.
MASKED = "all unmixed, by masks"
# Added to the seed to draw other patches than those that forests are grown on.
FURTHER_SEED = 500
# Percentage above which most patches or images are meant.
MOST = 50.0
# Largest standard deviation of the grey values, up to 255, of a plain patch.
PLAIN = 8.0
# Columns of means over some patches and over the others.
SIDES = (("on_plain", "on_structure"), ("on_object", "beside_object"))


def in_unmixed(codebook: Any, words: Array) -> Array:
    """Whether the leaf of each patch and tree has training patches of the object only."""
    shares = codebook.word_shares_[codebook.word_columns_, 1]
    return np.asarray(shares[words + word_offsets(codebook.words_per_tree_)[:-1]] == 1.0)


def is_plain(image: Array, boxes: Array) -> Array:
    """Whether each patch is plain: it shows no part of an object.

    >>> image = np.zeros((20, 40, 3), dtype=np.uint8)
    >>> image[5:15, 25:35] = 255
    >>> is_plain(image, np.array([[0, 0, 20], [20, 0, 20]], dtype=np.float32))
    array([ True, False])
    """
    grey, places = image.mean(axis=2), np.rint(boxes).astype(np.int64)
    return np.array([grey[y : y + side, x : x + side].std() < PLAIN for x, y, side in places])


def describe_patches(task: Task, seed: int) -> Iterator[tuple[Array, Array, Array]]:
    """For each test image descriptors of patches, which are plain, which are on the object."""
    local = local_features(seed)
    for i in np.flatnonzero(~task.trains):
        image, outline = task.images[i], task.outlines[i]
        rows, boxes = local.describe(image)
        x, y = (boxes[:, :2] + boxes[:, 2:] / 2).astype(np.int64).T
        on = np.zeros(len(rows), np.bool_) if outline is None else outline[y, x]
        yield rows, is_plain(image, boxes), on


def best_leaf(
    codebook: ERCForest, given: tuple[Array, Array], score: Callable[[Array, Array], Array]
) -> tuple[int, int]:
    """Tree and word of the leaf with the highest score of its patches of object and background."""
    words, mine = codebook.transform(given[0]), given[1]
    scores = [
        score(*(np.bincount(column[part], minlength=column.max() + 1) for part in (mine, ~mine)))
        for column in words.T
    ]
    tree = int(np.argmax([found.max() for found in scores]))
    return tree, int(np.argmax(scores[tree]))


def _percent(part: Any, among: Any) -> float | None:
    return 100 * float(part[among].mean()) if among.any() else None


def measure_leaves(
    task: Task, codebook: ERCForest, seed: int, leaves: Mapping[str, tuple[int, int] | None]
) -> list[Row]:
    """Percentages of the test patches in leaves, and of all test patches.

    ``leaves`` are tree and word by a rule; None takes all unmixed leaves.
    """
    parts = [
        (codebook.transform(rows), plain, on, [k] * len(rows))
        for k, (rows, plain, on) in enumerate(describe_patches(task, seed))
    ]
    words, plain, on, images = (np.concatenate(each) for each in zip(*parts, strict=True))
    own = task.positive[~task.trains]
    mine = own[images]
    found: list[Row] = []
    for rule, leaf in leaves.items():
        tree, word = leaf or (None, None)
        inside = in_unmixed(codebook, words).any(axis=1) if leaf is None else words[:, tree] == word
        hit = np.bincount(images[inside], minlength=len(own)) > 0
        row: dict[str, Any] = {
            "leaf": rule,
            "tree": tree,
            "word": word,
            "test_patches": int(inside.sum()),
            "images_with_it": _percent(hit, own),
            "background_with_it": _percent(hit, ~own),
            "background_plain": _percent(plain, ~mine),
        }
        for of, among in (("", inside), ("all_", np.ones_like(mine))):
            row[f"{of}on_object_images"] = _percent(mine, among)
            row[f"{of}plain"] = _percent(plain, among & mine)
            row[f"{of}on_object"] = _percent(on, among & mine) if on.any() else None
        found.append(row)
    return found


def shows_pictures(context: Context, run: Run) -> bool:
    """Whether figures show the images of a run; no licence allows us to publish photographs."""
    return bool(run["seed"] == 0 and run["data"] == names_with_outlines(context)[-1])


def shrink(pixels: Array, *size: int) -> list[Any]:
    """An image of this size, for the cache; 32 levels of each colour keep it small."""
    small = np.asarray(import_extra("PIL.Image").fromarray(pixels).resize(size))
    return list((small // 8 * 8 + 4).tolist())


def show(axes: Any, pixels: Any, title: str = "", **options: Any) -> Any:
    """Draw an image; without interpolation, the file holds no more pixels than it."""
    axes.set_axis_off()
    axes.set_title(title)
    return axes.imshow(pixels, interpolation="none", **options)


def tile(images: Sequence[Any], n_columns: int) -> Array:
    """Images in rows on grey, with a frame around each, since many are white."""
    frame = ((0, -len(images) % n_columns), (2, 2), (2, 2), (0, 0))
    framed = np.pad(np.array(images, dtype=np.uint8), frame, constant_values=150)
    return np.vstack([np.hstack([*each]) for each in np.split(framed, len(framed) // n_columns)])


def _fig2_measure(context: Context, run: Run) -> list[Row]:
    seed, task = run["seed"], load_task(context, run)
    given, further = (describe_training(context, task, s) for s in (seed, seed + FURTHER_SEED))
    codebook = forest(context, seed).fit(*given)
    # The unmixed leaf with most patches; and, as leaves are purer in the patches that the tree was
    # grown on, the largest surplus among others, relative to its standard deviation.
    leaves = {
        UNMIXED: best_leaf(codebook, given, lambda own, others: own - 10 * others),
        SURPLUS: best_leaf(
            codebook,
            further,
            lambda own, others: (own - others) / np.sqrt(np.maximum(own + others, 1)),
        ),
    }
    rows: list[Row] = []
    if task.outlines[0] is not None:
        alone = describe_training(context, task, seed, on_object=True)
        by_masks = forest(context, seed).fit(*alone)
        rows += measure_leaves(task, by_masks, seed, {MASKED: None})
    rows += measure_leaves(task, codebook, seed, {ALL_UNMIXED: None, **leaves})
    found: list[Any] = [{**task.place(run), **row} for row in rows]
    if shows_pictures(context, run):
        found[-2].update(_fig2_pictures(task, codebook, seed, leaves[UNMIXED]))
    return found


def _fig2_pictures(task: Task, codebook: ERCForest, seed: int, leaf: tuple[int, int]) -> Row:
    """Training images, and test patches of the leaf, of both classes alternately."""
    tests = np.flatnonzero(~task.trains)
    order = np.argsort(np.arange(len(tests)) % (len(tests) // 2), kind="stable")
    images, local = [task.images[i] for i in tests[order]], local_features(seed)
    patches, _ = leaf_patches(images, codebook, local, *leaf, n=30, n_per_image=1)
    return {
        "examples": {
            name: [shrink(task.images[i], 96, 72) for i in np.flatnonzero(wanted & task.trains)[:4]]
            for name, wanted in ((task.object, task.positive), (BACKGROUND, ~task.positive))
        },
        "patches": [shrink(patch, 28, 28) for patch in patches],
    }


def _draw_fig2(figure: Figure, table: Table) -> None:
    shown = [row for row in table if row.get("patches")]
    examples = {name: each for row in shown[::-1] for name, each in row["examples"].items()}
    n = min(map(len, examples.values()))
    left, *right = figure.subplots(1, 1 + len(shown))
    pixels = [image for images in examples.values() for image in images[:n]]
    show(left, tile(pixels, n), f"images: {', '.join(examples)}")
    for axes, row in zip(right, shown, strict=True):
        share = f"{row['on_object_images']:.0f} % are of images with it"
        show(axes, tile(row["patches"], 5), f"patches of one “{row['object']}” leaf: {share}")


def _less_plain(table: Table) -> list[Verdict]:
    """Where outlines are not known: plain patches are not part of the object."""
    if len(table.column("on_object")):
        return []
    name = "plain patches in the leaves against all patches of these images"
    return [percent(table, lambda r: r.mean("plain") - r.mean("all_plain"), name=name).below()]


def _mostly_parts(table: Table) -> list[Verdict]:
    """Where outlines are known: most patches of unmixed leaves, and more than of all patches."""
    if not len(table.column("on_object")):
        return []

    def share(rows: Table, of: str = "") -> float:
        return rows.mean(f"{of}on_object_images") * rows.mean(f"{of}on_object") / 100

    name = "parts of the object in the leaves"
    against_all = percent(
        table, lambda rows: share(rows) - share(rows, "all_"), name=f"{name}, against all patches"
    )
    most = percent(table, lambda rows: share(rows) - MOST, name=f"{name}, above {MOST:.0f} %")
    return [against_all.above(), most.above()]


PARTS = "Test patches of a leaf are parts of one object (here"
FIG2 = Experiment(
    name="nips2006-fig2",
    title="Figure 2 of Moosmann et al.: images, and patches of one leaf",
    shows="Example images, and test patches that a tree put into one leaf of an object.",
    sources=SOURCES_WITH_OUTLINES,
    runs=lambda context: [
        run
        for name in names_with_outlines(context)
        for number in [range(len(objects_of(context.dataset(name))[:2]))]
        for run in grid(data=[name], seed=context.seeds(), number=number)
    ],
    measure=_fig2_measure,
    claims={
        "plain": Claim(
            f"{PARTS}, where outlines are not known: patches in unmixed leaves are plain less "
            "often than others of these images).",
            _less_plain,
        ),
        "parts": Claim(f"{PARTS}: more than half of those in unmixed leaves).", _mostly_parts),
    },
    where={"leaf": ALL_UNMIXED},
    each=("data", "object"),
    figure=_draw_fig2,
    keys=("data", "object", "seed", "leaf"),
    exact=(
        "tree",
        "word",
        "test_patches",
        "on_object_images",
        "all_on_object_images",
        "images_with_it",
        "background_with_it",
        "background_plain",
        "plain",
        "all_plain",
        "on_object",
        "all_on_object",
    ),
    drawn=("examples", "patches"),
    size=(10.5, 3.9),
)


def _fig3_measure(context: Context, run: Run) -> list[Row]:
    seed, task = run["seed"], load_task(context, run)
    codebook = forest(context, seed).fit(*describe_training(context, task, seed))
    own, rows = task.positive[~task.trains], []
    for i, (patches, *parts) in enumerate(describe_patches(task, seed)):
        posterior = codebook.predict_proba(patches)[:, 1]
        row: dict[str, Any] = {
            **task.place(run),
            "image": i,
            "class": task.object if own[i] else BACKGROUND,
            "posterior": float(posterior.mean()),
            "unmixed": 100 * float(in_unmixed(codebook, codebook.transform(patches)).mean()),
            "plain": 100 * float(parts[0].mean()),
        }
        for part, names in zip(parts, SIDES, strict=True):
            # If there are both.
            if part.any() and not part.all():
                means = (float(posterior[chosen].mean()) for chosen in (part, ~part))
                row.update(zip(names, means, strict=True))
        rows.append(row)
    if shows_pictures(context, run):
        # Four images at even distances.
        for i in take_evenly(4, np.flatnonzero(own)):
            image = task.images[np.flatnonzero(~task.trains)[i]]
            seen = word_map(image, codebook, local_features(seed), True)
            # A corner may have no patch; it gets the mean, so that it does not stand out.
            grey = np.rint(255 * np.where(np.isnan(seen), np.nanmean(seen), seen)).astype(np.uint8)
            rows[i].update(picture=shrink(image, 144, 108), map=shrink(grey, 144, 108))
    return [*rows]


def _draw_fig3(figure: Figure, table: Table) -> None:
    shown = [row for row in table if row.get("picture")]
    maps = [np.array(row["map"]) / 255 for row in shown]
    places = figure.subplots(2, len(shown), squeeze=False)
    scale: dict[str, Any] = {
        "cmap": "viridis",
        "vmin": min(map(np.min, maps)),
        "vmax": max(map(np.max, maps)),
    }
    for (above, below), row, seen in zip(places.T, shown, maps, strict=True):
        show(above, np.array(row["picture"], dtype=np.uint8))
        drawn = show(below, seen, **scale)
    figure.colorbar(drawn, ax=[*places[1]], label=f"posterior of\n“{shown[0]['object']}”")


def _higher_posterior(table: Table, one: str, other: str, known: bool) -> list[Verdict]:
    """Whether the mean posterior is higher on one side in most images of the object."""
    if known != bool(len(table.column("on_object"))):
        return []

    def above_half(rows: Table) -> float:
        mine = [row for row in rows if row["class"] == row["object"] and one in row]
        return 100 * float(np.mean([row[one] > row[other] for row in mine])) - MOST

    name = f"images with a higher posterior {one.replace('_', ' ')}, above {MOST:.0f} %"
    return [percent(table, above_half, name=name).above()]


ON_THE_OBJECT = "Words lie on the object, though they were learnt from whole images (here:"
FIG3 = Experiment(
    name="nips2006-fig3",
    title="Figure 3 of Moosmann et al.: where words indicate an object",
    shows="The posterior probability of the object, patch by patch, in four test images.",
    sources=SOURCES_WITH_OUTLINES,
    runs=lambda context: grid(data=names_with_outlines(context), seed=context.seeds()),
    measure=_fig3_measure,
    claims={
        "structure": Claim(
            f"{ON_THE_OBJECT} the posterior is higher on patches with structure than on plain "
            "ones in most images, outlines are not known).",
            partial(_higher_posterior, one="on_structure", other="on_plain", known=False),
        ),
        "object": Claim(
            f"{ON_THE_OBJECT} the posterior is higher on it than beside it in most images).",
            partial(_higher_posterior, one="on_object", other="beside_object", known=True),
        ),
    },
    each=("data",),
    figure=_draw_fig3,
    keys=("data", "object", "seed", "image", "class"),
    exact=("posterior", "unmixed", "plain", *SIDES[0], *SIDES[1]),
    drawn=("picture", "map"),
    size=(9.5, 3.6),
)


# --- Fig. 4 a: the number of windows per image

ERC, KMEANS, UNSUPERVISED = "ERC forest", "k-means", "unsupervised trees"
HIERARCHICAL, KD_TREES = "hierarchical k-means", "kd-trees"
# A fifth of the leaves, whose codes are full of ones with fewer windows.
SMALL = "small unsupervised trees"
WINDOWS, FEW_WINDOWS = (100, 300, 1000, 3000, 8000), (30, 100, 300, 1000)
# Each window is compared with 5000 centres; more windows would take longer than everything else.
MOST_FOR_KMEANS = 1000


def make_codebook(context: Context, kind: str, seed: int) -> Any:
    """A codebook of a kind, of as many words as the paper's forest unless it is small."""
    n_words = context.scaled(*N_LEAVES)
    if kind == KMEANS:
        # Centres hardly move after 20 epochs.
        return KMeansCodebook(N_TREES * n_words, start="random", max_epochs=20, random_state=seed)
    if kind == HIERARCHICAL:
        return HierarchicalKMeans(N_TREES * n_words, random_state=seed)
    if kind == KD_TREES:
        return RandomKDTrees(N_TREES, n_words=n_words, n_jobs=context.n_jobs, random_state=seed)
    size = n_words // 5 if kind == SMALL else n_words
    return forest(context, seed, n_words=size, supervised=kind == ERC)


POOLED = {
    ERC: (BINARY, INFORMATION, SHARES, VOTES),
    UNSUPERVISED: (BINARY, INFORMATION),
    SMALL: (BINARY, INFORMATION),
}


def _fig4a_runs(context: Context) -> list[Run]:
    """Trees and centres on photographs; trees on drawn scenes too, to find reasons."""
    seeds = context.seeds(N_SEEDS)
    first, *more = names_with_outlines(context)
    # Trees are measured together, because describing the windows takes longer than coding them.
    trees, centres = [ERC, UNSUPERVISED, SMALL, KD_TREES], [KMEANS, HIERARCHICAL]
    return [
        *grid(data=[first], seed=seeds, codebooks=[trees, centres]),
        *grid(data=more, seed=seeds, codebooks=[trees[:2]]),
    ]


def _fig4a_measure(context: Context, run: Run) -> list[Row]:
    codebooks = {kind: make_codebook(context, kind, run["seed"]) for kind in run["codebooks"]}
    most = MOST_FOR_KMEANS if KMEANS in codebooks else max(WINDOWS)
    windows = [n for n in context.scaled(WINDOWS, FEW_WINDOWS) if n <= most]
    return measure_codebooks(context, run, codebooks, windows=windows, poolings=POOLED)


def _falling(table: Table) -> list[Verdict]:
    """What is lost from the best number of windows to the most."""
    *fewer, most = sorted(table.values("windows"))
    found = max([*fewer, most], key=lambda n: table.mean("rate", windows=n))
    # The best of several is above the last by noise alone, so the last is compared with another.
    chosen = fewer[-1] if found == most else found
    return [rates("windows", chosen, most).verdict(table, WORDS)]


# Claims about trees are judged on every data set, as they need no k-means.
_of_trees = partial(Claim, each=("data",))
WITH_MOST: dict[str, Any] = {"data": ANY, "pooling": ANY, "windows": last}
FOREST_WORDS = {"codebook": ERC, "pooling": BINARY}
TREE_WORDS = {"codebook": UNSUPERVISED, "pooling": INFORMATION}
FIG4A_WORDS = (
    *product((ERC, KMEANS, HIERARCHICAL, KD_TREES, UNSUPERVISED), (BINARY,)),
    (UNSUPERVISED, INFORMATION),
    *product((ERC,), (INFORMATION, SHARES, VOTES)),
)


def _draw_fig4a(figure: Figure, table: Table) -> None:
    shown = table.where(data=first_of)
    left, middle, *bars = figure.subplots(1, 4, width_ratios=(2, 1.4, 1, 1))
    panel = Panel("windows", "rate", ("codebook", "pooling"), FIG4A_WORDS, ticks="measured")
    looks = panel.looks(shown, WORDS)
    draw_panel(left, panel, shown, WORDS, Table(FIG4A.published))
    at = shown.where(windows=MOST_FOR_KMEANS)
    for place in ((ERC, BINARY), (ERC, VOTES), (KMEANS, BINARY), (UNSUPERVISED, BINARY)):
        mine = at.where(codebook=place[0], pooling=place[1])
        curve = 100 * np.mean([row["roc"] for row in mine], axis=0)
        middle.plot(100 * np.array(FALSE_POSITIVES), curve, color=looks[place].colour)
    middle.plot([0, 50], [100, 50], ":", color="grey")
    middle.set(xlim=(0, 50), ylim=(50, 100), title=f"ROC, {MOST_FOR_KMEANS} windows")
    middle.set(xlabel="false positives, %", ylabel="true positives, %")
    kinds = (ERC, UNSUPERVISED, KD_TREES, HIERARCHICAL, KMEANS)
    for axes, column in zip(bars, TIMED, strict=True):
        means = [shown.mean(column, codebook=kind) for kind in kinds]
        colours = [looks[kind, BINARY].colour for kind in kinds]
        axes.bar_label(axes.barh(kinds, means, color=colours), fmt=" {:.2g}")
        axes.set(xscale="log", xmargin=0.35, title=WORDS.quantity(column), xlabel="seconds")
        axes.invert_yaxis()
    bars[1].set_yticklabels([])
    figure.legend(loc="outside lower center", ncols=3)


FIG4A = _experiment(
    name="nips2006-fig4a",
    title="Figure 4 a of Moosmann et al.: ERC forests against other codebooks",
    shows="Rate at equal error over windows per image, for five codebooks, ROC curves, and times.",
    sources=SOURCES_WITH_OUTLINES,
    runs=_fig4a_runs,
    measure=_fig4a_measure,
    claims={
        "k-means": Claim(
            "ERC forests are clearly more accurate than k-means (here with 1000 windows).",
            [rates("codebook", ERC, KMEANS)],
            where={"windows": MOST_FOR_KMEANS},
        ),
        "windows": Claim(
            "More windows per image give better rates (here most against fewest, for ERC forests).",
            [rates("windows", last, first)],
            where={"codebook": ERC},
        ),
        "few windows": Claim(
            "With few windows unsupervised trees are as good as k-means (a point below at most).",
            [rates("codebook", KMEANS, UNSUPERVISED, below=LITTLE)],
            where={"windows": first},
        ),
        "full of ones": _of_trees(
            "With many windows the binary codes of unsupervised trees fill with ones and their "
            "rate falls.",
            _falling,
            where={"data": ANY, "codebook": UNSUPERVISED},
        ),
        "repaired": _of_trees(
            "With many windows thresholds by mutual information repair unsupervised trees.",
            [rates("pooling", INFORMATION, BINARY)],
            where={**WITH_MOST, "codebook": UNSUPERVISED},
        ),
        "far better": _of_trees(
            "ERC forests are far better than unsupervised trees with these thresholds (here at "
            "least 5 points).",
            [Compare("rate", FOREST_WORDS, TREE_WORDS, above=5.0, unit="percent")],
            where=WITH_MOST,
        ),
        "votes": _of_trees(
            "Words are better than the votes of the trees themselves, by at least 5 points.",
            [rates("pooling", BINARY, VOTES, above=5.0)],
            "5 to 10 points",
            where={**WITH_MOST, "codebook": ERC},
        ),
        "binary codes": Claim(
            "Neither thresholds by mutual information nor shares of counts beat binary codes of "
            "ERC forests (by more than a point).",
            [rates("pooling", other, BINARY, below=LITTLE) for other in (INFORMATION, SHARES)],
            where={"codebook": ERC, "pooling": ANY, "windows": last},
        ),
        "kd-trees": Claim(
            "ERC forests are better than randomised kd-trees, which do not see the classes.",
            [rates("codebook", ERC, KD_TREES)],
            where={"windows": last},
        ),
        "compromise": Claim(
            "Hierarchical k-means is a compromise: faster than k-means, less accurate.",
            [
                points("seconds_coding", "codebook", KMEANS, HIERARCHICAL, unit="times"),
                rates("codebook", KMEANS, HIERARCHICAL),
            ],
            where={"windows": MOST_FOR_KMEANS},
        ),
        "faster": Claim(
            "ERC forests are much faster than k-means, in learning and in coding (here 5 times at "
            "least).",
            [points(column, "codebook", KMEANS, ERC, above=5.0, unit="times") for column in TIMED],
            "10 000 times fewer operations to learn",
        ),
    },
    where={"data": first_of, "pooling": BINARY},
    figure=_draw_fig4a,
    keys=("data", "object", "seed", "codebook", "pooling", "windows"),
    exact=("rate", "area", "filled"),
    drawn=("roc",),
    published=({"codebook": ERC, "pooling": BINARY, "windows": 8000, "rate": PAPER_RATE},),
    size=(12.0, 4.6),
)


# --- Fig. 4 b: the size of the codebook

LEAVES = (25, 50, 100, 250, 500, 1000, 2000)


def _enough(table: Table) -> list[Verdict]:
    """Larger codebooks against 1000 leaves as in the paper, or the largest number measured."""
    sizes = pruned_sizes(table)
    enough = max(n for n in sizes if n <= 1000)
    larger = [*(n for n in sizes if n > enough), ALL]
    return [rates("leaves", n, enough, below=LITTLE).verdict(table, WORDS) for n in larger]


FIG4B = _experiment(
    name="nips2006-fig4b",
    title="Figure 4 b of Moosmann et al.: how many words a codebook needs",
    shows="How the rate at equal error depends on the number of words.",
    runs=lambda context: grid(data=context.names, seed=context.seeds(N_SEEDS)),
    measure=partial(measure_sizes, sizes=(LEAVES, LEAVES[:5])),
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
)


# --- Fig. 4 c: the number of descriptors that the codebook is built from

DESCRIPTORS, FEW_DESCRIPTORS = (5000, 10_000, 20_000, 40_000), (1500, 4000, 10_000)
FIG4C_LEAVES = (100, 300, 1000, 2500, 5000)


def _centre(table: Table) -> float:
    """Logarithm of the size around which the rates of one seed are highest.

    The mean of the logarithms of all sizes, each weighted by how far its rate is above the lowest;
    steadier than the best of them alone, which chance picks where rates are flat.
    """
    pruned = Table(row for row in table if row["leaves"] != ALL)
    rate = pruned.column("rate")
    # Equal rates have equal weights.
    weights = rate - rate.min() if np.ptp(rate) else None
    return float(np.average(np.log(pruned.column("words")), weights=weights))


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


def _better_than_best(table: Table) -> list[Verdict]:
    """Fully grown trees against the best size of pruned ones."""
    best = max(pruned_sizes(table), key=lambda n: table.mean("rate", leaves=n))
    return [rates("leaves", ALL, best).verdict(table, WORDS)]


FIG4C = _experiment(
    name="nips2006-fig4c",
    title="Figure 4 c of Moosmann et al.: how many descriptors a codebook is built from",
    shows="Rate at equal error over the descriptors to learn from, for several sizes of trees.",
    runs=lambda context: grid(
        data=context.names,
        seed=context.seeds(N_SEEDS),
        descriptors=context.scaled(DESCRIPTORS, FEW_DESCRIPTORS),
    ),
    measure=partial(measure_sizes, sizes=(FIG4C_LEAVES, FIG4C_LEAVES[:3])),
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
            [rates("leaves", ALL, FIG4C_LEAVES[0])],
            where={"descriptors": last},
        ),
        "grown fully": Claim(
            "It is better to grow trees fully and not to prune (here: than to the best size, over "
            "all numbers of descriptors).",
            _better_than_best,
        ),
    },
    figure=Panels([Panel("descriptors", "rate", "leaves", (ALL, *FIG4C_LEAVES), ticks="measured")]),
    keys=("data", "object", "seed", "descriptors", "leaves"),
    exact=("words", "rate"),
    published=({"descriptors": 20_000, "leaves": 1000, "rate": PAPER_RATE},),
)


# --- Fig. 4 d: the number of trees

TREES = (1, 2, 3, N_TREES, 10)


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


FIG4D = _experiment(
    name="nips2006-fig4d",
    title="Figure 4 d of Moosmann et al.: how many trees a codebook needs",
    shows="Rate at equal error, and its spread, over the number of trees.",
    # A standard deviation needs more seeds than a mean; the runs are short.
    runs=lambda context: grid(data=context.names, seed=context.seeds(20, 3)),
    measure=lambda context, run: measure_forests(
        context, run, "trees", {n: {"n_estimators": n} for n in TREES}
    ),
    claims={
        "five": Claim("Going from 1 tree to 5 raises the accuracy.", [rates("trees", N_TREES, 1)]),
        "spread": Claim("5 trees vary less from run to run than 1.", _less_spread),
        "beyond five": Claim(
            "More than 5 trees bring little improvement (a point at most).",
            [rates("trees", TREES[-1], N_TREES, below=LITTLE)],
        ),
    },
    figure=Panels([Panel("trees", "rate", (), ERC_STYLE)]),
    keys=("data", "object", "seed", "trees"),
    exact=("words", "rate"),
    published=({"trees": N_TREES, "rate": PAPER_RATE},),
)


# --- Settings that the paper's text tells of: masks, limits of the trees, descriptors, categories

MASKS, TRIALS, SCORE, CATEGORY = "masks", "T_max", "S_min", "category"
# Setting 1 of the paper, also with more descriptors, and setting 2 in two readings.
WHOLE, MORE, OBJECT, OBJECT_TOO = (
    "whole images",
    "whole images, more descriptors",
    "words from the object alone",
    "words and histograms from the object alone",
)
GREY_IMAGES = "haar, grey images"
# The option of a forest, and its values in full and in quick runs.
SWEEPS: dict[str, tuple[str, Sequence[float], Sequence[float]]] = {
    TRIALS: ("max_trials", (1, 3, 10, 28, 50, 100, 300), (1, 10, 50)),
    SCORE: ("min_score", (0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 0.5, 1.0)),
}


def _settings_runs(context: Context) -> list[Run]:
    seeds, names = context.seeds(N_SEEDS), names_with_outlines(context)
    pictured, drawn = names[0], names[-1]
    objects = range(len(objects_of(context.dataset(pictured))))
    # Sweeps of the first object and the last, which is the hardest of the photographs.
    swept = sorted({0, objects[-1]})
    found = [
        *grid(part=[*SWEEPS], data=[pictured], number=swept, seed=seeds),
        *grid(part=[CATEGORY], data=[pictured], number=objects, seed=seeds),
    ]
    if drawn != pictured:
        # To find reasons, where the surroundings are the same with and without the object.
        found += grid(part=[TRIALS], data=[drawn], number=[0], seed=seeds)
    if context.is_built_in(drawn):
        found += grid(part=[MASKS], data=[drawn], number=[0, 1], seed=seeds)
    return found


def _settings_measure(context: Context, run: Run) -> list[Row]:
    part, seed = run["part"], run["seed"]
    if part in SWEEPS:
        option, *values = SWEEPS[part]
        swept = {value: {option: value} for value in context.scaled(*values)}
        return measure_forests(context, run, "value", swept)
    task = load_task(context, run)
    if part == MASKS:
        # About one in eight patches is on the object.
        more = describe_training(context, task, seed, 4 * context.scaled(*N_DESCRIPTORS))
        alone = describe_training(context, task, seed, on_object=True)
        covered = np.mean([mask.mean() for mask in task.outlines if mask is not None])
        told: Row = {"on_object": 100 * float(covered)}
        variants: dict[str, Any] = {
            WHOLE: {},
            MORE: {"given": more},
            OBJECT: {"given": alone},
            OBJECT_TOO: {"given": alone, "on_object": True},
        }
    else:
        means = [np.rint(image.mean(axis=2)).astype(np.uint8) for image in task.images]
        grey = replace(task, images=[np.repeat(each[:, :, None], 3, axis=2) for each in means])
        # Mean difference of the largest and the smallest colour of a pixel, in percent.
        mine = [task.images[i] for i in np.flatnonzero(task.positive)]
        told = {
            "saturation": float(np.mean([np.ptp(image, axis=2).mean() / 2.55 for image in mine]))
        }
        variants = {HAAR: {}, HSL: {"descriptor": HSL}, GREY_IMAGES: {"task": grey}}
    rows: list[Row] = []
    for value, options in variants.items():
        codebooks = {value: forest(context, seed)}
        rows += measure_codebooks(context, run, codebooks, key="value", **options)
    # Here all forests have as many words.
    return [{**row, **told, "words": None} for row in rows]


def _draw_settings(figure: Figure, table: Table) -> None:
    things, log = table.values("object"), {"xscale": "log"}
    panels = [
        Panel("value", "rate", "object", things, {"part": TRIALS}, TRIALS, TRIALS, options=log),
        Panel("value", "rate", "object", things, {"part": SCORE}, SCORE, SCORE),
    ]
    for part in (CATEGORY, MASKS):
        values, limits = table.where(part=part).values("value"), {"ylim": (50, 100)}
        bars = Panel("object", "rate", "value", values, {"part": part}, part, bars=True)
        panels.append(replace(bars, options=limits))
    draw_panels(figure, Panels(panels, height=3.7), table, WORDS, Table([]))


SETTINGS = _experiment(
    name="nips2006-settings",
    title="Settings of Moosmann et al.: masks, limits of the trees, descriptors, categories",
    shows="Rate at equal error over T_max, S_min, descriptors, and with masks of the object.",
    sources=SOURCES_WITH_OUTLINES,
    runs=_settings_runs,
    measure=_settings_measure,
    claims={
        "masks": Claim(
            "Masks of the object in training do not improve the rates (by more than a point; here "
            "on drawn scenes, words learnt from the object alone).",
            [rates("value", OBJECT, WHOLE, below=LITTLE)],
            {
                BICYCLE: "84.4 % with whole images, 84.1 % with masks (bikes)",
                CAR: "79.9 % with whole images, 79.8 % with masks (cars)",
            },
            where={"part": MASKS},
            each=("object",),
        ),
        "S_min": Claim(
            "The exact S_min is not critical (above 0, within a point of 0.5).",
            [rates("value", value, 0.5, within=LITTLE) for value in (0.25, 0.75, 1.0)],
            "S_min = 0.5",
            where={"part": SCORE},
        ),
        "T_max": Claim(
            "T_max has a significant influence (here the paper's 50 trials against one trial).",
            [rates("value", MAX_TRIALS, 1)],
            where={"part": TRIALS, "data": first_of},
        ),
        "cars": Claim(
            "Cars are harder than bikes.",
            lambda table: [rates("object", *table.values("object")[:2]).verdict(table, WORDS)],
            "84.4 % for bikes, 79.9 % for cars",
            where={"part": CATEGORY, "value": HAAR},
        ),
        "wavelets": Claim(
            "Colour wavelets are better than raw colours (here as the mean of all categories).",
            [rates("value", HAAR, HSL)],
            where={"part": CATEGORY},
        ),
    },
    figure=_draw_settings,
    keys=("data", "object", "seed", "part", "value"),
    exact=("words", "rate", "on_object", "saturation"),
)


# --- SIFT descriptors: forests against k-means, and settings that help the forest

# The paper's size, with the number of trials that the square root gives.
PAPER = "5 trees"
# Trees, the share of the paper's leaves in each, and trials.
VARIANTS: dict[str, tuple[int, float | None, Any]] = {
    PAPER: (5, 1.0, "sqrt"),
    "5 trees, 50 trials": (5, 1.0, 50),
    "5 trees, all trials": (5, 1.0, 128),
    "5 trees, trials by a holdout": (5, 1.0, "auto"),
    "5 trees, grown fully": (5, None, "sqrt"),
    "10 trees of half the leaves": (10, 0.5, "sqrt"),
    "20 trees of a quarter": (20, 0.25, "sqrt"),
    "50 trees of a tenth": (50, 0.1, "sqrt"),
    "20 trees of a quarter, 50 trials": (20, 0.25, 50),
    "20 trees": (20, 1.0, "sqrt"),
}
# As many words as k-means has; more words take more memory, but hardly more time.
LARGER = ("5 trees, grown fully", "20 trees")


def _sift_runs(context: Context) -> list[Run]:
    """The first object and the last, which is the hardest; and wavelets to compare."""
    last_one = len(objects_of(context.dataset(context.names[0]))) - 1
    numbers, seeds = sorted({0, last_one}), context.seeds(N_SEEDS)
    return grid(data=context.names, number=numbers, seed=seeds, descriptor=[SIFT, HAAR])


def _sift_measure(context: Context, run: Run) -> list[Row]:
    """All codebooks of SIFT; of wavelets, the paper's forest only."""
    seed, descriptor = run["seed"], run["descriptor"]
    chosen = context.scaled([*VARIANTS], [PAPER, "20 trees of a quarter"])
    codebooks: dict[str, Any] = {}
    for key in chosen if descriptor == SIFT else [PAPER]:
        n_trees, share, trials = VARIANTS[key]
        n_words = None if share is None else round(share * context.scaled(*N_LEAVES))
        options = {"n_estimators": n_trees, "n_words": n_words, "max_trials": trials}
        codebooks[key] = forest(context, seed, **options)
    if descriptor == SIFT:
        codebooks[KMEANS] = make_codebook(context, KMEANS, seed)
    poolings = dict.fromkeys(codebooks, (BINARY, ROOTS, INFORMATION))
    return measure_codebooks(context, run, codebooks, descriptor=descriptor, poolings=poolings)


def _chosen_elsewhere(table: Table, here: int) -> list[Verdict]:
    """The best forest of one category, with the words of k-means, on the other category."""
    things = table.values("object")
    if len(things) < 2:
        return []
    there = table.where(object=things[1 - here])

    def best(codebooks: Sequence[str]) -> Row:
        places = grid(codebook=codebooks, pooling=there.values("pooling"))
        # Equal are rates up to the digits that the CSV file leaves out.
        return max(places, key=lambda place: round(there.mean("rate", **place), 3))

    forests = [name for name in there.values("codebook") if name not in (KMEANS, *LARGER)]
    # Of equal rates, that of fewer trees.
    one = best(sorted(forests, key=lambda name: VARIANTS[name][0]))
    compare = Compare("rate", one, best([KMEANS]), unit="percent")
    return [compare.verdict(table.where(object=things[here]), WORDS)]


def _depends_on_data(table: Table) -> list[Verdict]:
    """SIFT is better on one category, wavelets on another."""
    compare = rates("descriptor", SIFT, HAAR)
    found = [compare.difference(table.where(object=o), WORDS) for o in table.values("object")]
    low, high = (pick(found, key=lambda each: each.mean) for pick in (min, max))
    return [high.above(), low.below()]


SIFT_FORESTS = Experiment(
    name="nips2006-sift",
    title="SIFT in the setting of Moosmann et al.: ERC forests against k-means",
    shows="Rate at equal error of forests and of k-means on SIFT descriptors, with 1000 windows.",
    sources=SOURCES,
    runs=_sift_runs,
    measure=_sift_measure,
    claims={
        "k-means": Claim(
            "ERC forests are clearly more accurate than k-means (here with SIFT).",
            [rates("codebook", PAPER, KMEANS)],
            where={"descriptor": SIFT, "pooling": BINARY},
            each=("object",),
        ),
        **{
            f"chosen on the {there} category": Claim(
                f"Ours: a forest chosen on the {there} category, with as many words and windows "
                f"as k-means, is more accurate than k-means on the {here} one.",
                partial(_chosen_elsewhere, here=place),
                where={"descriptor": SIFT},
            )
            for place, here, there in ((0, "first", "last"), (1, "last", "first"))
        },
        "descriptor": Claim(
            "The best descriptor depends on the data: wavelets on one, SIFT on another.",
            _depends_on_data,
            "wavelets for GRAZ-02, SIFT for Pascal VOC 2005 and the horses",
            where={"codebook": PAPER, "pooling": BINARY},
        ),
    },
    figure=Panels(
        [Panel("codebook", "rate", "pooling", (BINARY, ROOTS), {"descriptor": SIFT}, ticks="each")],
        rows=("object",),
        n_columns=2,
        height=4.1,
    ),
    keys=("data", "object", "seed", "descriptor", "codebook", "pooling"),
    exact=("rate", "words", "trials"),
)
