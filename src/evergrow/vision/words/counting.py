"""How often each word occurs in each image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse

from evergrow.foundation.engine import Arrays, Job, current_engine
from evergrow.storage.shards.row_parts import rows_to_share
from evergrow.vision.words.image_parts import ImagePart, image_parts, images_to_cut

__all__ = [
    "count_words",
    "counts_as_arrays",
    "counts_from_arrays",
    "counts_of_part",
    "reader_of",
    "stacked_counts",
    "word_offsets",
]

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
    reader = reader_of(codebook)
    found = _counts_by_parts(reader, images)
    if found is None:
        found = enumerate(_counts_by_blocks(reader, images, n_jobs))
    parts, done = dict[int, sparse.csr_array](), 0
    for place, part in found:
        parts[place] = part
        done += part.shape[0]
        if finished is not None:
            finished(done)
    if not parts:
        raise ValueError("there must be at least one image")
    return stacked_counts([parts[place] for place in range(len(parts))])


def stacked_counts(parts: list[sparse.csr_array]) -> sparse.csr_array:
    """Counts of images one part after the other."""
    counts = sparse.vstack(parts, format="csr")
    if counts.nnz <= np.iinfo(np.int32).max:
        # What many estimators take; stacking may widen them.
        counts.indices = counts.indices.astype(np.int32, copy=False)
        counts.indptr = counts.indptr.astype(np.int32, copy=False)
    return counts


def reader_of(codebook: Any) -> Any:
    """What codes descriptors of images, here or where the engine in use runs its tasks."""
    reader = codebook._travelling()
    # Descriptors of images have no names.
    vars(reader).pop("feature_names_in_", None)
    engine = current_engine()
    if engine is not None and engine.capacity.is_remote and hasattr(reader, "n_jobs"):
        # Workers that share a machine would all start a thread per processor.
        reader.n_jobs = engine.capacity.threads_per_worker
    return reader


def _counts_by_blocks(
    reader: Any, images: Iterable[npt.ArrayLike], n_jobs: int | None
) -> Iterator[sparse.csr_array]:
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    blocks = _blocks(images, reader.n_features_in_)
    counted: Iterator[sparse.csr_array] = parallel(
        delayed(_counts_of)(reader, block) for block in blocks
    )
    return counted


def _counts_by_parts(
    reader: Any, images: Iterable[npt.ArrayLike]
) -> Iterator[tuple[int, sparse.csr_array]] | None:
    """Counts of parts as they finish; None where there is no engine, or one part at most."""
    engine = current_engine()
    there = None if engine is None else images_to_cut(images)
    if engine is None or there is None or there.n_features != reader.n_features_in_:
        return None
    parts = image_parts(there)
    if len(parts) < 2:
        return None
    shared = (rows_to_share(there.values), reader)
    found = engine.run(Job(counts_of_part, parts, shared, "coding images"))
    n_words = reader.n_words_
    return ((place, counts_from_arrays(arrays, n_words)) for place, arrays in found)


def counts_of_part(part: ImagePart, matrix: npt.NDArray[Any] | None, codebook: Any) -> Arrays:
    """Counts of the words of some images, as the arrays of a sparse matrix."""
    return counts_as_arrays(codebook, part.read(matrix))


def counts_as_arrays(codebook: Any, images: Iterable[npt.ArrayLike]) -> Arrays:
    """Counts of the words of some images, of which there may be none, as arrays that travel."""
    blocks = _blocks(images, codebook.n_features_in_)
    none = sparse.csr_array((0, codebook.n_words_), dtype=np.int32)
    counts = sparse.vstack([none, *(_counts_of(codebook, b) for b in blocks)], format="csr")
    return {"data": counts.data, "indices": counts.indices, "indptr": counts.indptr}


def counts_from_arrays(arrays: Arrays, n_words: int) -> sparse.csr_array:
    """Counts as they came from elsewhere."""
    shape = (len(arrays["indptr"]) - 1, n_words)
    return sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)


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
