"""Hierarchical k-means: words are the leaves of a tree of centres."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Integer, Nothing, RandomState, Rule
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.threads import one_openmp_thread
from evergrow.storage.models.codec import Array, Fields
from evergrow.vision.images.parameters import VERBOSE
from evergrow.vision.words.codebooks.clustering import Clustering, distinct_rows, nearest
from evergrow.vision.words.codebooks.codebook import Codebook
from evergrow.vision.words.codebooks.kmeans_codebook import MAX_VALUE, check_magnitude
from evergrow.vision.words.codebooks.word_trees import grow_largest_first

Rows = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

_NO_WORD = -1


@dataclass(frozen=True, eq=False)
class CentreTree:
    """A tree of centres as arrays; node 0 is the root, children come after their parents.

    Attributes
    ----------
    centre : ndarray of shape (n_nodes, n_features), float32
        A descriptor descends to the child with the nearest centre.
    child, n_children : ndarray of shape (n_nodes,), int32
        The first child and the number of consecutive children; 0 in leaves.
    """

    centre: Rows
    child: Ints
    n_children: Ints

    _stored: ClassVar[Fields] = {
        "centre": Array(np.float32, ("nodes", None), -MAX_VALUE, MAX_VALUE, filled=True),
        "child": Array(np.int32, ("nodes",)),
        "n_children": Array(np.int32, ("nodes",)),
    }

    def check_stored(self) -> None:
        """Check that each node except the root is the child of exactly one earlier node."""
        parents = np.flatnonzero(self.child)
        first, number = (array[parents].astype(np.int64) for array in (self.child, self.n_children))
        fits = np.array_equal(np.flatnonzero(self.n_children), parents)
        fits = fits and bool((first > parents).all() and (number >= 2).all())
        if fits and len(parents):
            # The ranges of children must cover all nodes except the root exactly once.
            order = np.argsort(first)
            edges = np.append(first[order], len(self.child))
            fits = edges[0] == 1 and np.array_equal(np.diff(edges), number[order])
        elif fits:
            fits = len(self.child) == 1
        if not fits:
            raise InvalidInputError("the nodes do not form a tree")

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.centre, self.child, self.n_children):
            array.setflags(write=False)

    @property
    def n_features(self) -> int:
        """Number of features of the descriptors."""
        return int(self.centre.shape[1])

    @property
    def words_per_tree(self) -> npt.NDArray[np.int64]:
        """Number of leaves."""
        return np.array([np.count_nonzero(self.child == 0)])

    def words_of(self, rows: Rows, n_threads: int) -> Any:  # noqa: ARG002
        """The leaf of each row, numbered from 0, in one column."""
        check_magnitude(rows)
        leaf = self.child == 0
        words = np.where(leaf, np.cumsum(leaf) - 1, _NO_WORD).astype(np.int32)
        found = np.empty((len(rows), 1), dtype=np.int32)
        pending: list[tuple[int, Any]] = [(0, np.arange(len(rows)))]
        while pending:
            node, indices = pending.pop()
            if leaf[node]:
                found[indices, 0] = words[node]
                continue
            first = int(self.child[node])
            centres = self.centre[first : first + int(self.n_children[node])]
            nearest_child = nearest(rows[indices], centres)
            pending += [(first + k, indices[own]) for k, own in _group(nearest_child)]
        return found


def _group(numbers: Any) -> list[tuple[int, Any]]:
    """The indices of each number that occurs."""
    order = np.argsort(numbers, kind="stable")
    found, firsts = np.unique(numbers[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, firsts[1:]), strict=True)) if len(found) else []


@dataclass(eq=False, repr=False)
class HierarchicalKMeans(Codebook):
    """Codebook of hierarchical k-means: words are the leaves of a tree of centres.

    The largest leaf is split among a few centres until there are enough leaves. A descriptor is
    compared with a few centres per level instead of all, which makes coding much faster than plain
    k-means and slightly less accurate.

    Parameters
    ----------
    n_words : int, default=1000
        Number of leaves; fewer if there are fewer distinct descriptors.
    branching : int, default=10
        Centres per node. Fewer make coding faster; with more it is closer to plain k-means.
    batch_size : int, default=4096
        Descriptors per step of k-means.
    max_epochs : int, default=100
        Maximum number of passes through the descriptors of a node.
    random_state : int, RandomState or None, default=None
        Seed of the initial centres and of the mini-batches.
    verbose : int, default=0
        Show a progress bar if positive.

    Attributes
    ----------
    words_per_tree_ : ndarray of shape (1,)
        Number of words.
    n_words_ : int
        Number of words.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow.vision import HierarchicalKMeans
    >>> descriptors = np.random.default_rng(0).normal(size=(500, 8))
    >>> tree = HierarchicalKMeans(20, branching=4, random_state=0).fit(descriptors)
    >>> tree.transform(descriptors).shape, tree.n_words_
    ((500, 1), 20)
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "n_words": [Integer(1, 1 << 24)],
        "branching": [Integer(2, 1 << 16)],
        "batch_size": [Integer(1, 1 << 28)],
        "max_epochs": [Integer(1, 1 << 30)],
        "random_state": [Nothing(), RandomState()],
        "verbose": VERBOSE,
    }

    _fitted: CentreTree = field(init=False)
    _kind = CentreTree

    n_words: int = 1000
    _: KW_ONLY
    branching: int = 10
    batch_size: int = 4096
    max_epochs: int = 100
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def _learn(self, rows: Rows, random: np.random.RandomState) -> CentreTree:
        check_magnitude(rows)
        # Hundreds of small problems: synchronising threads would take longer than the work.
        with one_openmp_thread():
            return self._grow(rows, random)

    def _grow(self, rows: Rows, random: np.random.RandomState) -> CentreTree:
        centres: list[Rows] = [rows.mean(axis=0, keepdims=True, dtype=np.float64)]
        n_children: dict[int, int] = {}

        def split(node: int, cell: Any, n_most: int) -> list[Any]:
            found = self._centres_of(rows[cell], min(self.branching, n_most), random)
            groups = _group(nearest(rows[cell], found))
            # Centres that are nearest to no descriptor are dropped.
            if len(groups) > 1:
                centres.append(found[[k for k, _ in groups]])
                n_children[node] = len(groups)
            return [cell[indices] for _, indices in groups]

        with progress_bar("growing a vocabulary tree", self.n_words, self.verbose) as finished:
            child = grow_largest_first(np.arange(len(rows)), self.n_words, split, finished)
        return CentreTree(
            np.concatenate(centres).astype(np.float32),
            np.array(child, dtype=np.int32),
            np.array([n_children.get(node, 0) for node in range(len(child))], dtype=np.int32),
        )

    def _centres_of(self, cell: Rows, wanted: int, random: np.random.RandomState) -> Any:
        if len(cell) <= wanted:
            return distinct_rows(cell)
        clustering = Clustering(
            wanted, batch_size=int(self.batch_size), max_epochs=int(self.max_epochs)
        )
        return distinct_rows(clustering.find_centres(cell, random))
