"""Pooling: from word counts to the vector of an image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

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


class Pooling(Protocol):
    """A way to turn counts into vectors."""

    @property
    def learns(self) -> bool:
        """Whether it needs a threshold per word, learnt from classes."""

    def pool(self, counts: sparse.csr_array, thresholds: Thresholds | None) -> sparse.csr_array:
        """Turn counts of shape (n_images, n_words) into vectors, float32."""


@dataclass(frozen=True)
class Counts:
    """The counts themselves."""

    learns: bool = False

    def pool(self, counts: sparse.csr_array, thresholds: Thresholds | None) -> sparse.csr_array:  # noqa: ARG002
        """Convert the type."""
        return _with_values(counts, counts.data)


@dataclass(frozen=True)
class Binary:
    """One for each word that occurs."""

    learns: bool = False

    def pool(self, counts: sparse.csr_array, thresholds: Thresholds | None) -> sparse.csr_array:  # noqa: ARG002
        """Replace each count by one."""
        return _with_values(counts, np.ones(counts.nnz))


@dataclass(frozen=True)
class Thresholded:
    """One for each word whose count reaches its threshold."""

    learns: bool = True

    def pool(self, counts: sparse.csr_array, thresholds: Thresholds | None) -> sparse.csr_array:
        """Compare with the thresholds."""
        if thresholds is None:
            raise InvalidInputError("pooling by mutual information needs thresholds, got None")
        pooled = _with_values(counts, counts.data >= thresholds[counts.indices])
        pooled.eliminate_zeros()
        return pooled


@dataclass(frozen=True)
class Shares:
    """Counts divided by their sum over the image, to a power; zeros for an image without words."""

    power: float = 1.0
    learns: bool = False

    def pool(self, counts: sparse.csr_array, thresholds: Thresholds | None) -> sparse.csr_array:  # noqa: ARG002
        """Divide by the sum of the row."""
        totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        per_entry = np.repeat(totals, np.diff(counts.indptr))
        return _with_values(counts, (counts.data / per_entry) ** self.power)


# Each descriptor counts once per tree, so that every tree has the same share of the sum.
POOLINGS: dict[str, Pooling] = {
    "binary": Binary(),
    "counts": Counts(),
    "mutual_information": Thresholded(),
    "sqrt": Shares(power=0.5),
    "sum": Shares(),
}


def _with_values(counts: sparse.csr_array, values: npt.NDArray[np.generic]) -> sparse.csr_array:
    arrays = (values.astype(np.float32), counts.indices.copy(), counts.indptr.copy())
    return sparse.csr_array(arrays, shape=counts.shape)


def mutual_information_thresholds(counts: sparse.csr_array, codes: Codes) -> Thresholds:
    """For each word, the threshold with the most information about the class.

    The threshold ``t`` of a word maximises the mutual information between the class of an image
    and whether the word occurs at least ``t`` times in it; the smallest one of ties.

    Parameters
    ----------
    counts : sparse array of shape (n_images, n_words), int
        How often each word occurs.
    codes : ndarray of shape (n_images,), int32
        The column of each image's class.

    Returns
    -------
    thresholds : ndarray of shape (n_words,), int32
        At least 1; 1 for words without information.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
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
