"""What an ERC forest has learnt: trees, class counts of their words, and how they grow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow._core import WordTrees
from evergrow.blocks import float_blocks
from evergrow.codebook.word_trees import trees_from_tensors, trees_to_tensors
from evergrow.errors import ModelFileError
from evergrow.labels import ClassList
from evergrow.modelfile import check_array

__all__ = ["Batch", "FittedERC", "Growth", "single"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NUMBERS = ("seed", "max_trials", "n_updates", "n_first_classes")


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

    def __add__(self, other: Batch) -> Batch:
        """Both, one after the other."""
        return Batch(
            np.concatenate([self.rows, other.rows]), np.concatenate([self.codes, other.codes])
        )


@dataclass(frozen=True, eq=False)
class FittedERC:
    """Trees, and how often each word met each class; a value that never changes.

    ``kept`` are the descriptors learnt so far, which new words are found with; None if they were
    not kept. Without labels ``counts`` has no columns.
    """

    labels: ClassList | None
    trees: WordTrees
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
        n_classes = 0 if labels is None else len(labels)
        counts = _counts(trees, batch, n_classes, growth.n_threads)
        kept = batch if keep else None
        return cls(labels, trees, counts, kept, seed, growth.max_trials, 0, n_classes)

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
        """Learn further descriptors; trees with room for more words grow where they fall."""
        wanted = self._words_for(len(labels), growth)
        has_room = wanted is None or bool((self.words_per_tree < wanted).any())
        if self.kept is None:
            if has_room and len(labels) > self.n_known_classes:
                raise ValueError(
                    "new classes get words of their own, which are found with the descriptors of "
                    "the old ones: fit with keep_descriptors=True"
                )
            return self._counted(labels, batch, None, growth)
        kept = self.kept + batch
        if not has_room:
            return self._counted(labels, batch, kept, growth)
        update = self.n_updates + 1
        trees = self.trees.grown(
            kept.rows,
            kept.codes,
            len(self.kept.rows),
            growth.rules(wanted),
            self.seed,
            update,
            growth.n_threads,
            progress,
        )
        counts = _counts(trees, kept, len(labels), growth.n_threads)
        return replace(self, labels=labels, trees=trees, counts=counts, kept=kept, n_updates=update)

    @property
    def n_known_classes(self) -> int:
        """Number of classes seen so far."""
        return 0 if self.labels is None else len(self.labels)

    def _words_for(self, n_classes: int, growth: Growth) -> int | None:
        # The vocabulary grows as the number of classes does.
        if growth.max_words is None:
            return None
        return math.ceil(growth.max_words * max(1.0, n_classes / self.n_first_classes))

    def _counted(
        self, labels: ClassList, batch: Batch, kept: Batch | None, growth: Growth
    ) -> FittedERC:
        counts = _counts(self.trees, batch, len(labels), growth.n_threads)
        counts[:, : self.counts.shape[1]] += self.counts
        return replace(self, labels=labels, counts=counts, kept=kept, n_updates=self.n_updates + 1)

    def words(self, X: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.int32]:
        """The word of each row in each tree."""
        if X.dtype == np.float32 and X.flags.c_contiguous:
            return self.trees.code(X, n_threads)
        words = np.empty((X.shape[0], len(self.trees.words_per_tree)), dtype=np.int32)
        for rows, block in float_blocks(X, 16384):
            words[rows] = self.trees.code(single(block), n_threads)
        return words

    @property
    def word_shares(self) -> Floats:
        """The share of each class among the descriptors of each word."""
        shares: Floats = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        return shares

    def probabilities(self, X: npt.NDArray[Any], n_threads: int) -> Floats:
        """Mean over the trees of the class shares of each row's word."""
        words = self.words(X, n_threads) + _offsets(self.words_per_tree)
        shares = self.word_shares
        total = np.zeros((len(words), shares.shape[1]))
        for column in words.T:
            total += shares[column]
        total /= words.shape[1]
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
        tensors = {**trees_to_tensors(self.trees), "counts": self.counts}
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
        n_classes = 0 if labels is None else len(labels)
        shape = (sum(trees.words_per_tree), n_classes)
        counts = check_array(tensors.get("counts"), "counts", np.int64, shape)
        first = numbers["n_first_classes"]
        if (counts < 0).any() or not (min(1, n_classes) <= first <= n_classes):
            raise ModelFileError("the model file is inconsistent: its counts are wrong")
        if not numbers["max_trials"]:
            raise ModelFileError("the model file is inconsistent: its nodes try no tests")
        kept = _kept(tensors, trees.n_features, max(1, n_classes))
        return cls(labels, trees, counts, kept, **numbers)


def single(block: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """In single precision, which the trees compare; a ``ValueError`` for what is too large."""
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(block, dtype=np.float32)
    if not np.isfinite(rows).all():
        raise ValueError("descriptors must be finite and fit in single precision (up to 3.4e38)")
    return rows


def _offsets(words_per_tree: Ints) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(words_per_tree)[:-1]])


def _counts(trees: WordTrees, batch: Batch, n_classes: int, n_threads: int) -> Ints:
    words_per_tree = np.array(trees.words_per_tree, dtype=np.int64)
    n_words = int(words_per_tree.sum())
    if not n_classes:
        return np.zeros((n_words, 0), dtype=np.int64)
    words = trees.code(batch.rows, n_threads) + _offsets(words_per_tree)
    cells = words * n_classes + batch.codes[:, None]
    counts = np.bincount(cells.ravel(), minlength=n_words * n_classes)
    return counts.reshape(n_words, n_classes).astype(np.int64)


def _numbers(header: dict[str, Any]) -> dict[str, int]:
    entry = header.get("forest")
    found = {name: entry.get(name) for name in _NUMBERS} if isinstance(entry, dict) else {}
    numbers = {name: n for name, n in found.items() if type(n) is int and n >= 0}
    if len(numbers) < len(_NUMBERS):
        raise ModelFileError("the model file lacks the numbers of its forest")
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
