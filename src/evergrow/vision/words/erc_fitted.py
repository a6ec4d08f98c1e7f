"""What an ERC forest has learnt: trees, class counts of their words, and how they grow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow._core import WordTrees
from evergrow.foundation.blocks import float_blocks
from evergrow.foundation.errors import ModelFileError
from evergrow.foundation.labels import ClassList
from evergrow.storage.modelfile import check_array
from evergrow.vision.words.counting import word_offsets
from evergrow.vision.words.rows import single
from evergrow.vision.words.word_trees import trees_from_tensors, trees_to_tensors

__all__ = ["MOST_TRIALS", "Batch", "FittedERC", "Growth"]

MOST_TRIALS = 1 << 30

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_BLOCK_ROWS = 1024
_ROWS_PER_THREAD = 16384
# A double holds every integer up to this one.
_MOST = 2**53
# What a file says of a forest, and the largest it may say.
_NUMBERS = {
    "seed": 2**63 - 1,
    "max_trials": MOST_TRIALS,
    "n_updates": 2**63 - 1,
    "n_first_classes": 2**31 - 1,
}


@dataclass(frozen=True)
class Growth:
    """How trees grow; ``max_words`` is per tree, None for any number."""

    supervised: bool
    max_trials: int
    min_score: float
    max_words: int | None
    min_gain: float
    stop_early: bool
    n_threads: int

    def rules(self, max_words: int | None) -> dict[str, Any]:
        """What the core is told."""
        return {
            "supervised": self.supervised,
            "max_trials": self.max_trials,
            "min_score": self.min_score,
            "max_words": 0 if max_words is None else max_words,
            "min_gain": self.min_gain * math.log(2),
            "stop_early": self.stop_early,
        }


@dataclass(frozen=True)
class Batch:
    """Descriptors and the column of each one's class."""

    rows: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]

    def kept(self) -> Batch:
        """A copy that no one else can change."""
        rows, codes = self.rows.copy(), self.codes.copy()
        for array in (rows, codes):
            array.setflags(write=False)
        return Batch(rows, codes)

    def __add__(self, other: Batch) -> Batch:
        """Both, one after the other."""
        return Batch(
            np.concatenate([self.rows, other.rows]), np.concatenate([self.codes, other.codes])
        )


@dataclass(frozen=True, eq=False)
class FittedERC:
    """Trees, and how often each word met each class; a value that never changes.

    ``columns`` tells the column of each word in a histogram, the words of one tree after those of
    another: a column means one word for the life of the forest, so new words come last. ``counts``
    has a row per column of a histogram and a column per class, none without labels. ``kept`` are
    the descriptors learnt so far, which new words are found with; None if they were not kept.
    """

    labels: ClassList | None
    trees: WordTrees
    columns: Ints
    counts: Ints
    kept: Batch | None
    seed: int
    max_trials: int
    n_updates: int
    n_first_classes: int

    @classmethod
    def of(
        cls,
        labels: ClassList | None,
        batch: Batch,
        growth: Growth,
        *,
        n_trees: int,
        seed: int,
        keep: bool,
        progress: Callable[[int], None] | None = None,
    ) -> FittedERC:
        """Grow trees on their first descriptors."""
        stumps = WordTrees.stumps(n_trees, batch.rows.shape[1])
        rules = growth.rules(growth.max_words)
        trees = stumps.grown(batch.rows, batch.codes, 0, rules, seed, 0, growth.n_threads, progress)
        columns = np.arange(sum(trees.words_per_tree), dtype=np.int64)
        n_classes = 0 if labels is None else len(labels)
        counts = _counts(trees, columns, batch, n_classes, growth.n_threads)
        return cls(
            labels,
            trees,
            columns,
            counts,
            batch.kept() if keep else None,
            seed,
            growth.max_trials,
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

    def more(
        self,
        labels: ClassList,
        batch: Batch,
        growth: Growth,
        progress: Callable[[int], None] | None = None,
    ) -> FittedERC:
        """Learn further descriptors; trees grow where those of new classes fall."""
        seen = np.zeros(len(labels), dtype=bool)
        seen[: self.counts.shape[1]] = self.counts.sum(axis=0) > 0
        n_before = int(seen.sum())
        seen[batch.codes] = True
        n_seen = int(seen.sum())
        if n_seen == n_before:
            return self._counted(labels, batch, growth)
        if self.kept is None:
            raise ValueError(
                "new classes get words of their own, which are found with the descriptors of the "
                "old ones: fit with keep_descriptors=True"
            )
        kept, update = (self.kept + batch).kept(), self.n_updates + 1
        trees = self.trees.grown(
            kept.rows,
            kept.codes,
            len(self.kept.rows),
            growth.rules(self._words_for(n_seen, growth)),
            self.seed,
            update,
            growth.n_threads,
            progress,
        )
        columns = _grown_columns(self.columns, self.words_per_tree, trees.words_per_tree)
        counts = _counts(trees, columns, kept, len(labels), growth.n_threads)
        return replace(
            self,
            labels=labels,
            trees=trees,
            columns=columns,
            counts=counts,
            kept=kept,
            n_updates=update,
        )

    def _words_for(self, n_classes: int, growth: Growth) -> int | None:
        # The vocabulary grows as the number of classes does.
        if growth.max_words is None:
            return None
        return math.ceil(growth.max_words * max(1.0, n_classes / self.n_first_classes))

    def _counted(self, labels: ClassList, batch: Batch, growth: Growth) -> FittedERC:
        counts = _counts(self.trees, self.columns, batch, len(labels), growth.n_threads)
        counts[:, : self.counts.shape[1]] += self.counts
        kept = None if self.kept is None else (self.kept + batch).kept()
        return replace(self, labels=labels, counts=counts, kept=kept, n_updates=self.n_updates + 1)

    def words_of(self, X: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.int32]:
        """The word of each row in each tree; a ``ValueError`` for rows that are not finite."""
        words = np.empty((X.shape[0], len(self.trees.words_per_tree)), dtype=np.int32)
        # One thread looks at a block that is still in the cache; several want enough to share.
        n_rows = _BLOCK_ROWS if n_threads == 1 else n_threads * _ROWS_PER_THREAD
        for rows, block in float_blocks(X, n_rows):
            words[rows] = self.trees.code(single(block), n_threads)
        return words

    @cached_property
    def _totals(self) -> Ints:
        totals: Ints = self.counts.sum(axis=1)
        return totals

    @property
    def word_shares(self) -> Floats:
        """The share of each class among the descriptors of each word, by columns."""
        shares: Floats = self.counts / self._totals[:, None]
        return shares

    def probabilities(self, X: npt.NDArray[Any], n_threads: int) -> Floats:
        """Mean over the trees of the class shares of each row's word."""
        offsets = word_offsets(self.words_per_tree)[:-1]
        columns = self.columns[self.words_of(X, n_threads) + offsets]
        total = np.zeros((len(columns), self.counts.shape[1]))
        for column in columns.T:
            total += self.counts[column] / self._totals[column][:, None]
        total /= columns.shape[1]
        return total

    def without_descriptors(self) -> FittedERC:
        """What predicting and coding need."""
        return replace(self, kept=None)

    def __deepcopy__(self, memo: dict[int, Any]) -> FittedERC:
        """Share: nothing in here ever changes."""
        return self

    def to_tensors(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Numbers for the header, and arrays."""
        numbers = {
            "seed": self.seed,
            "n_updates": self.n_updates,
            "n_first_classes": self.n_first_classes,
            "max_trials": self.max_trials,
        }
        tensors = trees_to_tensors(self.trees)
        tensors |= {"columns": self.columns, "counts": self.counts}
        if self.kept is not None:
            tensors |= {"descriptors": self.kept.rows, "descriptor_classes": self.kept.codes}
        return {"forest": numbers}, tensors

    @classmethod
    def from_tensors(
        cls,
        labels: ClassList | None,
        header: dict[str, Any],
        tensors: dict[str, npt.NDArray[Any]],
    ) -> FittedERC:
        """What a file holds; a ``ModelFileError`` unless all of it fits together."""
        numbers = _numbers(header)
        trees = trees_from_tensors(tensors)
        n_words, n_classes = sum(trees.words_per_tree), 0 if labels is None else len(labels)
        columns = check_array(tensors.get("columns"), "columns", np.int64, (n_words,))
        if not np.array_equal(np.sort(columns), np.arange(n_words)):
            raise ModelFileError("the model file is inconsistent: a word has no column of its own")
        counts = _checked_counts(tensors, n_words, n_classes)
        if not (min(1, n_classes) <= numbers["n_first_classes"] <= n_classes):
            raise ModelFileError("the model file is inconsistent: it began with too many classes")
        kept = _kept(tensors, trees.n_features, max(1, n_classes))
        return cls(labels, trees, columns, counts, kept, **numbers)


def _grown_columns(columns: Ints, before: Ints, now: list[int]) -> Ints:
    """Old words keep their columns; the new ones of all trees follow."""
    parts, last = [], len(columns)
    for old, n_old, n_now in zip(
        np.split(columns, np.cumsum(before)[:-1]), before.tolist(), now, strict=True
    ):
        parts += [old, np.arange(last, last + n_now - n_old)]
        last += n_now - n_old
    return np.concatenate(parts)


def _counts(trees: WordTrees, columns: Ints, batch: Batch, n_classes: int, n_threads: int) -> Ints:
    if not n_classes:
        return np.zeros((len(columns), 0), dtype=np.int64)
    offsets = word_offsets(np.array(trees.words_per_tree))[:-1]
    cells = columns[trees.code(batch.rows, n_threads) + offsets] * n_classes + batch.codes[:, None]
    counts = np.bincount(cells.ravel(), minlength=len(columns) * n_classes)
    return counts.reshape(len(columns), n_classes).astype(np.int64)


def _checked_counts(tensors: dict[str, npt.NDArray[Any]], n_words: int, n_classes: int) -> Ints:
    counts = check_array(tensors.get("counts"), "counts", np.int64, (n_words, n_classes))
    if n_classes and ((counts < 0) | (counts > _MOST // n_classes)).any():
        raise ModelFileError("the model file is inconsistent: a word has an impossible count")
    if n_classes and not counts.any(axis=1).all():
        raise ModelFileError("the model file is inconsistent: a word has no descriptors")
    return counts


def _numbers(header: dict[str, Any]) -> dict[str, int]:
    entry = header.get("forest")
    found = {name: entry.get(name) for name in _NUMBERS} if isinstance(entry, dict) else {}
    numbers = {name: n for name, n in found.items() if type(n) is int and 0 <= n <= _NUMBERS[name]}
    if len(numbers) < len(_NUMBERS) or not numbers["max_trials"]:
        raise ModelFileError("the model file lacks numbers of its forest, or they are impossible")
    return numbers


def _kept(tensors: dict[str, npt.NDArray[Any]], n_features: int, n_codes: int) -> Batch | None:
    if "descriptors" not in tensors:
        return None
    rows = check_array(tensors["descriptors"], "descriptors", np.float32, (None, n_features))
    found = tensors.get("descriptor_classes")
    codes = check_array(found, "descriptor_classes", np.int32, (len(rows),))
    if ((codes < 0) | (codes >= n_codes)).any():
        raise ModelFileError("the model file is inconsistent: a descriptor has no class")
    return Batch(rows, codes)
