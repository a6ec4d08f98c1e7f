"""Counts of words per image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse

from evergrow.foundation.engine import Arrays, Job, current_engine
from evergrow.foundation.errors import InvalidInputError
from evergrow.storage.ragged import RaggedArray
from evergrow.storage.shards import ShardImages, Shards
from evergrow.storage.shards.parts import RowPart, row_parts, rows_to_share

# Large enough that the overhead of a call does not matter, small enough that the descriptors of all
# images are never in memory together.
_BLOCK_BYTES = 32 << 20

Matrix = npt.NDArray[Any]


def word_offsets(words_per_tree: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The column of each tree's first word, followed by the total number of words."""
    return np.concatenate([[0], np.cumsum(words_per_tree)])


def count_words(
    codebook: Any,
    images: Iterable[npt.ArrayLike],
    *,
    n_jobs: int | None = None,
    finished: Callable[[int], None] | None = None,
) -> sparse.csr_array:
    """Count the words of each image; one row per image, in order.

    ``finished`` is called with the number of finished images. Images are taken from an iterator
    only when they are needed.
    """
    # One copy for all blocks: another thread may train the codebook in the meantime.
    coder = coding_copy(codebook)
    found = _count_parts(coder, images)
    if found is None:
        found = enumerate(_count_blocks(coder, images, n_jobs))
    parts, done = dict[int, sparse.csr_array](), 0
    for place, part in found:
        parts[place] = part
        done += part.shape[0]
        if finished is not None:
            finished(done)
    if not parts:
        raise InvalidInputError("there must be at least one image")
    return stack_counts([parts[place] for place in range(len(parts))])


def stack_counts(parts: list[sparse.csr_array]) -> sparse.csr_array:
    """Stack the counts of consecutive images."""
    counts = sparse.vstack(parts, format="csr")
    if counts.nnz <= np.iinfo(np.int32).max:
        # Many estimators need 32-bit indices; stacking may have widened them.
        counts.indices = counts.indices.astype(np.int32, copy=False)
        counts.indptr = counts.indptr.astype(np.int32, copy=False)
    return counts


def coding_copy(codebook: Any) -> Any:
    """A copy of a codebook for coding, in this process or in tasks of the engine in use."""
    copy = codebook._coding_copy()
    # Descriptors of images have no feature names.
    vars(copy).pop("feature_names_in_", None)
    engine = current_engine()
    if engine is not None and engine.capacity.is_remote and hasattr(copy, "n_jobs"):
        # With the default, all workers of a machine would start one thread per processor.
        copy.n_jobs = engine.capacity.threads_per_worker
    return copy


def counts_to_arrays(codebook: Any, images: Iterable[npt.ArrayLike]) -> Arrays:
    """Count the words of some images, perhaps none; return the arrays of the sparse matrix."""
    blocks = _blocks(images, codebook.n_features_in_)
    empty = sparse.csr_array((0, codebook.n_words_), dtype=np.int32)
    counts = sparse.vstack([empty, *(_count_block(codebook, b) for b in blocks)], format="csr")
    return {"data": counts.data, "indices": counts.indices, "indptr": counts.indptr}


def counts_from_arrays(arrays: Arrays, n_words: int) -> sparse.csr_array:
    """Rebuild counts from :func:`counts_to_arrays`."""
    shape = (len(arrays["indptr"]) - 1, n_words)
    return sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)


def _count_blocks(
    coder: Any, images: Iterable[npt.ArrayLike], n_jobs: int | None
) -> Iterator[sparse.csr_array]:
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    blocks = _blocks(images, coder.n_features_in_)
    counted = parallel(delayed(_count_block)(coder, block) for block in blocks)
    return cast("Iterator[sparse.csr_array]", counted)


def _blocks(images: Iterable[npt.ArrayLike], n_features: int) -> Iterator[list[Matrix]]:
    """Group consecutive images, so that each call has enough work."""
    block: list[Matrix] = []
    size = 0
    for i, image in enumerate(images):
        matrix = np.asarray(image)
        if matrix.ndim != 2 or matrix.shape[1] != n_features:
            raise InvalidInputError(
                f"every image must be a matrix with {n_features} columns, "
                f"image {i} has the shape {matrix.shape}"
            )
        block.append(matrix)
        size += matrix.nbytes
        if size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _count_block(codebook: Any, block: list[Matrix]) -> sparse.csr_array:
    offsets = word_offsets(codebook.words_per_tree_)
    n_trees = len(offsets) - 1
    rows = np.concatenate(block)
    # Estimators reject a matrix without rows.
    words = np.asarray(codebook.transform(rows)) if len(rows) else np.zeros((0, n_trees), np.int32)
    columns = codebook.word_columns_[words + offsets[:-1]].astype(np.int32).ravel()
    ends = np.cumsum([0, *(len(image) for image in block)]) * n_trees
    ones = np.ones(len(columns), dtype=np.int32)
    counts = sparse.csr_array(
        (ones, columns, ends.astype(np.int32)), shape=(len(block), int(offsets[-1]))
    )
    counts.sum_duplicates()
    return counts


@dataclass(frozen=True, eq=False)
class DescriptorPart:
    """The descriptors of consecutive images, for one task; offsets count from its first row."""

    rows: RowPart
    offsets: npt.NDArray[np.int64]

    def read(self, matrix: npt.NDArray[Any] | None) -> RaggedArray:
        """Read the images; ``matrix`` is the matrix that all tasks share."""
        return RaggedArray(self.rows.read(matrix), self.offsets)


def cut_descriptors(images: RaggedArray | ShardImages) -> list[DescriptorPart]:
    """Cut the descriptors of images into parts: by shards, or about as large as parts of rows.

    >>> ragged = RaggedArray(np.zeros((5, 2)), [0, 2, 2, 5])
    >>> [part.offsets.tolist() for part in cut_descriptors(ragged)]
    [[0, 2, 2, 5]]
    """
    values, offsets = images.values, images.offsets
    if not len(values):
        return [DescriptorPart(RowPart(0, 0), offsets)]
    parts = row_parts(values)
    # An image belongs to the part with its first row: shards contain whole images, other cuts are
    # moved to the end of an image.
    firsts = np.searchsorted(offsets[:-1], [part.first for part in parts])
    cuts = [0, *firsts[1:].tolist(), len(images)]
    found = []
    for part, first, last in zip(parts, cuts[:-1], cuts[1:], strict=True):
        if first == last:
            continue
        begin, end = int(offsets[first]), int(offsets[last])
        shard = part.shard if isinstance(values, Shards) else None
        found.append(DescriptorPart(RowPart(begin, end, shard), offsets[first : last + 1] - begin))
    return found


def _count_parts(
    coder: Any, images: Iterable[npt.ArrayLike]
) -> Iterator[tuple[int, sparse.csr_array]] | None:
    """Counts of parts as they finish; None without an engine, or if one part is enough."""
    engine = current_engine()
    ragged = None if engine is None else _as_ragged(images)
    if engine is None or ragged is None or ragged.n_features != coder.n_features_in_:
        return None
    parts = cut_descriptors(ragged)
    if len(parts) < 2:
        return None
    shared = (rows_to_share(ragged.values), coder)
    found = engine.run(Job(count_part, parts, shared, "coding images"))
    n_words = coder.n_words_
    return ((place, counts_from_arrays(arrays, n_words)) for place, arrays in found)


def count_part(part: DescriptorPart, matrix: npt.NDArray[Any] | None, codebook: Any) -> Arrays:
    """Task: the counts of one part."""
    return counts_to_arrays(codebook, part.read(matrix))


def _as_ragged(images: Iterable[Any]) -> RaggedArray | ShardImages | None:
    """Images whose descriptors all exist already; None if they may be computed on demand."""
    if isinstance(images, (RaggedArray, ShardImages)):
        return images
    if not isinstance(images, (list, tuple)) or not images:
        return None
    widths = {np.shape(image)[1:] for image in images}
    # Images of different widths are an error, which the caller raises when it reads them.
    return RaggedArray.of(images) if len(widths) == 1 and len(widths.pop()) == 1 else None
