"""Words as the cells of random kd-trees."""

from __future__ import annotations

import heapq
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from evergrow._core import WordTrees
from evergrow.foundation.params import Flag, Integer, Nothing, RandomState, Rule
from evergrow.foundation.progress import progress_bar
from evergrow.vision.images.many import JOBS
from evergrow.vision.words.estimator import Codebook
from evergrow.vision.words.word_trees import FittedTrees, numbered_tree, trees_from_tensors

__all__ = ["RandomKDTrees"]

Rows = npt.NDArray[np.float32]
Places = npt.NDArray[np.intp]


class RandomKDTrees(Codebook):
    """Words as the cells of random kd-trees.

    Each tree halves the descriptors of its largest cell, at the median of one feature, until there
    are enough cells. The feature is drawn among those that vary most in the cell, so that trees
    differ. Fast to learn and to code with, but blind to classes: it is what forests that know them
    are compared with.

    Parameters
    ----------
    n_estimators : int, default=5
        Number of trees. Each descriptor gets a word of each.
    n_words : int, default=1000
        Words per tree; fewer if there are fewer different descriptors.
    n_candidates : int, default=5
        Number of most variable features of a cell of which one is drawn. With 1 all trees are the
        same; more make trees more different and each one worse.
    random_state : int, RandomState or None, default=None
        Seed of these draws.
    n_jobs : int, default=None
        Number of trees grown at once; None for 1 or what joblib's context says, -1 for all
        processors. The trees do not depend on it.
    verbose : int, default=0
        Show a progress bar when positive.

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
        "verbose": [Integer(0), Flag()],
    }

    _fitted: FittedTrees

    def __init__(
        self,
        n_estimators: int = 5,
        *,
        n_words: int = 1000,
        n_candidates: int = 5,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_words = n_words
        self.n_candidates = n_candidates
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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

    @staticmethod
    def _read(tensors: dict[str, npt.NDArray[Any]]) -> FittedTrees:
        return FittedTrees(trees_from_tensors(tensors))


def _grow(rows: Rows, seed: int, n_words: int, n_candidates: int) -> dict[str, npt.NDArray[Any]]:
    random = np.random.RandomState(seed)
    feature, threshold, child = [0], [np.float32(0)], [0]
    cells: dict[int, Places] = {0: np.arange(len(rows))}
    # The largest cell first, of equally large ones the first.
    waiting = [(-len(rows), 0)]
    n_leaves = 1
    while waiting and n_leaves < n_words:
        node = heapq.heappop(waiting)[1]
        cell = cells.pop(node)
        column = _variable_feature(rows[cell], n_candidates, random)
        if column is None:
            continue
        feature[node] = column
        threshold[node] = cut = _middle_cut(rows[cell, column])
        child[node] = len(child)
        right = rows[cell, column] > cut
        for part in (cell[~right], cell[right]):
            cells[len(child)] = part
            heapq.heappush(waiting, (-len(part), len(child)))
            feature.append(0)
            threshold.append(np.float32(0))
            child.append(0)
        n_leaves += 1
    return numbered_tree(
        np.array(feature, dtype=np.int32),
        np.array(threshold, dtype=np.float32),
        np.array(child, dtype=np.int32),
    )


def _variable_feature(cell: Rows, n_candidates: int, random: np.random.RandomState) -> int | None:
    """One of the features that vary most; None if none varies."""
    spread = cell.var(axis=0, dtype=np.float64)
    # Rounding makes the variance of equal numbers a little more than nothing.
    spread[cell.min(axis=0) == cell.max(axis=0)] = 0.0
    first = max(0, len(spread) - n_candidates)
    most = np.argpartition(spread, first)[first:] if first else np.arange(len(spread))
    most = np.sort(most[spread[most] > 0])
    return int(random.choice(most)) if len(most) else None


def _middle_cut(values: Rows) -> np.float32:
    """The cut between different values that comes nearest to halving them."""
    ordered = np.sort(values)
    # Many values may equal the median: only between different ones is there a cut.
    steps = np.flatnonzero(ordered[1:] > ordered[:-1])
    at = steps[np.argmin(np.abs(2 * (steps + 1) - len(ordered)))]
    below, above = ordered[at], ordered[at + 1]
    middle = below / np.float32(2) + above / np.float32(2)
    # Between neighbours of single precision there is no number.
    return np.float32(middle if below <= middle < above else below)
