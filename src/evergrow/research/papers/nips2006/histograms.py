"""From images to descriptors, counts of words, and rates at equal error, as in the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse

from evergrow.foundation.threads import one_blas_thread
from evergrow.research.papers.nips2006.photographs import BACKGROUND, Photographs
from evergrow.vision.descriptors import LocalFeatures, RandomPatches
from evergrow.vision.words.bag.pooling import POOLINGS, mutual_information_thresholds
from evergrow.vision.words.codebooks.counts import word_offsets
from evergrow.vision.words.evaluation import RocCurve, roc

# Number of descriptors that codebooks are learnt from.
N_TRAINING = 20_000
# Added to the seed, to learn from other patches than those that are coded.
_OTHER_SEED = 1000
_MOST_PASSES = 20_000
# Poolings whose values are much smaller than one.
_SHARES = ("sum", "sqrt")
# Largest standard deviation of the grey values, up to 255, of a plain patch.
_PLAIN = 8.0

Rows = npt.NDArray[np.float32]
RGB = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Descriptors:
    """Descriptors of training images, with the class and the number of their image."""

    rows: Rows
    classes: npt.NDArray[Any]
    images: npt.NDArray[np.int64]

    def some(self, n: int) -> Descriptors:
        """The given number of descriptors, evenly over the images."""
        kept = np.arange(n) * len(self.rows) // n if n < len(self.rows) else slice(None)
        return Descriptors(self.rows[kept], self.classes[kept], self.images[kept])


@dataclass(frozen=True, eq=False)
class Coding:
    """A codebook, and the number of patches of each image to code."""

    codebook: Any
    n_patches: int


def local_features(descriptor: str, n_patches: int, seed: int) -> LocalFeatures:
    """Descriptors of patches at random positions and scales."""
    return LocalFeatures(descriptor, patches=RandomPatches(n_patches), random_state=seed)


def training_descriptors(
    data: Photographs,
    descriptor: str,
    seed: int,
    n_descriptors: int = N_TRAINING,
    *,
    n_jobs: int = -1,
    masks: Sequence[Mask | None] | None = None,
) -> Descriptors:
    """About the same number of descriptors of each training image.

    With ``masks``, one per image of the data, the centres of patches lie on the mask.
    """
    chosen = np.flatnonzero(data.trains)
    local = local_features(descriptor, -(-n_descriptors // len(chosen)), seed + _OTHER_SEED)
    parts = Parallel(n_jobs, prefer="threads")(
        delayed(local.describe)(data.images[i], mask=None if masks is None else masks[int(i)])
        for i in chosen
    )
    images = np.repeat(np.arange(len(chosen)), [len(rows) for rows, _ in parts])
    rows = np.concatenate([rows for rows, _ in parts])
    return Descriptors(rows, data.classes[chosen][images], images)


def count_words(
    data: Photographs,
    descriptor: str,
    codings: Mapping[str, Coding],
    seed: int,
    *,
    n_jobs: int = -1,
    masks: Sequence[Mask | None] | None = None,
) -> dict[str, sparse.csr_array]:
    """Counts of words per image for each coding, all of the same patches.

    Each image is described once and coded once by each codebook; codings of fewer patches use the
    first of them. With ``masks``, one per image, the centres of patches lie on the mask.
    """
    most: dict[int, Coding] = {}
    for coding in codings.values():
        mine = id(coding.codebook)
        if mine not in most or most[mine].n_patches < coding.n_patches:
            most[mine] = coding
    local = local_features(descriptor, max(c.n_patches for c in most.values()), seed)

    def counts(image: RGB, mask: Mask | None) -> list[sparse.csr_array]:
        rows, _ = local.describe(image, mask=mask)
        columns = {key: _columns(c.codebook, rows[: c.n_patches]) for key, c in most.items()}
        return [
            _counted(columns[id(c.codebook)][: c.n_patches], c.codebook.n_words_)
            for c in codings.values()
        ]

    # Images in parallel, each with one BLAS thread.
    with one_blas_thread():
        parts = Parallel(n_jobs, prefer="threads")(
            delayed(counts)(image, mask)
            for image, mask in zip(data.images, masks or repeat(None), strict=False)
        )
    stacked = zip(*parts, strict=True)
    return {
        name: sparse.csr_array(sparse.vstack(column))
        for name, column in zip(codings, stacked, strict=True)
    }


def _columns(codebook: Any, rows: Rows) -> npt.NDArray[np.int64]:
    """The column of each patch's word in each tree."""
    words = np.asarray(codebook.transform(rows))
    return np.asarray(codebook.word_columns_[words + word_offsets(codebook.words_per_tree_)[:-1]])


def _counted(columns: npt.NDArray[np.int64], n_words: int) -> sparse.csr_array:
    counts = np.bincount(columns.ravel(), minlength=n_words).astype(np.int32)
    return sparse.csr_array(counts[None])


def in_unmixed(forest: Any, words: npt.NDArray[np.int32], name: str) -> Mask:
    """Whether the leaf of each patch and tree has training patches of one class only.

    Examples
    --------
    >>> from evergrow import ERCForest
    >>> forest = ERCForest(1, random_state=0).fit([[0], [1], [8], [9]], ["a", "a", "b", "b"])
    >>> in_unmixed(forest, forest.transform([[0], [9]]), "b").tolist()
    [[False], [True]]
    """
    column = forest.classes_.tolist().index(name)
    shares = forest.word_shares_[forest.word_columns_, column]
    return np.asarray(shares[words + word_offsets(forest.words_per_tree_)[:-1]] == 1.0)


def centres_on(boxes: Rows, outline: Mask) -> Mask:
    """Whether the centre of each patch is on the object."""
    x, y = (boxes[:, :2] + boxes[:, 2:] / 2).astype(np.int64).T
    return np.asarray(outline[y, x])


def is_plain(image: RGB, boxes: Rows) -> Mask:
    """Whether each patch is plain: it shows no part of an object.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((20, 40, 3), dtype=np.uint8)
    >>> image[5:15, 25:35] = 255
    >>> is_plain(image, np.array([[0, 0, 20], [20, 0, 20]], dtype=np.float32))
    array([ True, False])
    """
    grey = image.mean(axis=2)
    tables = [np.pad(v.cumsum(0).cumsum(1), ((1, 0), (1, 0))) for v in (grey, grey**2)]
    left, top, side = np.rint(boxes).astype(np.int64).T
    right, bottom = np.minimum(left + side, grey.shape[1]), np.minimum(top + side, grey.shape[0])
    area = (right - left) * (bottom - top)
    mean, of_squares = (
        (t[bottom, right] - t[top, right] - t[bottom, left] + t[top, left]) / area for t in tables
    )
    return np.asarray(of_squares - mean**2 < _PLAIN**2)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Test images in the order of their scores."""

    curve: RocCurve

    @property
    def rate(self) -> float:
        """Rate at equal error, in percent."""
        return 100 * self.curve.equal_error_rate

    @property
    def area(self) -> float:
        """Area under the ROC curve, in percent."""
        curve = self.curve
        return 100 * float(np.trapezoid(curve.true_positive_rate, curve.false_positive_rate))

    def found(self, false_positives: Sequence[float]) -> list[float]:
        """Rates of positives found at these rates of false positives, to draw the curve."""
        curve = self.curve
        rates = np.interp(false_positives, curve.false_positive_rate, curve.true_positive_rate)
        return [round(float(rate), 4) for rate in rates]


def equal_error_score(
    data: Photographs, name: str, counts: sparse.csr_array, pooling: str = "binary"
) -> float:
    """Rate at equal error, in percent, of a linear SVM for a class against background."""
    return rank_by_svm(data, name, counts, pooling).rate


def rank_by_svm(
    data: Photographs, name: str, counts: sparse.csr_array, pooling: str = "binary"
) -> Ranking:
    """Rank test images by a linear SVM for a class against background."""
    from sklearn.svm import LinearSVC

    wanted = (data.classes == name) | (data.classes == BACKGROUND)
    positive, trains = data.classes[wanted] == name, data.trains[wanted]
    pooled = pool(counts[np.flatnonzero(wanted)], pooling, trains, positive)
    # Short codes that hardly separate the classes need more iterations than the default.
    svm = LinearSVC(max_iter=_MOST_PASSES, random_state=0).fit(pooled[trains], positive[trains])
    return Ranking(roc(svm.decision_function(pooled[~trains]), positive[~trains]))


def rank_by_votes(data: Photographs, name: str, counts: sparse.csr_array, forest: Any) -> Ranking:
    """Rank test images by the votes of the trees, without a vocabulary.

    Each window votes in each tree with the share of the class in its leaf.
    """
    shares = forest.word_shares_[:, forest.classes_.tolist().index(name)]
    votes = (counts @ shares) / np.asarray(counts.sum(axis=1)).ravel()
    tests = ~data.trains
    return Ranking(roc(votes[tests], data.classes[tests] == name))


def pool(counts: sparse.csr_array, pooling: str, trains: Mask, positive: Mask) -> Any:
    """Pool counts; thresholds, if the pooling has any, are learnt from the training images."""
    chosen, thresholds = POOLINGS[pooling], None
    if chosen.learns:
        codes = positive[trains].astype(np.int32)
        thresholds = mutual_information_thresholds(counts[np.flatnonzero(trains)], codes)
    pooled = chosen.pool(counts, thresholds)
    if pooling in _SHARES:
        # As long as binary vectors on average, since the SVM has one penalty for all.
        length = np.sqrt(pooled.power(2).sum() / max(pooled.nnz, 1))
        pooled = pooled * np.float32(1 / length)
    return pooled
