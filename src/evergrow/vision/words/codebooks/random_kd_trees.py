"""Random kd-trees: words are the cells of the trees."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from evergrow._core import WordTrees
from evergrow.foundation.params import Integer, Nothing, RandomState, Rule
from evergrow.foundation.progress import progress_bar
from evergrow.vision.images.parameters import JOBS, VERBOSE
from evergrow.vision.words.codebooks.codebook import Codebook
from evergrow.vision.words.codebooks.word_trees import (
    FittedTrees,
    Indices,
    grow_largest_first,
    number_leaves,
)

Rows = npt.NDArray[np.float32]


@dataclass(eq=False, repr=False)
class RandomKDTrees(Codebook):
    """Codebook of random kd-trees: the word of a descriptor is its cell in each tree.

    Each tree splits its largest cell at the median of one feature until there are enough cells. The
    feature is drawn from those with the largest variance in the cell, so that the trees differ.
    The trees are fast and do not use classes. They are a baseline for :class:`ERCForest`.

    Parameters
    ----------
    n_estimators : int, default=5
        Number of trees. Each descriptor gets one word per tree.
    n_words : int, default=1000
        Words per tree; fewer if there are fewer distinct descriptors.
    n_candidates : int, default=5
        Number of features with the largest variance from which one is drawn. With 1 all trees are
        equal; a larger number makes the trees more diverse and each one less accurate.
    random_state : int, RandomState or None, default=None
        Seed of these draws.
    n_jobs : int, default=None
        Number of trees grown at the same time: None is 1 unless joblib is set otherwise, -1 uses
        all processors. The trees are the same for any number.
    verbose : int, default=0
        Show a progress bar if positive.

    Attributes
    ----------
    words_per_tree_ : ndarray of shape (n_estimators,)
        Number of words of each tree.
    n_words_ : int
        Number of words of all trees.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import RandomKDTrees
    >>> descriptors = np.random.default_rng(0).normal(size=(500, 8))
    >>> trees = RandomKDTrees(3, n_words=20, random_state=0).fit(descriptors)
    >>> trees.transform(descriptors).shape, trees.n_words_
    ((500, 3), 60)
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_estimators": [Integer(1, 1 << 20)],
        "n_words": [Integer(1, 1 << 24)],
        "n_candidates": [Integer(1, 1 << 24)],
        "random_state": [Nothing(), RandomState()],
        "n_jobs": JOBS,
        "verbose": VERBOSE,
    }

    _fitted: FittedTrees = field(init=False)
    _kind = FittedTrees

    n_estimators: int = 5
    _: KW_ONLY
    n_words: int = 1000
    n_candidates: int = 5
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def _learn(self, rows: Rows, random: np.random.RandomState) -> FittedTrees:
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_estimators)
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        sizes = int(self.n_words), int(self.n_candidates)
        grown = parallel(delayed(_grow)(rows, int(seed), *sizes) for seed in seeds)
        trees = []
        with progress_bar("growing kd-trees", len(seeds), self.verbose) as finished:
            for tree in grown:
                trees.append(tree)
                if finished is not None:
                    finished(len(trees))
        return FittedTrees(WordTrees.from_arrays(trees, rows.shape[1]))


def _grow(rows: Rows, seed: int, n_words: int, n_candidates: int) -> dict[str, npt.NDArray[Any]]:
    random = np.random.RandomState(seed)
    feature: dict[int, int] = {}
    threshold: dict[int, np.float32] = {}

    def split(node: int, cell: Indices, _: int) -> list[Indices]:
        column = _draw_feature(rows[cell], n_candidates, random)
        if column is None:
            return []
        feature[node], threshold[node] = column, _median_cut(rows[cell, column])
        right = rows[cell, column] > threshold[node]
        return [cell[~right], cell[right]]

    child = np.array(grow_largest_first(np.arange(len(rows)), n_words, split), dtype=np.int32)
    columns, cuts = np.zeros(len(child), np.int32), np.zeros(len(child), np.float32)
    columns[list(feature)], cuts[list(threshold)] = [*feature.values()], [*threshold.values()]
    return number_leaves(columns, cuts, child)


def _draw_feature(cell: Rows, n_candidates: int, random: np.random.RandomState) -> int | None:
    """Draw one of the features with the largest variance; None if all are constant."""
    spread = cell.var(axis=0, dtype=np.float64)
    # Rounding can make the variance of a constant feature slightly positive.
    spread[cell.min(axis=0) == cell.max(axis=0)] = 0.0
    first = max(0, len(spread) - n_candidates)
    most = np.argpartition(spread, first)[first:] if first else np.arange(len(spread))
    most = np.sort(most[spread[most] > 0])
    return int(random.choice(most)) if len(most) else None


def _median_cut(values: Rows) -> np.float32:
    """The threshold between distinct values that is closest to the median."""
    ordered = np.sort(values)
    # Many values may equal the median; a threshold must lie between distinct values.
    steps = np.flatnonzero(ordered[1:] > ordered[:-1])
    at = steps[np.argmin(np.abs(2 * (steps + 1) - len(ordered)))]
    below, above = ordered[at], ordered[at + 1]
    middle = below / np.float32(2) + above / np.float32(2)
    # There is no number between neighbours in single precision.
    return np.float32(middle if below <= middle < above else below)
