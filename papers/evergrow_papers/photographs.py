"""Images of an object against background: photographs or drawn scenes, and the words in them.

Descriptors of random patches are turned into counts of words by a codebook, and test images are
ranked by a linear SVM on these counts or by the votes of trees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
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
from evergrow.vision.words.bag.pooling import POOLINGS, mutual_information_thresholds
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
# Training images of each class, and as many test images, as in the paper; fewer in quick runs.
N_EACH = (150, 60)
# Large photographs are shrunk, so that hundreds of them fit into memory.
LARGEST_SIDE = 640
# Added to the seed, to learn from other patches than those that are coded.
OTHER_SEED = 1000


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

    @property
    def tests(self) -> Task:
        """The test images alone."""
        kept = np.flatnonzero(~self.trains)
        return replace(
            self,
            images=[self.images[i] for i in kept],
            outlines=[self.outlines[i] for i in kept],
            positive=self.positive[kept],
            trains=self.trains[kept],
        )


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
    if pooling in ("sum", "sqrt"):
        # Shares are much smaller than one. They become as long as binary vectors on average,
        # since the SVM has one penalty for all.
        length = np.sqrt(pooled.power(2).sum() / max(pooled.nnz, 1))
        pooled = pooled * np.float32(1 / length)
    return pooled


def rank_by_svm(task: Task, counts: Any, pooling: str = BINARY) -> RocCurve:
    """Rank the test images of a task by a linear SVM on the words of images."""
    from sklearn.svm import LinearSVC

    positive, trains = task.positive, task.trains
    pooled = pool(counts, pooling, trains, positive)
    # Short codes that hardly separate the classes need more iterations than the default.
    svm = LinearSVC(max_iter=20_000, random_state=0).fit(pooled[trains], positive[trains])
    return roc(svm.decision_function(pooled[~trains]), positive[~trains])


def rank_by_votes(task: Task, counts: Any, codebook: Any) -> RocCurve:
    """Rank the test images of a task by the votes of the trees.

    Each window votes in each tree with the share of the object in its leaf.
    """
    votes = (counts @ codebook.word_shares_[:, 1]) / np.asarray(counts.sum(axis=1)).ravel()
    return roc(votes[~task.trains], task.positive[~task.trains])
