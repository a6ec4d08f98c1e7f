"""Images of an object against background: photographs or drawn scenes, and the words in them.

Descriptors of random patches are turned into counts of words by a codebook, and test images are
ranked by a linear SVM on these counts or by the votes of trees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product, repeat
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.formatting import natural_order
from evergrow.foundation.threads import one_blas_thread
from evergrow.vision.descriptors import LocalFeatures, RandomPatches
from evergrow.vision.descriptors.describer import shrink_image
from evergrow.vision.images.reader import read_images
from evergrow.vision.images.sources import import_extra
from evergrow.vision.words.bag.pooling import POOLINGS, mutual_information_thresholds
from evergrow.vision.words.codebooks.counts import word_offsets
from evergrow.vision.words.evaluation import RocCurve, roc
from evergrow_papers.data import Array, Dataset
from evergrow_papers.frame import Context, Run
from evergrow_papers.scenes import BACKGROUND, BICYCLE, CAR, draw_scene

# Windows that are coded per image. The 8000 of the paper would take most of the time.
N_WINDOWS = 1000
# Descriptors that a codebook is built from, in full and in quick runs.
N_DESCRIPTORS = (20_000, 6000)
HAAR, BINARY = "haar", "binary"
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


def order_objects(classes: Iterable[Any]) -> list[str]:
    """The classes other than background, preferred ones first."""
    found = [str(name) for name in classes if name != BACKGROUND]
    return [*dict.fromkeys([name for name in PREFERRED if name in found] + found)]


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
        return order_objects(np.unique(self.classes))

    @property
    def object(self) -> str:
        """The first object, which is the only one in a task."""
        return self.objects[0]

    def place(self, run: Run) -> dict[str, Any]:
        """The columns of a row that say what was measured."""
        return {**run, "data": self.name, "object": self.object}

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
    # At least one class is left for background.
    most = n_objects if BACKGROUND in classes else min(n_objects, len(classes) - 1)
    kept = order_objects(classes)[:most]
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


def load_task(context: Context, run: Run) -> Photographs:
    """Images of the object of a run, by default the first, against background."""
    number = run.get("number", 0)
    data = load(context, run["data"], number + 1)
    return data.against_background(data.objects[number])


def outlines_of(context: Context, source: str, images: Photographs) -> list[Array | None]:
    """A mask of the object in each image, or None where it is unknown or not there."""
    found: list[Array | None] = [None] * len(images.classes)
    if context.is_built_in(source):
        for first_number, training in ((0, True), (1, False)):
            mine = (images.classes == images.object) & (images.trains == training)
            for k, i in enumerate(np.flatnonzero(mine)):
                found[i] = draw_scene(images.object, first_number + 2 * k)[1]
    return found


def names_with_outlines(context: Context) -> list[str]:
    """The sources to measure; drawn scenes once, even if they replace photographs."""
    return [n for n in context.names if n != "drawings" or not context.is_built_in("photographs")]


def shrink(pixels: Array, width: int, height: int) -> list[Any]:
    """An image of at most this size, for the cache; 32 levels of each colour keep it small."""
    image = import_extra("PIL.Image").fromarray(pixels)
    image.thumbnail((width, height))
    found: list[Any] = (np.asarray(image) // 8 * 8 + 4).tolist()
    return found


def show(axes: Any, pixels: Any, **options: Any) -> Any:
    """Draw an image without ticks; returns what a colour bar needs."""
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    # Without interpolation, the file holds no more pixels than the image.
    return axes.imshow(pixels, interpolation="none", **options)


def tile(images: Sequence[Any], n_columns: int, height: int, width: int) -> Array:
    """Images in rows on grey, with a frame around each, since many are white."""
    shape = (-(-len(images) // n_columns) * height, n_columns * width, 3)
    sheet = np.full(shape, 150, dtype=np.uint8)
    for k, pixels in enumerate(images):
        top, left = k // n_columns * height, k % n_columns * width
        sheet[top : top + len(pixels), left : left + len(pixels[0])] = pixels
    return sheet


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
    n_patches = -(-(n or context.scaled(*N_DESCRIPTORS)) // len(chosen))
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


def rank_by_votes(task: Photographs, counts: Any, codebook: Any) -> RocCurve:
    """Rank the test images of a task by the votes of the trees.

    Each window votes in each tree with the share of the object in its leaf.
    """
    shares = codebook.word_shares_[:, codebook.classes_.tolist().index(task.object)]
    votes = (counts @ shares) / np.asarray(counts.sum(axis=1)).ravel()
    tests = ~task.trains
    return roc(votes[tests], task.classes[tests] == task.object)
