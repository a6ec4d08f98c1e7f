"""What an ERC forest has learnt: its trees and the class counts of their words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow._core import WordTrees
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import ClassList
from evergrow.foundation.params import Integer
from evergrow.foundation.rows import float_blocks
from evergrow.storage.models.codec import MOST_COUNTED, Array, ClassNames, Fields, Nested
from evergrow.vision.words.codebooks.counts import word_offsets
from evergrow.vision.words.codebooks.vocabulary import to_single
from evergrow.vision.words.codebooks.word_trees import FittedTrees

MAX_TRIALS = 1 << 30

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BLOCK_ROWS = 1024
_ROWS_PER_THREAD = 16384


@dataclass(frozen=True)
class ERCRequest:
    """The parameters of one call that grows trees; ``max_words`` is per tree, None for no limit."""

    supervised: bool
    max_trials: int
    min_score: float
    max_words: int | None
    min_gain: float
    stop_early: bool
    n_threads: int

    def rules(self, max_words: int | None) -> dict[str, Any]:
        """The parameters in the form of the core; gains are in nats there."""
        rules = asdict(self) | {
            "max_words": max_words or 0,
            "min_gain": self.min_gain * math.log(2),
        }
        del rules["n_threads"]
        return rules


@dataclass(frozen=True)
class DescriptorBatch:
    """Descriptors with the class column of each."""

    rows: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]

    _stored: ClassVar[Fields] = {
        "rows": Array(np.float32, ("descriptors", None)),
        "codes": Array(np.int32, ("descriptors",), 0),
    }

    def read_only_copy(self) -> DescriptorBatch:
        """A copy that cannot be modified."""
        rows, codes = self.rows.copy(), self.codes.copy()
        for array in (rows, codes):
            array.setflags(write=False)
        return DescriptorBatch(rows, codes)

    def __add__(self, other: DescriptorBatch) -> DescriptorBatch:
        """Append another batch."""
        return DescriptorBatch(
            np.concatenate([self.rows, other.rows]), np.concatenate([self.codes, other.codes])
        )


@dataclass(frozen=True, eq=False)
class FittedERC:
    """Trees, and how often each word occurred with each class; an immutable value.

    ``columns`` is the column of each word in a histogram, tree by tree. A column stands for the
    same word for the life of the forest, so new words come last. ``counts`` has one row per column
    of a histogram and one column per class, none without labels. ``descriptors`` are the training
    descriptors, from which new words are learnt; None if they are not stored.
    """

    labels: ClassList | None
    trees: WordTrees
    columns: Ints
    counts: Ints
    descriptors: DescriptorBatch | None
    seed: int
    max_trials: int
    n_updates: int
    n_first_classes: int

    _stored: ClassVar[Fields] = {
        "labels": ClassNames(optional=True),
        "trees": Nested(FittedTrees),
        "columns": Array(np.int64, ("words",), 0, "words"),
        "counts": Array(np.int64, ("words", "classes"), 0, MOST_COUNTED),
        "descriptors": Nested(DescriptorBatch, optional=True),
        "seed": [Integer(0, 2**63 - 1)],
        "max_trials": [Integer(1, MAX_TRIALS)],
        "n_updates": [Integer(0, MOST_COUNTED)],
        "n_first_classes": [Integer(0, 2**31 - 1)],
    }

    def stored_fields(self) -> dict[str, Any]:
        """Return the trees as a value of the codec."""
        return {"trees": FittedTrees(self.trees)}

    @classmethod
    def from_stored(cls, fields: dict[str, Any]) -> FittedERC:
        """Rebuild from a model file."""
        return cls(**{**fields, "trees": fields["trees"].trees})

    def check_stored(self) -> None:
        """Raise a ``ValueError`` if the parts do not suit each other."""
        n_classes, stored = self.counts.shape[1], self.descriptors
        if not np.array_equal(np.sort(self.columns), np.arange(sum(self.trees.words_per_tree))):
            raise InvalidInputError("columns of words are not distinct")
        if n_classes and (self.counts > MOST_COUNTED // n_classes).any():
            raise InvalidInputError("a word has an impossible count")
        if n_classes and not self.counts.any(axis=1).all():
            raise InvalidInputError("a word has no descriptors")
        if not min(1, n_classes) <= self.n_first_classes <= n_classes:
            raise InvalidInputError("it started with too many classes")
        if stored is not None and stored.rows.shape[1] != self.n_features:
            raise InvalidInputError("its descriptors have other features")
        if stored is not None and (stored.codes >= max(1, n_classes)).any():
            raise InvalidInputError("a descriptor has no class")

    @classmethod
    def grow(
        cls,
        labels: ClassList | None,
        batch: DescriptorBatch,
        request: ERCRequest,
        *,
        n_trees: int,
        seed: int,
        keep_descriptors: bool,
        progress: Callable[[int], None] | None = None,
    ) -> FittedERC:
        """Grow new trees."""
        stumps = WordTrees.stumps(n_trees, batch.rows.shape[1])
        rules, n_threads = request.rules(request.max_words), request.n_threads
        trees = stumps.grown(batch.rows, batch.codes, 0, rules, seed, 0, n_threads, progress)
        columns = np.arange(sum(trees.words_per_tree), dtype=np.int64)
        n_classes = 0 if labels is None else len(labels)
        counts = _count_classes(trees, columns, batch, n_classes, n_threads)
        return cls(
            labels,
            trees,
            columns,
            counts,
            batch.read_only_copy() if keep_descriptors else None,
            seed,
            request.max_trials,
            n_updates=0,
            n_first_classes=int(np.count_nonzero(counts.sum(axis=0))),
        )

    @property
    def n_features(self) -> int:
        """Length of a descriptor."""
        return self.trees.n_features

    @property
    def words_per_tree(self) -> Ints:
        """Number of words of each tree."""
        return np.array(self.trees.words_per_tree, dtype=np.int64)

    def update(
        self,
        labels: ClassList,
        batch: DescriptorBatch,
        request: ERCRequest,
        progress: Callable[[int], None] | None = None,
    ) -> FittedERC:
        """Learn more descriptors; trees grow in leaves that those of new classes reach."""
        seen = np.zeros(len(labels), dtype=bool)
        seen[: self.counts.shape[1]] = self.counts.sum(axis=0) > 0
        n_before = int(seen.sum())
        seen[batch.codes] = True
        n_seen = int(seen.sum())
        if n_seen == n_before:
            return self._update_counts(labels, batch, request.n_threads)
        if self.descriptors is None:
            raise InvalidInputError(
                "words for new classes are learnt together with the earlier descriptors, which "
                "were not stored: fit with keep_descriptors=True"
            )
        descriptors, update = (self.descriptors + batch).read_only_copy(), self.n_updates + 1
        trees = self.trees.grown(
            descriptors.rows,
            descriptors.codes,
            len(self.descriptors.rows),
            request.rules(self._max_words(n_seen, request)),
            self.seed,
            update,
            request.n_threads,
            progress,
        )
        columns = _extend_columns(self.columns, self.words_per_tree, trees.words_per_tree)
        counts = _count_classes(trees, columns, descriptors, len(labels), request.n_threads)
        # Only a file can hold others: to check them while loading would take as long as learning.
        if not counts.any(axis=1).all():
            raise InvalidInputError(
                "the stored descriptors are not those that the words were learnt from: fit again"
            )
        return replace(
            self,
            labels=labels,
            trees=trees,
            columns=columns,
            counts=counts,
            descriptors=descriptors,
            n_updates=update,
        )

    def _max_words(self, n_classes: int, request: ERCRequest) -> int | None:
        # The vocabulary grows in proportion to the number of classes.
        if request.max_words is None:
            return None
        return math.ceil(request.max_words * max(1.0, n_classes / self.n_first_classes))

    def _update_counts(
        self, labels: ClassList, batch: DescriptorBatch, n_threads: int
    ) -> FittedERC:
        counts = _count_classes(self.trees, self.columns, batch, len(labels), n_threads)
        counts[:, : self.counts.shape[1]] += self.counts
        stored = self.descriptors
        stored = None if stored is None else (stored + batch).read_only_copy()
        n_updates = self.n_updates + 1
        return replace(self, labels=labels, counts=counts, descriptors=stored, n_updates=n_updates)

    def words_of(self, X: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.int32]:
        """Word of each row in each tree; a ``ValueError`` for rows that are not finite."""
        words = np.empty((X.shape[0], len(self.trees.words_per_tree)), dtype=np.int32)
        # For one thread a block that fits in the cache; for several, enough work to share.
        n_rows = _BLOCK_ROWS if n_threads == 1 else n_threads * _ROWS_PER_THREAD
        for rows, block in float_blocks(X, n_rows):
            words[rows] = self.trees.code(to_single(block), n_threads)
        return words

    @cached_property
    def _totals(self) -> Ints:
        return np.asarray(self.counts.sum(axis=1))

    @property
    def word_shares(self) -> Floats:
        """The share of each class among the descriptors of each word, one row per column."""
        return np.asarray(self.counts / self._totals[:, None])

    def probabilities(self, X: npt.NDArray[Any], n_threads: int) -> Floats:
        """Mean over the trees of the class shares of the word of each row."""
        offsets = word_offsets(self.words_per_tree)[:-1]
        columns = self.columns[self.words_of(X, n_threads) + offsets]
        total = np.zeros((len(columns), self.counts.shape[1]))
        for column in columns.T:
            total += self.counts[column] / self._totals[column][:, None]
        total /= columns.shape[1]
        return total

    def without_descriptors(self) -> FittedERC:
        """The part that prediction and coding need."""
        return replace(self, descriptors=None)

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedERC:
        """Return the same object, because it is immutable."""
        return self


def _extend_columns(columns: Ints, before: Ints, now: list[int]) -> Ints:
    """Old words keep their columns; the new words of all trees follow."""
    parts, last = [], len(columns)
    for old, n_old, n_now in zip(
        np.split(columns, np.cumsum(before)[:-1]), before.tolist(), now, strict=True
    ):
        parts += [old, np.arange(last, last + n_now - n_old)]
        last += n_now - n_old
    return np.concatenate(parts)


def _count_classes(
    trees: WordTrees, columns: Ints, batch: DescriptorBatch, n_classes: int, n_threads: int
) -> Ints:
    if not n_classes:
        return np.zeros((len(columns), 0), dtype=np.int64)
    offsets = word_offsets(np.array(trees.words_per_tree))[:-1]
    cells = columns[trees.code(batch.rows, n_threads) + offsets] * n_classes + batch.codes[:, None]
    counts = np.bincount(cells.ravel(), minlength=len(columns) * n_classes)
    return counts.reshape(len(columns), n_classes).astype(np.int64)
