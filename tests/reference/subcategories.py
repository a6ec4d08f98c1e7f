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


# Centre and factor of every feature, measured on rows.
Doubles = npt.NDArray[np.float64]
Measure = Callable[[Doubles], tuple[Doubles, Doubles]]


@dataclass
class StackedModel:
    """A forest of coarse classes whose probabilities are features of another [Ristin2015 Sec. 4.1].

    The first is trained on samples without a fine label, or on all while there are none. The second
    is a model of fine labels alone; ``stored`` are the features of its samples, in the units of the
    first forest and as they came. ``measure`` gives the transform of rows that the second forest is
    grown on. It is grown again when a coarse class is new, and when the first has learnt from 1.5
    times as many samples.
    """

    settings: Settings
    scale: float
    measure: Measure
    second: Model = field(init=False)
    trees: list[Node] = field(default_factory=list)
    coarse_names: list[int] = field(default_factory=list)
    X: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    codes: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    stored: list[tuple[Floats, Doubles]] = field(default_factory=list)
    mean: Doubles = field(init=False)
    factor: Doubles = field(init=False)
    learns_all: bool = True
    n_updates: int = 0
    n_grown: int = 0

    def rules(self) -> RegularisedRules:
        """Parameters of nodes of the first forest."""
        n, s = len(self.coarse_names), self.settings
        largest = max(2, math.ceil(math.sqrt(n)))
        return RegularisedRules(
            n_classes=n,
            n_centroids=largest,
            n_assignments=s.n_assignments,
            min_samples_leaf=s.min_samples_leaf,
            n_subsets=subsets_tried(s.n_subsets, largest, n),
            cost_weight=s.cost_weight,
        )

    def learn_coarse(self, X: Floats, coarse: list[int], fine: list[int]) -> Ints:
        """Store what the first forest learns from; the numbers of its new rows."""
        self.coarse_names += sorted(set(coarse) - set(self.coarse_names))
        codes = np.array([self.coarse_names.index(c) for c in coarse])
        bare = np.array(fine) == MISSING
        self.learns_all &= not bare.any()
        chosen = np.ones(len(X), bool) if self.learns_all else bare
        first = len(self.codes)
        self.X = np.concatenate([self.X.reshape(-1, X.shape[1]), X[chosen]])
        self.codes = np.append(self.codes, codes[chosen])
        return np.arange(first, len(self.codes))

    def features(self, X: Floats, plain: Doubles) -> Doubles:
        """Features as they came, then the probabilities of the first forest."""
        probabilities = ncm_forest.predict_proba(self.trees, X, len(self.coarse_names))
        return np.hstack([plain, self.scale * probabilities])

    def in_units(self, rows: Doubles) -> Floats:
        """Rows in the units of the second forest."""
        return ((rows - self.mean) * self.factor).astype(np.float32)

    def fit(self, X: Floats, plain: Doubles, coarse: list[int], fine: list[int]) -> None:
        """Learn from scratch; ``plain`` are the features as they came, ``X`` in units."""
        s = self.settings
        self.second = Model(METHODS["fine-only"], s)
        self.learn_coarse(X, coarse, fine)
        self.trees = grow_forest(
            self.X, self.codes, s.n_trees, s.seed, self.rules(), propose_regularised
        )
        self.store(X, plain, coarse, fine)
        self.grow_second()

    def store(self, X: Floats, plain: Doubles, coarse: list[int], fine: list[int]) -> None:
        """Keep the samples that the second forest is trained on."""
        owners, labels = self.second.name(coarse, fine)
        finest = np.where(labels == MISSING, owners, labels)
        used = np.array([not self.second.is_divided(c) for c in finest.tolist()])
        self.second.store(np.zeros((len(X), 1), np.float32), owners, labels, finest)
        self.stored.append((X[used], plain[used]))

    def grow_second(self) -> None:
        """Grow the second forest from its samples and what the first now says of them."""
        s = self.settings
        rows = self.features(*(np.concatenate(part) for part in zip(*self.stored, strict=True)))
        self.mean, self.factor = self.measure(rows)
        self.second.X = self.in_units(rows)
        self.second.trees = grow_forest(
            self.second.X,
            self.second.finest,
            s.n_trees,
            s.seed,
            self.second.rules(),
            propose_regularised,
        )
        self.n_grown = len(self.codes)

    def partial_fit(self, X: Floats, plain: Doubles, coarse: list[int], fine: list[int]) -> bool:
        """Update the first forest, then update the second or grow it again, which is returned."""
        n_before, s = len(self.coarse_names), self.settings
        rows = self.learn_coarse(X, coarse, fine)
        self.n_updates += bool(len(rows))
        for t, tree in enumerate(self.trees if len(rows) else []):
            update_tree(
                tree,
                self.X,
                self.codes,
                rows,
                self.rules(),
                Update(s.strategy),
                tree_key(s.seed, t, self.n_updates),
                propose=propose_regularised,
                kind=RegularisedPass,
            )
        if len(self.coarse_names) > n_before or len(self.codes) >= 1.5 * self.n_grown:
            self.second.X = np.zeros((len(self.second.X), 1), np.float32)
            self.store(X, plain, coarse, fine)
            self.second.n_updates += 1
            self.grow_second()
            return True
        before = len(self.second.finest)
        self.second.partial_fit(self.in_units(self.features(X, plain)), coarse, fine)
        owners, labels = self.second.name(coarse, fine)
        finest = np.where(labels == MISSING, owners, labels)
        used = np.array([not self.second.is_divided(c) for c in finest.tolist()])
        self.stored.append((X[used], plain[used]))
        assert len(self.second.finest) == before + used.sum()
        return False

    def predict_proba(self, X: Floats, plain: Doubles) -> Doubles:
        """Probabilities of the second forest."""
        return self.second.predict_proba(self.in_units(self.features(X, plain)))
