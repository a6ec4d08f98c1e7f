"""From categories to subcategories [Ristin2015 Sec. 4] in plain NumPy.

Samples have a coarse class and, some of them, a fine one. The ways of learning from both, and of
going on with more samples and finer labels, are put together from the twins of their parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tests.reference import ncm_forest, refine
from tests.reference.guessing import guess_by_nearest, guess_by_ridge
from tests.reference.ncm_forest import Floats, Ints, Node, grow_forest
from tests.reference.random import tree_key
from tests.reference.regularised_forest import (
    RegularisedPass,
    RegularisedRules,
    propose_regularised,
)
from tests.reference.updates import Update, update_tree

MISSING = -1
PENALTIES = 10.0 ** np.arange(-5.0, 3.5, 0.5)

# Known samples, their fine classes and samples to guess, all of one coarse class.
Guesser = Callable[[npt.NDArray[np.float64], Ints, npt.NDArray[np.float64]], Ints]


def subsets_tried(wanted: int, largest: int, n_classes: int) -> int:
    """As many as wanted, but no more than a hundredth of all subsets, and at least one."""
    possible = sum(math.comb(n_classes, size) for size in range(2, largest + 1))
    return max(1, min(wanted, possible // 100))


def by_ridge(X: npt.NDArray[np.float64], fine: Ints, asked: npt.NDArray[np.float64]) -> Ints:
    """Ridge regression within the coarse class; a single fine class needs none."""
    if len(set(fine.tolist())) == 1:
        return np.full(len(asked), fine[0])
    return guess_by_ridge(X, fine, PENALTIES, asked)


@dataclass(frozen=True)
class Method:
    """One row of table 2, part ii."""

    objective: str
    reading: str
    keeps_coarse_only: bool
    guess: Guesser | None = None
    coarse_weight: float = 0.0
    coarse_means: bool = False


METHODS = {
    "fine-only": Method("gain", "joint", False),
    "joint": Method("joint", "joint", True, None, 0.1, True),
    "nn": Method("gain", "joint", False, guess_by_nearest),
    "hierarchical": Method("hierarchical", "hierarchical", True, None, 1.0, True),
    "nn-h": Method("hierarchical", "hierarchical", True, guess_by_nearest, 1.0, True),
    "ridge-h": Method("hierarchical", "hierarchical", True, by_ridge, 1.0, True),
}


@dataclass(frozen=True)
class Settings:
    """Parameters that all methods share."""

    n_trees: int
    seed: int
    n_subsets: int
    n_assignments: int
    min_samples_leaf: int
    cost_weight: float = 0.001
    smoothing: float = 3.0
    refine_share: float = 0.33
    strategy: str = "rust"


@dataclass
class Model:
    """Classes in the order they appeared, samples, and trees.

    ``labels`` are the given fine classes, ``finest`` those that the trees are grown from.
    """

    method: Method
    settings: Settings
    classes: list[tuple[str, int]] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    trees: list[Node] = field(default_factory=list)
    X: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    coarse: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    labels: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    finest: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    n_updates: int = 0

    def name(self, coarse: list[int], fine: list[int]) -> tuple[Ints, Ints]:
        """Numbers of the classes; new ones are appended, coarse before fine, each sorted."""
        owner = {f: c for c, f in zip(coarse, fine, strict=True) if f != MISSING}
        for c in sorted({("coarse", c) for c in coarse} - set(self.classes)):
            self.classes.append(c)
            self.parents.append(len(self.parents))
        for _, f in sorted({("fine", f) for f in owner} - set(self.classes)):
            self.classes.append(("fine", f))
            self.parents.append(self.classes.index(("coarse", owner[f])))
        number = {c: k for k, c in enumerate(self.classes)} | {("fine", MISSING): MISSING}
        return (
            np.array([number["coarse", c] for c in coarse]),
            np.array([number["fine", f] for f in fine]),
        )

    def is_divided(self, c: int) -> bool:
        """Whether a coarse class has fine ones."""
        return any(p == c for f, p in enumerate(self.parents) if f != p)

    def rules(self) -> RegularisedRules:
        """Parameters of nodes; subsets have up to the square root of the number of means."""
        n = len(self.parents)
        divided = sum(self.is_divided(c) for c in range(n))
        n_means = n if self.method.coarse_means else n - divided
        largest = max(2, math.ceil(math.sqrt(n_means)))
        return RegularisedRules(
            n_classes=n,
            n_centroids=largest,
            n_assignments=self.settings.n_assignments,
            min_samples_leaf=self.settings.min_samples_leaf,
            n_subsets=subsets_tried(self.settings.n_subsets, largest, n_means),
            cost_weight=self.settings.cost_weight,
            objective=self.method.objective,
            coarse_weight=self.method.coarse_weight,
            coarse_means=self.method.coarse_means,
            parents=tuple(self.parents),
        )

    def guessed(self, X: Floats, coarse: Ints, labels: Ints) -> Ints:
        """Finest classes, guessed among those of the coarse class [Ristin2015 Sec. 4.3]."""
        finest = np.where(labels == MISSING, coarse, labels)
        if self.method.guess is None:
            return finest
        for c in set(coarse.tolist()):
            known = np.flatnonzero((coarse == c) & (labels != MISSING))
            asked = np.flatnonzero((coarse == c) & (labels == MISSING))
            if len(known) and len(asked):
                rows = X.astype(np.float64)
                finest[asked] = self.method.guess(rows[known], labels[known], rows[asked])
        return finest

    def store(self, X: Floats, coarse: Ints, labels: Ints, finest: Ints) -> Ints:
        """Keep the samples that are trained on; their row numbers."""
        used = np.array(
            [self.method.keeps_coarse_only or not self.is_divided(c) for c in finest.tolist()]
        )
        first = len(self.coarse)
        self.X = np.concatenate([self.X.reshape(-1, X.shape[1]), X[used]])
        self.coarse = np.append(self.coarse, coarse[used])
        self.labels = np.append(self.labels, labels[used])
        self.finest = np.append(self.finest, finest[used])
        return np.arange(first, len(self.coarse))

    def fit(self, X: Floats, coarse: list[int], fine: list[int]) -> None:
        """Learn from scratch."""
        owners, labels = self.name(coarse, fine)
        self.store(X, owners, labels, self.guessed(X, owners, labels))
        s = self.settings
        self.trees = grow_forest(
            self.X, self.finest, s.n_trees, s.seed, self.rules(), propose_regularised
        )

    def partial_fit(self, X: Floats, coarse: list[int], fine: list[int]) -> None:
        """Guess missing labels again where fine ones came, then add the samples."""
        known = len(self.parents)
        owners, labels = self.name(coarse, fine)
        labelled = {int(c) for c, f in zip(owners, labels, strict=True) if f != MISSING}
        finest = self.guessed(
            np.concatenate([self.X, X]),
            np.append(self.coarse, owners),
            np.append(self.labels, labels),
        )
        divided = {self.parents[f] for f in range(known, len(self.parents)) if self.parents[f] != f}
        for classes, share in (
            (labelled & divided, self.settings.refine_share),
            (labelled - divided, 2),
        ):
            self.relabel(finest, classes, share)
        rows = self.store(X, owners, labels, finest[len(self.finest) :])
        self.n_updates += 1
        for t, tree in enumerate(self.trees):
            update_tree(
                tree,
                self.X,
                self.finest,
                rows,
                self.rules(),
                Update(self.settings.strategy),
                tree_key(self.settings.seed, t, self.n_updates),
                propose=propose_regularised,
                kind=RegularisedPass,
            )

    def refine(self, rows: list[int], fine: list[int]) -> None:
        """Give stored samples fine labels, and guess again for others of their coarse classes."""
        owners = [self.classes[c][1] for c in self.coarse[rows]]
        _, labels = self.name(owners, fine)
        self.labels[rows] = labels
        finest = self.guessed(self.X, self.coarse, self.labels)
        self.relabel(finest, set(self.coarse[rows].tolist()), self.settings.refine_share)

    def relabel(self, finest: Ints, classes: set[int], share: float) -> None:
        """Give stored samples of some coarse classes other finest classes."""
        before = self.finest.copy()
        rows = {
            k
            for k, c in enumerate(self.coarse.tolist())
            if c in classes and finest[k] != self.finest[k]
        }
        if not rows:
            return
        self.finest[list(rows)] = finest[list(rows)]
        self.n_updates += 1
        for t, tree in enumerate(self.trees):
            refine.refine_tree(
                tree,
                self.X,
                self.finest,
                before,
                self.rules(),
                tree_key(self.settings.seed, t, self.n_updates),
                rows=rows,
                share=share,
                parents=self.parents,
                propose=propose_regularised,
            )

    def predict_proba(self, X: Floats) -> npt.NDArray[np.float64]:
        """Probabilities of all classes by their numbers; only finest ones have any."""
        return refine.predict_proba(
            self.trees, X, self.parents, self.method.reading, self.settings.smoothing
        )


def stacked_features(
    X: Floats, coarse: Ints, fine: Ints, settings: Settings, scale: float
) -> npt.NDArray[np.float64]:
    """Features, then the probabilities of a forest of coarse classes [Ristin2015 Sec. 4.1].

    The forest is trained on samples without a fine label, or on all if there are none.
    """
    bare = fine == MISSING
    chosen = bare if bare.any() else ~bare
    classes = sorted(set(coarse.tolist()))
    codes = np.searchsorted(classes, coarse)
    largest = max(2, math.ceil(math.sqrt(len(classes))))
    rules = RegularisedRules(
        n_classes=len(classes),
        n_centroids=largest,
        n_assignments=settings.n_assignments,
        min_samples_leaf=settings.min_samples_leaf,
        n_subsets=subsets_tried(settings.n_subsets, largest, len(classes)),
        cost_weight=settings.cost_weight,
    )
    trees = grow_forest(
        X[chosen], codes[chosen], settings.n_trees, settings.seed, rules, propose_regularised
    )
    probabilities = ncm_forest.predict_proba(trees, X, len(classes))
    return np.hstack([X.astype(np.float64), scale * probabilities])
