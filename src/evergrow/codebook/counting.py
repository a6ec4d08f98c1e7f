"""How often each word occurs in each image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse

__all__ = ["count_words", "word_offsets"]

# Long enough that what a call costs vanishes, short enough that descriptors of all images never
# lie in memory together.
_BLOCK_BYTES = 32 << 20

Matrix = npt.NDArray[Any]


def word_offsets(words_per_tree: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The column of each tree's first word, and the number of all words at the end."""
    offsets: npt.NDArray[np.int64] = np.concatenate([[0], np.cumsum(words_per_tree)])
    return offsets


def count_words(
    codebook: Any,
    images: Iterable[npt.ArrayLike],
    *,
    n_jobs: int | None = None,
    finished: Callable[[int], None] | None = None,
) -> sparse.csr_array:
    """Counts of words per image, one row each, in the order of the images.

    ``finished`` is told how many images are done. Images are taken as they are needed and may be
    made on the way.
    """
    # One look for all blocks: another thread may teach the codebook meanwhile.
    reader = codebook._snapshot()
    # Descriptors of images have no names.
    vars(reader).pop("feature_names_in_", None)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    blocks = _blocks(images, reader.n_features_in_)
    parts, done = [], 0
    for part in parallel(delayed(_counts_of)(reader, block) for block in blocks):
        parts.append(part)
        done += part.shape[0]
        if finished is not None:
            finished(done)
    if not parts:
        raise ValueError("there must be at least one image")
    counts = sparse.vstack(parts, format="csr")
    if counts.nnz <= np.iinfo(np.int32).max:
        # What many estimators take; stacking may widen them.
        counts.indices = counts.indices.astype(np.int32, copy=False)
        counts.indptr = counts.indptr.astype(np.int32, copy=False)
    return counts


def _blocks(images: Iterable[npt.ArrayLike], n_features: int) -> Iterator[list[Matrix]]:
    """Neighbouring images together, so that each call has enough to do."""
    block: list[Matrix] = []
    size = 0
    for i, image in enumerate(images):
        matrix = np.asarray(image)
        if matrix.ndim != 2 or matrix.shape[1] != n_features:
            raise ValueError(
                f"every image must be a matrix with {n_features} columns, "
                f"number {i} has the shape {matrix.shape}"
            )
        block.append(matrix)
        size += matrix.nbytes
        if size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _counts_of(codebook: Any, block: list[Matrix]) -> sparse.csr_array:
    offsets = word_offsets(codebook.words_per_tree_)
    n_trees = len(offsets) - 1
    rows = np.concatenate(block)
    # A codebook, like every estimator, refuses a matrix without rows.
    words = np.asarray(codebook.transform(rows)) if len(rows) else np.zeros((0, n_trees), np.int32)
    columns = codebook.word_columns_[words + offsets[:-1]].astype(np.int32).ravel()
    ends = np.cumsum([0, *(len(image) for image in block)]) * n_trees
    ones = np.ones(len(columns), dtype=np.int32)
    counts = sparse.csr_array(
        (ones, columns, ends.astype(np.int32)), shape=(len(block), int(offsets[-1]))
    )
    counts.sum_duplicates()
    return counts
