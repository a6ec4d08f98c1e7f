"""Pooling: from word counts to the vector of an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from evergrow.foundation.errors import InvalidInputError

Thresholds = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int32]

# Size of the table for one block of words, which bounds the memory.
_BLOCK_NUMBERS = 1 << 22
# Relative tolerance: sums that differ by rounding are equal.
_EQUAL = 1e-9


Counts: TypeAlias = sparse.csr_array


@dataclass(frozen=True)
class Pooling:
    """A way to turn counts of shape (n_images, n_words) into vectors, float32.

    If it ``learns``, it needs a threshold per word, learnt from classes.
    """

    pool: Callable[[Counts, Thresholds | None], Counts]
    learns: bool = False


def _reached(counts: Counts, thresholds: Thresholds | None) -> Counts:
    """One for each word whose count reaches its threshold."""
    if thresholds is None:
        raise InvalidInputError("pooling by mutual information needs thresholds, got None")
    pooled = _with_values(counts, counts.data >= thresholds[counts.indices])
    pooled.eliminate_zeros()
    return pooled


def _shares(power: float, counts: Counts, _: Thresholds | None) -> Counts:
    """Counts divided by their sum over the image, to a power; zeros for an image without words."""
    totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    per_entry = np.repeat(totals, np.diff(counts.indptr))
    return _with_values(counts, (counts.data / per_entry) ** power)


# Each descriptor counts once per tree, so that every tree has the same share of the sum.
POOLINGS: dict[str, Pooling] = {
    "binary": Pooling(lambda counts, _: _with_values(counts, np.ones(counts.nnz))),
    "counts": Pooling(lambda counts, _: _with_values(counts, counts.data)),
    "mutual_information": Pooling(_reached, learns=True),
    "sqrt": Pooling(partial(_shares, 0.5)),
    "sum": Pooling(partial(_shares, 1.0)),
}


def _with_values(counts: Counts, values: npt.NDArray[np.generic]) -> Counts:
    arrays = (values.astype(np.float32), counts.indices.copy(), counts.indptr.copy())
    return sparse.csr_array(arrays, shape=counts.shape)


def mutual_information_thresholds(counts: Counts, codes: Codes) -> Thresholds:
    """For each word, the threshold with the most information about the class.

    The threshold ``t`` of a word maximises the mutual information between the class of an image
    and whether the word occurs at least ``t`` times in it; the smallest one of ties, and 1 for
    words without information. ``codes`` are the columns of the images' classes.

    >>> counts = sparse.csr_array(np.array([[3, 1], [4, 0], [1, 2], [2, 0]]))
    >>> mutual_information_thresholds(counts, np.array([0, 0, 1, 1]))
    array([3, 2], dtype=int32)
    """
    by_word = sparse.csc_array(counts)
    by_word.eliminate_zeros()
    per_class = np.bincount(codes)
    # x ln x for every possible number of images.
    numbers = np.arange(len(codes) + 1, dtype=np.float64)
    entropy_terms = numbers * np.log(np.maximum(numbers, 1.0))
    thresholds = np.ones(by_word.shape[1], dtype=np.int32)
    for words in _blocks(by_word.indptr, len(per_class)):
        block = by_word[:, words]
        if block.nnz:
            _thresholds_of_block(block, codes, per_class, entropy_terms, thresholds[words])
    return thresholds


def _blocks(indptr: npt.NDArray[np.integer], n_classes: int) -> Iterator[slice]:
    """Yield ranges of words whose tables, one row of classes per entry, fit in a block."""
    most = max(1, _BLOCK_NUMBERS // n_classes)
    first, n_words = 0, len(indptr) - 1
    while first < n_words:
        last = int(np.searchsorted(indptr, indptr[first] + most, side="right")) - 1
        last = max(first + 1, min(last, n_words))
        yield slice(first, last)
        first = last


def _thresholds_of_block(
    block: sparse.csc_array,
    codes: Codes,
    per_class: npt.NDArray[np.int64],
    entropy_terms: npt.NDArray[np.float64],
    out: Thresholds,
) -> None:
    """Write the thresholds of some words; entries are sorted by word and descending count."""
    word = np.repeat(np.arange(block.shape[1]), np.diff(block.indptr))
    order = np.lexsort((-block.data, word))
    word, count = word[order], block.data[order]
    first = np.flatnonzero(np.r_[True, word[1:] != word[:-1]])
    # Images of each class in which the word occurs at least as often as in this entry.
    having = np.zeros((len(word), len(per_class)), dtype=np.int64)
    having[np.arange(len(word)), codes[block.indices[order]]] = 1
    np.cumsum(having, axis=0, out=having)
    before = np.zeros((len(first), len(per_class)), dtype=np.int64)
    before[1:] = having[first[1:] - 1]
    having -= np.repeat(before, np.diff(np.r_[first, len(word)]), axis=0)
    # The last entry of equal counts includes all images with that count.
    ends = np.flatnonzero(np.r_[(word[1:] != word[:-1]) | (count[1:] != count[:-1]), True])
    word, count, having = word[ends], count[ends], having[ends]
    total = having.sum(axis=1)
    # The mutual information, up to a constant and a factor.
    information = entropy_terms[having].sum(axis=1) - entropy_terms[total]
    information += entropy_terms[per_class - having].sum(axis=1) - entropy_terms[len(codes) - total]
    # One more than the next smaller count separates the images in the same way.
    same = np.r_[word[1:] == word[:-1], False]
    smallest = np.where(same, np.r_[count[1:], 0], 0) + 1
    firsts = np.flatnonzero(np.r_[True, word[1:] != word[:-1]])
    best = np.maximum.reduceat(information, firsts)
    best_per_entry = np.repeat(best, np.diff(np.r_[firsts, len(word)]))
    good = information >= best_per_entry - _EQUAL * len(codes)
    # Counts are descending within a word, so the last good one has the smallest threshold.
    out[word[good]] = smallest[good]
